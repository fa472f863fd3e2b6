"""Imports of plugins before anything runs."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from podium.cli.options import plugin_loading
from podium.cli.options.plugin_loading import limited_loading
from podium.plugins.loading.discovery import DiscoveryError, load


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_loading, "_TICK_S", 0.05)
    monkeypatch.setattr(plugin_loading, "SAY_AFTER_S", 0.05)
    monkeypatch.setattr(plugin_loading, "LOAD_S_MAX", 0.2)


@pytest.mark.parametrize("does", ["import time; time.sleep(3600)", "while True: pass"])
def test_an_import_that_does_not_end_is_named_and_fails(tmp_path: Path, does: str) -> None:
    file = tmp_path / "slow.py"
    file.write_text(does)
    notices: list[str] = []
    with (
        limited_loading(lambda reference, _: notices.append(reference)),
        pytest.raises(DiscoveryError, match=r"slow\.py"),
    ):
        load(f"{file}:Slow")
    assert set(notices) == {f"{file}:Slow"}
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_the_time_of_what_is_no_import_does_not_count() -> None:
    with limited_loading(lambda *_: pytest.fail("nothing is imported")):
        for _ in range(3):
            signal.sigtimedwait([], 0.1)
