from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner
from rich.console import Console

from podium.cli.demo.main import _log_only, command


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--nodes", "4", "--pods", "10"], "--nodes must be at least 5"),
        (["--nodes", "-1"], "--nodes must be at least 5"),
        (["--nodes", "99999999999"], "--nodes must be at most 100,000"),
        (["--pods", "0"], "--pods must be at least 1"),
        (["--nodes", "10", "--pods", "101"], "--pods must be at most 100 for 10 nodes"),
        (["--nodes", "many"], "'many' is not a valid integer"),
        (["--pods", "480", "--gangs", "7"], "--pods must be at most 500 for 50 nodes"),
        (["--ui", "--gangs", "1"], "--gangs: --ui shows pods that come and go"),
        (["--timeout", "0"], "'--timeout': 0.0 is not in the range x>0"),
        (["--output", "xml"], "'xml' is not one of 'text', 'json', 'yaml'"),
    ],
)
def test_sizes_that_make_no_demo_are_refused_with_the_reason(arguments: list[str], complaint: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert complaint in result.output


def test_a_configuration_that_is_not_good_is_refused_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: -1\n")
    result = CliRunner().invoke(command, ["--config", str(file)])
    assert result.exit_code == 1
    assert "parallelism" in result.output
    assert "starting" not in result.output


def test_warnings_are_not_mixed_into_a_report_that_goes_to_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    report, configuration = io.StringIO(), structlog.get_config()
    try:
        _log_only(logging.WARNING, Console(file=report))
        structlog.get_logger().warning("The event loop stood still")
    finally:
        structlog.configure(**configuration)
    assert report.getvalue() == ""
    assert "The event loop stood still" in capsys.readouterr().err


def test_help_says_what_is_measured() -> None:
    words = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert "The measured time begins" in words
    assert "--timeout" in words
