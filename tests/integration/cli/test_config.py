"""`podium config` and the help pages, from the outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.config import default_configuration, load
from tests.integration.cli.conftest import ROOT, Podium

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_a_good_file_is_one_line(podium: Podium, tmp_path: Path) -> None:
    file = tmp_path / "good.yaml"
    file.write_text(HEAD + "profiles:\n- schedulerName: podium\n- schedulerName: other\n")
    result = podium("config", "check", file)
    assert result.returncode == 0
    assert result.stdout == f"{file}: good, profiles: podium, other\n"


def test_a_bad_file_shows_every_error_with_its_field(podium: Podium, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(HEAD + "parallelism: -1\npodInitialBackoffSeconds: soon\nprofils: []\n")
    result = podium("config", "check", file)
    assert result.returncode == 3
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for field in ("parallelism", "podInitialBackoffSeconds", "profils"):
        assert field in result.stderr


def test_what_podium_cannot_do_is_refused_by_name(podium: Podium, tmp_path: Path) -> None:
    file = tmp_path / "missing-plugin.yaml"
    file.write_text(HEAD + "profiles:\n- plugins: {score: {enabled: [{name: NoSuchPlugin}]}}\n")
    result = podium("config", "check", file)
    assert result.returncode == 3
    assert "NoSuchPlugin" in result.stderr


def test_a_file_that_is_not_there_is_a_plain_message(podium: Podium, tmp_path: Path) -> None:
    result = podium("config", "check", tmp_path / "none.yaml")
    assert result.returncode == 1
    assert result.stderr == f"{tmp_path / 'none.yaml'}: No such file or directory\n"


def test_the_defaults_can_be_loaded_again(podium: Podium, tmp_path: Path) -> None:
    result = podium("config", "defaults")
    assert result.returncode == 0
    assert load(result.stdout).config == default_configuration()


@pytest.mark.parametrize("file", sorted((ROOT / "examples/config").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_example_is_good_and_short(podium: Podium, file: Path) -> None:
    result = podium("config", "check", file)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{file}: good, profiles: podium")
    assert len(file.read_text().splitlines()) < 60


def test_help_lists_every_command_with_a_sentence(podium: Podium) -> None:
    result = podium("--help")
    assert result.returncode == 0
    command_lines = result.stdout[result.stdout.index("Run:") :].splitlines()
    lines = {line.split()[0]: line.split()[1:] for line in command_lines if line.startswith("  ") and line[2] != " "}
    assert {"config", "demo", "run", "sandbox"} <= lines.keys()
    assert all(lines.values())


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("run", ["--config", "--kubeconfig", "--secure-port"]),
        ("sandbox", ["--port", "--nodes", "--write-kubeconfig"]),
        ("demo", ["--nodes", "--pods", "--output", "--seed", "--timeout", "--config"]),
        ("config", ["check", "defaults"]),
    ],
)
def test_each_command_has_help(podium: Podium, command: str, options: list[str]) -> None:
    result = podium(command, "--help")
    assert result.returncode == 0
    assert all(option in result.stdout for option in options)


def test_an_unknown_command_is_a_usage_error(podium: Podium) -> None:
    result = podium("dance")
    assert result.returncode == 2
    assert "No such command 'dance'" in result.stderr
