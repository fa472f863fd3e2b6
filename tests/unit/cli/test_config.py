import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import yaml
from click.testing import CliRunner, Result

from podium.cli.main import main
from tests.unit.cli.commands import run

GOOD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
BAD = f"{GOOD}parallelism: -1\npodMaxBackoffSeconds: x\n"


_run = partial(run, "config", "effective")


def _files(tmp_path):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(GOOD)
    bad.write_text(BAD)
    return good, bad


def test_effective_configuration_has_the_defaults_filled_in(tmp_path):
    good, _ = _files(tmp_path)
    result = _run(good)
    assert result.exit_code == 0
    (config,) = yaml.safe_load_all(result.output)
    assert config["parallelism"] == 16
    assert config["profiles"][0]["plugins"]["multiPoint"]["enabled"]


def test_several_files_are_documents_of_one_stream(tmp_path):
    good, _ = _files(tmp_path)
    assert len(list(yaml.safe_load_all(_run(good, good).output))) == 2


def test_refused_file_shows_every_error_and_fails_the_command(tmp_path):
    good, bad = _files(tmp_path)
    result = _run(good, bad, tmp_path / "none.yaml")
    assert result.exit_code == 1
    assert yaml.safe_load(result.stdout)["parallelism"] == 16
    assert f"{bad}:3: parallelism: Invalid value: -1" in result.stderr
    assert f"{bad}:4: podMaxBackoffSeconds: " in result.stderr
    assert f"{tmp_path / 'none.yaml'}: No such file or directory" in result.stderr


def test_lines_come_in_file_order_with_errors_that_name_their_fields(tmp_path):
    good, bad = _files(tmp_path)
    result = _run("--output", "jsonl", bad, good, tmp_path / "none.yaml")
    assert result.exit_code == 0
    lines = [json.loads(line) for line in result.output.splitlines()]
    assert [(line["file"], line["ok"]) for line in lines] == [
        (str(bad), False),
        (str(good), True),
        (str(tmp_path / "none.yaml"), False),
    ]
    assert [error.split(":")[0] for error in lines[0]["errors"]] == ["parallelism", "podMaxBackoffSeconds"]
    assert lines[0]["effective"] is None
    assert lines[1]["errors"] == []
    assert lines[1]["effective"]["parallelism"] == 16


# ---------------------------------------------------------------- plugins and their args

PLUGINS = """
from dataclasses import dataclass

from podium.framework import FilterPlugin


@dataclass(frozen=True)
class PoolArgs:
    pool_size: int = 1


class Pooled(FilterPlugin):
    Args = PoolArgs

    def filter(self, state, pod, node):
        return None


class Failing(FilterPlugin):
    def __init__(self, args, handle):
        super().__init__(args, handle)
        {}["team"]

    def filter(self, state, pod, node):
        return None


class Leaving(Failing):
    def __init__(self, args, handle):
        raise SystemExit(0)


class Odd(FilterPlugin):
    def events_to_register(self):
        return ["NodeAdd"]

    def filter(self, state, pod, node):
        return None
"""
WITH_PLUGINS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: podium
  plugins: {multiPoint: {enabled: [%s]}}
  pluginConfig: [{name: Pooled, args: {%s}}]
"""


def check(tmp_path: Path, args: str, *names: str, command: Sequence[str] = ("config", "check")) -> Result:
    plugins, file = tmp_path / "plugins.py", tmp_path / "config.yaml"
    plugins.write_text(PLUGINS)
    file.write_text(WITH_PLUGINS % (", ".join(f"{{name: {name}}}" for name in names), args))
    plugin_options = [option for name in names for option in ("--plugin", f"{plugins}:{name}")]
    where = [str(file)] if command[0] == "config" else ["--config", str(file), "--kubeconfig", str(tmp_path / "none")]
    return CliRunner().invoke(main, [*command, *where, *plugin_options])


def test_a_configuration_is_good_if_its_plugins_can_be_constructed_with_their_args(tmp_path: Path) -> None:
    for args in ("", "pool_size: 3", "poolSize: 3"):
        result = check(tmp_path, args, "Pooled")
        assert result.exit_code == 0, result.output
        assert "good, profiles: podium" in result.output


def test_every_plugin_that_cannot_be_constructed_is_named_and_nothing_is_called_good(tmp_path: Path) -> None:
    for command in (("config", "check"), ("doctor",)):
        result = check(tmp_path, "poolSiz: 3", "Pooled", "Failing", "Leaving", "Odd", command=command)
        assert result.exit_code == 3
        text = " ".join(result.output.split())
        assert "good" not in text
        assert 'initializing plugin "Pooled": args.poolSiz: unknown field; known: pool_size' in text
        assert "initializing plugin \"Failing\": KeyError: 'team'" in text
        assert 'initializing plugin "Leaving": SystemExit: 0' in text
        assert "plugin \"Odd\" for its events_to_register: answered 'NodeAdd'" in text


def test_the_verdict_is_there_for_programs_in_every_format(tmp_path):
    good, bad = _files(tmp_path)

    def check(file, output):
        return CliRunner().invoke(main, ["config", "check", str(file), "-o", output], catch_exceptions=False)

    result = check(good, "json")
    assert (result.exit_code, result.stderr) == (0, "")
    verdict = json.loads(result.stdout)
    assert (verdict["ok"], verdict["errors"], verdict["profiles"]) == (True, [], ["default-scheduler"])
    assert yaml.safe_load(check(good, "yaml").stdout) == verdict
    result = check(bad, "json")
    assert result.exit_code == 3
    verdict = json.loads(result.stdout)
    assert not verdict["ok"]
    assert verdict["errors"][0].startswith(f"{bad}:3: parallelism: Invalid value: -1")


def test_defaults_are_the_same_in_every_format():
    printed = [CliRunner().invoke(main, ["config", "defaults", "-o", form]).stdout for form in ("yaml", "json", "text")]
    assert yaml.safe_load(printed[0]) == json.loads(printed[1])
    assert printed[2] == printed[0]


def test_names_that_run_takes_only_with_a_flag_are_warned_about(tmp_path):
    file = tmp_path / "config.yaml"
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    for text, fields in (
        ("", ["profiles[0].schedulerName"]),
        ("profiles: [{schedulerName: podium}]\n", []),
        ("profiles: [{schedulerName: podium}]\nleaderElection: {resourceName: podium}\n", []),
        ("profiles: [{schedulerName: a}, {schedulerName: default-scheduler}]\n", ["profiles[1].schedulerName"]),
    ):
        file.write_text(head + text)
        result = CliRunner().invoke(main, ["config", "check", str(file), "-o", "json"])
        warnings = json.loads(result.stdout)["warnings"]
        assert (result.exit_code, [warning.partition(":")[0] for warning in warnings]) == (0, fields)
        assert all("--as-default-scheduler" in warning for warning in warnings)
    # What is effective is kube-scheduler's, whatever `podium run` takes.
    result = CliRunner().invoke(main, ["config", "effective", str(file), "-o", "json"])
    assert json.loads(result.stdout)["effective"]["leaderElection"]["resourceName"] == "kube-scheduler"
