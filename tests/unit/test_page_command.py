"""Modules that write pages say what they do when they are asked for help, and write nothing."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

MODULES = (
    "tests.diagrams",
    "tests.helm",
    "tests.library_page",
    "tests.metrics_page",
    "tests.notebook",
    "tests.parity.report",
    "tests.shown_answers",
)


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("module", MODULES)
def test_help_writes_nothing(module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise AssertionError(f"{path} is written")

    monkeypatch.setattr(Path, "write_text", refuse)
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("Usage: ")
