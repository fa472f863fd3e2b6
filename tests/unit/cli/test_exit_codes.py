"""Every command keeps to the rule of docs/exit-codes.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from podium.cli.exit_codes import EXIT_FAILED, EXIT_NO, EXIT_USAGE
from podium.cli.main import main
from tests.manifests import node, pod
from tests.unit.cli.commands import run, write_objects
from tests.unit.cli.test_diff import write_recording

PAGE = Path(__file__).parents[3] / "docs" / "exit-codes.md"


def names_below(group: click.Group, prefix: str = "") -> Iterator[str]:
    """Yield the full name of each command that can be run."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from names_below(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}"


COMMANDS = list(names_below(main))
ROWS = [row.split("|")[1] for row in PAGE.read_text().splitlines() if row.startswith("| `")]
PAGE_NAMES = [name for row in ROWS for name in re.findall(r"`([^`]+)`", row)]

_QUESTION = ("-f", "{cluster}", "--exit-code")
NOES: dict[str, Sequence[str]] = {
    "why": ("huge", *_QUESTION),
    "evaluate": ("--pod", "{huge}", *_QUESTION),
    "outlook": ("huge", *_QUESTION),
    "capacity": ("--pod", "{huge}", *_QUESTION),
    "make-room": ("--for", "default/huge", *_QUESTION),
    "estimate": ("--requests", "cpu=99", *_QUESTION),
    "clusters fit": ("--workload", "{huge}", "--member", "one={cluster}", "--exit-code"),
    "config check": ("{wrong}",),
    "doctor": ("--kubeconfig", "{absent}"),
    "diff": ("{one}", "{two}"),
}
"""Arguments to which the answer is no. Questions of plan and divide take several files: their own tests ask them."""
YESES: dict[str, Sequence[str]] = {
    "why": ("small", *_QUESTION),
    "evaluate": ("--pod", "{small}", *_QUESTION),
    "outlook": ("small", *_QUESTION),
    "capacity": ("--pod", "{small}", *_QUESTION),
    "make-room": ("--for", "default/small", *_QUESTION),
    "estimate": ("--requests", "cpu=1", *_QUESTION),
    "config check": ("{right}",),
    "diff": ("{one}", "{one}"),
    "version": (),
}
FAILURES: dict[str, Sequence[str]] = {
    "run": ("--config", "{absent}"),
    "shadow": ("--kubeconfig", "{absent}"),
    "record": ("{folder}", "--kubeconfig", "{absent}"),
    "estimator serve": ("--kubeconfig", "{absent}"),
    "estimator summary": ("-f", "{absent}"),
    "why": ("small", "-f", "{absent}"),
    "evaluate": ("--pod", "{small}", "-f", "{absent}"),
    "what-if": ("--drain", "n1", "-f", "{absent}"),
    "outlook": ("small", "-f", "{absent}"),
    "capacity": ("--pod", "{small}", "-f", "{absent}"),
    "make-room": ("--for", "default/huge", "-f", "{absent}"),
    "plan": ("-f", "{absent}"),
    "consolidate": ("-f", "{absent}"),
    "estimate": ("--requests", "cpu=1", "-f", "{absent}"),
    "divide": ("-f", "{absent}", "--clusters", "{absent}"),
    "clusters fit": ("--workload", "{huge}", "--member", "one={absent}"),
    "config check": ("{absent}",),
    "config effective": ("{absent}",),
    "replay": ("{absent}",),
    "diff": ("{absent}", "{one}"),
    "shards": ("group", "--kubeconfig", "{absent}"),
    "sweep": ("{absent}", "--grid", "NodeResourcesFit=1"),
    "release verify": ("{folder}", "--key", "{absent}"),
}
"""Arguments with which nothing can be answered or run."""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A cluster with a small pod that fits and a huge one that does not, configurations and recordings."""
    small, huge = pod("small", "1"), pod("huge", "99")
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    (tmp_path / "right.yaml").write_text(head)
    (tmp_path / "wrong.yaml").write_text(f"{head}parallelism: -1\n")
    return {
        "cluster": write_objects(tmp_path / "cluster.yaml", node("n1", "4"), small, huge),
        "small": write_objects(tmp_path / "small.yaml", pod("another", "1")),
        "huge": write_objects(tmp_path / "huge.yaml", pod("vast", "99")),
        "right": tmp_path / "right.yaml",
        "wrong": tmp_path / "wrong.yaml",
        "absent": tmp_path / "absent",
        "folder": tmp_path / "new",
        "one": write_recording(tmp_path / "one", "n1"),
        "two": write_recording(tmp_path / "two", "n2"),
    }


def _exit_code(command: str, arguments: Sequence[str], files: dict[str, Path]) -> tuple[int, str]:
    result = run(*command.split(), *(argument.format(**files) for argument in arguments))
    return result.exit_code, result.output


def test_the_page_lists_every_command_once() -> None:
    assert sorted(re.sub(r" --.*", "", name) for name in PAGE_NAMES) == sorted(COMMANDS)


def test_what_the_page_gives_the_option_has_it_and_nothing_else() -> None:
    with_option = {name.removesuffix(" --exit-code") for name in PAGE_NAMES if name.endswith(" --exit-code")}
    assert with_option == {name for name in COMMANDS if "--exit-code" in run(*name.split(), "--help").output}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_takes_a_kubeconfig_takes_a_context(command: str) -> None:
    options = run(*command.split(), "--help").output
    assert ("--kubeconfig" in options) == ("--context" in options)
    assert "--profile FILE" not in options


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option_is_2(command: str) -> None:
    assert run(*command.split(), "--no-such-option").exit_code == EXIT_USAGE


@pytest.mark.parametrize("command", NOES)
def test_no_is_3(command: str, files: dict[str, Path]) -> None:
    exit_code, output = _exit_code(command, NOES[command], files)
    assert exit_code == EXIT_NO, output


@pytest.mark.parametrize("command", [name for name in NOES if "--exit-code" in NOES[name]])
def test_no_is_0_of_a_question_without_the_option(command: str, files: dict[str, Path]) -> None:
    arguments = [argument for argument in NOES[command] if argument != "--exit-code"]
    exit_code, output = _exit_code(command, arguments, files)
    assert exit_code == 0, output


@pytest.mark.parametrize("command", YESES)
def test_yes_is_0(command: str, files: dict[str, Path]) -> None:
    exit_code, output = _exit_code(command, YESES[command], files)
    assert exit_code == 0, output


@pytest.mark.parametrize("command", FAILURES)
def test_no_answer_is_1(command: str, files: dict[str, Path]) -> None:
    exit_code, output = _exit_code(command, FAILURES[command], files)
    assert exit_code == EXIT_FAILED, output


@pytest.mark.parametrize("flag", ["--feature-gates=NoSuch=true", "--emulated-version=1.0"])
def test_a_flag_that_means_nothing_is_2(flag: str, files: dict[str, Path]) -> None:
    assert run("config", "check", files["right"], flag).exit_code == EXIT_USAGE


@pytest.mark.parametrize(
    "line",
    [
        "why /small -f {cluster}",
        "why one/two/three -f {cluster}",
        "why small -f {cluster} --lease kube-system/podium",
        "why small --url localhost",
        "why small -f {cluster} --plugin module",
        "outlook one/two/three -f {cluster}",
        "make-room --for one/two/three -f {cluster}",
        "run --plugin file.py",
        "shards one/two --kubeconfig {absent}",
        "what-if --drain , -f {cluster}",
        "doctor --rules podium --kubeconfig {absent}",
    ],
)
def test_an_argument_of_another_form_is_2(line: str, files: dict[str, Path]) -> None:
    result = run(*line.format(**files).split())
    assert (result.exit_code, result.stdout) == (EXIT_USAGE, ""), result.output


def test_a_configuration_on_standard_input_is_checked(files: dict[str, Path]) -> None:
    for name, exit_code in (("right", 0), ("wrong", EXIT_NO)):
        result = CliRunner().invoke(main, ["config", "check", "-"], input=files[name].read_text())
        assert result.exit_code == exit_code, result.output
