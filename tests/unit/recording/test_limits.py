"""A replay ends where it was told to, and takes the time that it was told to take."""

from __future__ import annotations

from podium.recording.limits import Pace, Until


def test_time_is_up_after_a_duration_or_at_a_time() -> None:
    assert not Until(seconds=10).is_time_up(10.0, None)
    assert Until(seconds=10).is_time_up(10.5, None)
    assert not Until(wall_s=1000).is_time_up(50.0, 999.0)
    assert Until(wall_s=1000).is_time_up(50.0, 1001.0)
    assert not Until(wall_s=1000).is_time_up(50.0, None)
    assert not Until(attempts=3).is_time_up(1e9, 1e9)
    assert not Until().is_set


def test_pace_waits_until_the_recorded_time_has_passed() -> None:
    slept: list[float] = []
    pace = Pace(10.0, lambda: sum(slept), slept.append)
    for recorded_s in (100.0, 105.0, 105.0, 125.0):
        pace.reach(recorded_s)
    assert slept == [0.5, 2.0]
    Pace(None, lambda: 0.0, slept.append).reach(1e6)
    assert len(slept) == 2
