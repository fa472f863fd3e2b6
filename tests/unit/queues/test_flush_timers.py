from __future__ import annotations

import pytest

from podium.lib.clock import ManualClock
from podium.queues.flush_timers import BackoffTimer, LeftoverTimer


class TornClock(ManualClock):
    """A wall clock that somebody sets."""

    offset_s = 0.0

    def now(self) -> float:
        return super().now() + self.offset_s


def test_backoffs_are_flushed_at_whole_seconds() -> None:
    clock = ManualClock(1000.25)
    timer = BackoffTimer(clock)
    assert timer.delay_s() == 0.75
    assert not timer.take()
    clock.advance(0.75)
    assert timer.delay_s() == 0
    assert timer.take()
    assert not timer.take()
    assert timer.delay_s() == 1


def test_seconds_that_were_missed_are_made_up_for_once() -> None:
    clock = ManualClock(1000.0)
    timer = BackoffTimer(clock)
    clock.advance(5.5)
    assert timer.take()
    assert not timer.take()
    assert timer.delay_s() == 0.5


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0])
def test_a_wall_clock_that_is_set_does_not_stop_the_flushes(step_s: float) -> None:
    clock = TornClock(1_000_000.0)
    timer = BackoffTimer(clock)
    clock.offset_s = step_s
    assert timer.take()
    clock.advance(1)
    assert timer.take()


def test_leftovers_are_flushed_every_thirty_seconds() -> None:
    clock = TornClock(1000.0)
    timer = LeftoverTimer(clock)
    assert timer.delay_s() == 30
    clock.advance(29)
    clock.offset_s = 500.0
    assert not timer.take()
    clock.advance(1.5)
    assert timer.delay_s() == 0
    assert timer.take()
    assert not timer.take()
    assert timer.delay_s() == 30
