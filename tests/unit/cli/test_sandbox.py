from pathlib import Path

import pytest
from click.testing import CliRunner

from podium.cli.main import main


def test_a_kubeconfig_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "kubeconfig"
    result = CliRunner().invoke(main, ["sandbox", "--write-kubeconfig", str(path)])
    assert result.exit_code == 1
    assert result.stderr == f"Error: cannot write {path}: No such file or directory\n"


@pytest.mark.parametrize("arguments", [("--port", "70000"), ("--port", "-1"), ("--nodes", "-1")])
def test_options_that_make_no_sense_are_usage_errors(arguments: tuple[str, ...]) -> None:
    assert CliRunner().invoke(main, ["sandbox", *arguments]).exit_code == 2
