import pytest
from click.testing import CliRunner

from podium.cli.main import main


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
