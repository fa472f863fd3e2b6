import json

import yaml
from click.testing import CliRunner

from podium.cli.main import main

GOOD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
BAD = f"{GOOD}parallelism: -1\npodMaxBackoffSeconds: x\n"


def _run(*arguments):
    return CliRunner().invoke(main, ["config", "effective", *map(str, arguments)], catch_exceptions=False)


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
