from __future__ import annotations

import pytest

from podium.lib.clock import ManualClock, SteadyClock


def test_a_manual_clock_stands_still_until_it_is_advanced() -> None:
    clock = ManualClock(1000.0)
    assert (clock.now(), clock.monotonic()) == (1000.0, 0.0)
    clock.advance(2.5)
    assert (clock.now(), clock.monotonic()) == (1002.5, 2.5)


def test_a_manual_clock_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="time does not go back"):
        ManualClock().advance(-1)


@pytest.mark.parametrize("set_by_s", [-3600.0, 3600.0])
def test_a_steady_clock_goes_on_when_the_wall_clock_is_set(set_by_s: float) -> None:
    clock = ManualClock(1000.0)
    steady = SteadyClock(clock)
    clock.advance(5.0)
    clock.set_wall(clock.now() + set_by_s)
    clock.advance(5.0)
    assert (steady.now(), steady.monotonic(), clock.monotonic()) == (1010.0, 10.0, 10.0)
    assert clock.now() == steady.wall_s(steady.now()) == 1010.0 + set_by_s
    assert steady.wall_s(1070.0) == 1070.0 + set_by_s


def test_times_of_a_steady_clock_are_shown_as_they_are_while_nobody_sets_the_wall_clock() -> None:
    clock = ManualClock(1000.1)
    steady = SteadyClock(clock)
    clock.advance(0.3)
    assert steady.wall_s(1234.5) == 1234.5
