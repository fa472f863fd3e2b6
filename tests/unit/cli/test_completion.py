import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from podium.cli.main import main

CONTEXT = click.Context(main)
NAMES_A_FILE = re.compile(r"(kubeconfig|-file|-authority|--config|--plugin)$")
"""Options with such names take a file, as do those that help shows with FILE."""


def options(command: click.Command = main, path: str = "podium") -> Iterator[tuple[str, click.Option]]:
    """Every option of every command, each after the words before it."""
    for name in command.list_commands(CONTEXT) if isinstance(command, click.Group) else ():
        subcommand = command.get_command(CONTEXT, name)  # type: ignore[attr-defined]
        yield from options(subcommand, f"{path} {name}")
    for param in command.params:
        if isinstance(param, click.Option):
            yield f"{path} {param.opts[-1]}", param


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_of_its_own(shell: str) -> None:
    printed = CliRunner().invoke(main, ["completion", shell])
    assert printed.exit_code == 0
    assert f"_PODIUM_COMPLETE={shell}_complete" in printed.output


def test_another_shell_is_refused_with_the_names_of_those_that_are_known() -> None:
    printed = CliRunner().invoke(main, ["completion", "tcsh"])
    assert printed.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in printed.output


def test_the_help_shows_a_line_for_each_shell() -> None:
    lines = [line.strip() for line in CliRunner().invoke(main, ["completion", "--help"]).output.splitlines()]
    assert "bash:  source <(podium completion bash)" in lines
    assert "fish:  podium completion fish | source" in lines


def test_shells_offer_files_after_every_option_that_takes_one() -> None:
    items_by_path = {
        path: [item.type for item in option.shell_complete(CONTEXT, "")]
        for path, option in options()
        if NAMES_A_FILE.search(path) or option.make_metavar(CONTEXT) in ("FILE", "DIR")
    }
    assert {"podium why --cluster", "podium what-if --apply", "podium run --tls-cert-file"} <= set(items_by_path)
    assert {path: types for path, types in items_by_path.items() if types not in (["file"], ["dir"])} == {}
    assert items_by_path["podium estimator serve --kubeconfig-dir"] == ["dir"]
