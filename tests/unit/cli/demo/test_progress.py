from __future__ import annotations

import io

import pytest
from rich.console import Console

from podium.cli.demo import progress
from podium.cli.demo.progress import LiveProgress, PlainProgress


class Seconds:
    """Stands in for the module `time`: a clock that the test moves."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    seconds_clock = Seconds()
    monkeypatch.setattr(progress, "time", seconds_clock)
    return seconds_clock


def test_plain_progress_is_a_line_a_second_and_one_at_either_end(clock: Seconds) -> None:
    page = io.StringIO()
    with PlainProgress(Console(file=page)) as progress:
        progress.begin("binding pods", 4)
        for count in (1, 2, 3, 4):
            clock.seconds += 0.6
            progress.advance(count)
    assert page.getvalue().splitlines() == ["binding pods: 0/4", "binding pods: 2/4", "binding pods: 4/4"]


def test_a_stage_of_one_step_is_one_plain_line(clock: Seconds) -> None:
    page = io.StringIO()
    with PlainProgress(Console(file=page)) as progress:
        progress.begin("starting", 1)
        progress.advance(1)
    assert page.getvalue() == "starting\n"


def test_live_progress_ends_with_every_stage_and_its_count(clock: Seconds) -> None:
    page = io.StringIO()
    with LiveProgress(Console(file=page, force_terminal=True, width=80, color_system=None)) as progress:
        progress.begin("starting", 1)
        progress.advance(1)
        progress.begin("binding pods", 300)
        for count in range(1, 301):
            progress.advance(count)
    last = page.getvalue().splitlines()[-3:]
    assert "starting" in last[0]
    assert "binding pods" in last[1]
    assert "300/300" in last[1]


def test_live_progress_is_not_redrawn_for_every_step(clock: Seconds) -> None:
    page = io.StringIO()
    with LiveProgress(Console(file=page, force_terminal=True, width=80)) as progress:
        progress.begin("binding pods", 10_000)
        clock.seconds = 1.0
        progress.advance(1)
        length = len(page.getvalue())
        for count in range(2, 10_000):
            progress.advance(count)
        assert len(page.getvalue()) == length
