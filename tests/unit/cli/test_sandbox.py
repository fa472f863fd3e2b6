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


def test_devices_that_cannot_be_published_are_refused_by_name() -> None:
    result = CliRunner().invoke(main, ["sandbox", "--devices", "gpu=many"])
    assert result.exit_code == 2
    assert "Invalid value for '--devices': gpu: the count has to be from 1 to 128, not 'many'" in result.stderr
    result = CliRunner().invoke(main, ["sandbox", "--devices", "gpu=1", "--devices", "gpu=2"])
    assert "gpu is given twice" in result.stderr
