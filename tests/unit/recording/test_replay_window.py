"""A replay ends where it was told to, and takes the time that it was told to take."""

from __future__ import annotations

from podium.recording.replay_window import Pace, ReplayWindow


def test_time_is_up_after_a_duration_or_at_a_time() -> None:
    assert not ReplayWindow(seconds=10).is_over(10.0, None)
    assert ReplayWindow(seconds=10).is_over(10.5, None)
    assert not ReplayWindow(wall_s=1000).is_over(50.0, 999.0)
    assert ReplayWindow(wall_s=1000).is_over(50.0, 1001.0)
    assert not ReplayWindow(wall_s=1000).is_over(50.0, None)
    assert not ReplayWindow(attempts=3).is_over(1e9, 1e9)
    assert not ReplayWindow().is_set


def test_pace_waits_until_the_recorded_time_has_passed() -> None:
    slept: list[float] = []
    pace = Pace(10.0, lambda: sum(slept), slept.append)
    for recorded_s in (100.0, 105.0, 105.0, 125.0):
        pace.wait_until(recorded_s)
    assert slept == [0.5, 2.0]
    Pace(None, lambda: 0.0, slept.append).wait_until(1e6)
    assert len(slept) == 2
