"""A recording names plugins, and may come from anybody: no command imports what only a recording names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import podium
from podium.config import NEWEST, default_configuration, effective
from podium.recording.entries import DECIDED
from tests.unit.cli.commands import run
from tests.unit.cli.test_replay import complete, write_recording
from tests.unit.recording.contents import content_of

CODE = """
from pathlib import Path

from podium.framework import ScorePlugin

Path({ran!r}).write_text("")


class Planted(ScorePlugin):
    def score(self, state, pod, node):
        return 1
"""
_COMMANDS = {
    "replay": ("replay", "{one}"),
    "expect": ("replay", "{one}", "--expect", "-o", "json"),
    "page": ("replay", "{one}", "--html", "page.html"),
    "trace": ("replay", "{one}", "--trace", "trace.json"),
    "counterfactual": ("replay", "{one}", "--counterfactual"),
    "counterfactual page": ("replay", "{one}", "--counterfactual", "--html", "page.html"),
    "other configuration": ("replay", "{one}", "--config", "other.yaml"),
    "other configuration to the end": ("replay", "{one}", "--config", "other.yaml", "--counterfactual"),
    "grid": ("sweep", "{one}", "--grid", "NodeResourcesFit=1,2", "--workers", "1"),
    "sweep": ("sweep", "{one}", "--config", "other.yaml", "--workers", "1"),
    "diff": ("diff", "{one}", "{two}"),
    "diff page": ("diff", "{one}", "{two}", "--html", "page.html"),
}


def _decision(node: str) -> bytes:
    return content_of((DECIDED, ("u", "default/web", "Suggested", node, 1, 1, 0, None, ())))


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the planted code writes once it runs; the directory is the current one, and on Python's path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "planted.py").write_text(CODE.format(ran=str(tmp_path / "ran")))
    (tmp_path / "other.yaml").write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration")
    return tmp_path / "ran"


@pytest.mark.parametrize("kind", ["", "watched"])
@pytest.mark.parametrize("reference", ["planted:Planted", "{here}/planted.py:Planted", "planted.py:Planted"])
@pytest.mark.parametrize("command", _COMMANDS)
def test_plugin_that_only_the_recording_names_never_runs(
    command: str, reference: str, kind: str, ran: Path, tmp_path: Path
) -> None:
    description = {"plugins": [reference.format(here=tmp_path)], **({"kind": kind} if kind else {})}
    for name, node in (("one", "n1"), ("two", "n2")):
        write_recording(tmp_path / name, complete() | description, _decision(node))
    result = run(*(argument.format(one=tmp_path / "one", two=tmp_path / "two") for argument in _COMMANDS[command]))
    assert not ran.exists()
    if "other.yaml" not in _COMMANDS[command] and not (kind and command != "replay"):
        assert result.exit_code == (3 if command.startswith("diff") else 1)
        assert f"--plugin {description['plugins'][0]}" in result.stderr


def test_plugin_of_the_recording_runs_once_the_command_line_names_it(ran: Path, tmp_path: Path) -> None:
    recording = write_recording(tmp_path / "one", complete() | {"plugins": ["planted:Planted"]})
    assert run("replay", recording, "--plugin", "planted.py:Planted", "--expect").exit_code == 0
    assert ran.exists()


def test_configuration_that_needs_another_plugin_says_which_ones_the_recording_names(ran: Path, tmp_path: Path) -> None:
    description = complete() | {"plugins": ["planted:Planted", "other:Other"]}
    description["config"]["profiles"] = [{"plugins": {"score": {"enabled": [{"name": "Other"}]}}}]
    result = run("replay", write_recording(tmp_path / "one", description), "--plugin", "planted.py:Planted")
    assert result.exit_code == 1
    assert "give them with --plugin planted:Planted --plugin other:Other" in result.stderr
    assert ran.exists()


def test_command_to_pass_is_quoted_for_a_shell(tmp_path: Path) -> None:
    result = run("replay", write_recording(tmp_path / "one", complete() | {"plugins": ["a; touch b #:C"]}))
    assert "--plugin 'a; touch b #:C'" in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        {"kubeconfig": "/etc/passwd"},
        {"master": "http://127.0.0.1:1"},
        {"tracing": {"endpoint": "http://127.0.0.1:1", "samples_per_million": 1}},
        {"plugins": {"DefaultBinder": "planted:Planted"}},
        {"recorder_bytes": "many"},
        {"pod_max_in_unschedulable_s": None},
    ],
)
def test_options_that_podium_does_not_record_are_refused(options: dict[str, object], tmp_path: Path) -> None:
    description = complete()
    description["options"] |= options
    result = run("replay", write_recording(tmp_path / "one", description))
    assert result.exit_code == 1
    assert "does not say with which options it was made" in result.stderr


def test_extenders_of_a_recorded_configuration_are_not_asked(tmp_path: Path) -> None:
    description = complete()
    description |= {"config": effective(default_configuration()), "decides_as": NEWEST.minor}
    description["config"]["extenders"] = [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}]
    result = run("replay", write_recording(tmp_path / "one", description))
    assert result.exit_code == 1
    assert "extenders are not asked" in result.stderr


_SWEEP = ("sweep", "one", "--grid", "NodeResourcesFit=1", "--workers", "1")


@pytest.mark.parametrize("command", [("replay", "one", "--expect"), _SWEEP])
@pytest.mark.parametrize("start", [("-m", "podium"), ("{scripts}/podium",)])
def test_modules_that_lie_beside_the_recording_are_not_imported(
    start: tuple[str, ...],
    command: tuple[str, ...],
    ran: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    scripts = tmp_path_factory.mktemp("scripts")
    (scripts / "podium").write_text("from podium.cli.main import main\n\nif __name__ == '__main__':\n    main()\n")
    write_recording(tmp_path / "one", complete())
    for name in ("rich", "yaml", "numpy", "multiprocessing", "msgspec", "structlog"):
        (tmp_path / f"{name}.py").write_text(f"open({str(ran)!r}, 'w')")
    environment = os.environ | {"PYTHONPATH": str(Path(podium.__file__).parents[1])}
    command_line = [sys.executable, *(part.format(scripts=scripts) for part in start), *command]
    result = subprocess.run(command_line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert not ran.exists()


def test_package_that_lies_beside_the_recording_is_not_installed(ran: Path, tmp_path: Path) -> None:
    package = tmp_path / "planted-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[podium.plugins]\nPlanted = planted:Planted\n")
    write_recording(tmp_path / "one", complete())
    environment = os.environ | {"PYTHONPATH": str(Path(podium.__file__).parents[1])}
    command = [sys.executable, "-m", "podium", "replay", "one", "--expect"]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert not ran.exists()
