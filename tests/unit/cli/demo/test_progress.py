from __future__ import annotations

import io

import pytest
from rich.console import Console

from podium.cli.demo import progress
from podium.cli.demo.progress import LiveProgress, PlainProgress


class Seconds:
    """Stands in for the module `time`: a clock that the test moves."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    clock = Seconds()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_plain_progress_is_a_line_a_second_and_one_at_either_end(seconds: Seconds) -> None:
    page = io.StringIO()
    with PlainProgress(Console(file=page)) as progress:
        progress.begin("binding pods", 4)
        for done in (1, 2, 3, 4):
            seconds.now += 0.6
            progress.advance(done)
    assert page.getvalue().splitlines() == ["binding pods: 0/4", "binding pods: 2/4", "binding pods: 4/4"]


def test_a_stage_of_one_step_is_one_plain_line(seconds: Seconds) -> None:
    page = io.StringIO()
    with PlainProgress(Console(file=page)) as progress:
        progress.begin("starting", 1)
        progress.advance(1)
    assert page.getvalue() == "starting\n"


def test_live_progress_ends_with_every_stage_and_its_count(seconds: Seconds) -> None:
    page = io.StringIO()
    with LiveProgress(Console(file=page, force_terminal=True, width=80, color_system=None)) as progress:
        progress.begin("starting", 1)
        progress.advance(1)
        progress.begin("binding pods", 300)
        for done in range(1, 301):
            progress.advance(done)
    last = page.getvalue().splitlines()[-3:]
    assert "starting" in last[0]
    assert "binding pods" in last[1]
    assert "300/300" in last[1]


def test_live_progress_is_not_redrawn_for_every_step(seconds: Seconds) -> None:
    page = io.StringIO()
    with LiveProgress(Console(file=page, force_terminal=True, width=80)) as progress:
        progress.begin("binding pods", 10_000)
        seconds.now = 1.0
        progress.advance(1)
        drawn = len(page.getvalue())
        for done in range(2, 10_000):
            progress.advance(done)
        assert len(page.getvalue()) == drawn
