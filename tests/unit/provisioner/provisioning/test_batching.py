"""The batching window, on a clock that the test advances."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.lib.clock import ManualClock
from podium.provisioner.provisioning.batching import BatchingState, BatchingWindow

AWAITING, OPEN = BatchingState.AWAITING_TRIGGER, BatchingState.OPEN
BATCHED, FRUITLESS = BatchingState.BATCHED, BatchingState.FRUITLESS


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0.0)


@pytest.fixture
def window(clock: ManualClock) -> BatchingWindow:
    return BatchingWindow(clock)


def test_the_first_trigger_is_waited_for_one_second(clock: ManualClock, window: BatchingWindow) -> None:
    window.begin()
    assert (window.state(), window.wake_at_s) == (AWAITING, 1.0)
    clock.advance(0.75)
    assert window.state() is AWAITING
    clock.advance(0.25)
    assert (window.state(), window.wake_at_s) == (FRUITLESS, None)


def test_the_wait_for_the_first_trigger_is_no_option(clock: ManualClock) -> None:
    window = BatchingWindow(clock, idle_s=5.0, max_s=60.0)
    window.begin()
    assert window.wake_at_s == 1.0


def test_a_window_ends_after_one_idle_second(clock: ManualClock, window: BatchingWindow) -> None:
    window.begin()
    clock.advance(0.5)
    window.trigger("a")
    assert (window.state(), window.wake_at_s) == (OPEN, 1.5)
    clock.advance(1.0)
    assert (window.state(), window.wake_at_s) == (BATCHED, None)


def test_a_new_uid_resets_the_idle_second(clock: ManualClock, window: BatchingWindow) -> None:
    window.begin()
    window.trigger("a")
    clock.advance(0.75)
    window.trigger("b")
    assert window.wake_at_s == 1.75


def test_a_repeated_uid_does_not_reset_the_idle_second(clock: ManualClock, window: BatchingWindow) -> None:
    window.begin()
    window.trigger("a")
    clock.advance(0.75)
    window.trigger("a")
    assert window.wake_at_s == 1.0


def test_a_trigger_without_a_uid_always_resets_the_idle_second(clock: ManualClock, window: BatchingWindow) -> None:
    window.begin()
    window.trigger()
    clock.advance(0.75)
    window.trigger()
    clock.advance(0.75)
    window.trigger()
    assert window.wake_at_s == 2.5


def test_a_window_ends_after_ten_seconds_in_any_case(clock: ManualClock, window: BatchingWindow) -> None:
    window.begin()
    clock.advance(0.5)
    for uid in range(19):
        window.trigger(str(uid))
        clock.advance(0.5)
    window.trigger("last")
    assert (window.state(), window.wake_at_s) == (OPEN, 10.5)
    clock.advance(0.5)
    assert window.state() is BATCHED


def test_both_durations_are_options(clock: ManualClock) -> None:
    window = BatchingWindow(clock, idle_s=3.0, max_s=4.0)
    window.begin()
    window.trigger("a")
    assert window.wake_at_s == 3.0
    clock.advance(2.0)
    window.trigger("b")
    assert window.wake_at_s == 4.0


def test_uids_are_forgotten_when_a_window_ends(clock: ManualClock, window: BatchingWindow) -> None:
    window.begin()
    window.trigger("a")
    clock.advance(1.0)
    assert window.state() is BATCHED
    window.begin()
    window.trigger("a")
    assert window.state() is OPEN


def test_a_trigger_between_two_windows_opens_the_next_one(clock: ManualClock, window: BatchingWindow) -> None:
    window.trigger("early")
    assert (window.state(), window.wake_at_s) == (FRUITLESS, None)
    clock.advance(60.0)
    window.begin()
    assert (window.state(), window.wake_at_s) == (OPEN, 61.0)


def test_only_one_trigger_is_kept_between_two_windows(clock: ManualClock, window: BatchingWindow) -> None:
    window.trigger("a")
    window.trigger("b")
    window.trigger()
    window.begin()
    clock.advance(1.0)
    assert window.state() is BATCHED
    window.begin()
    assert window.state() is AWAITING


def test_uids_between_two_windows_count_as_seen_in_the_next(clock: ManualClock, window: BatchingWindow) -> None:
    window.trigger("a")
    window.trigger("b")
    window.begin()
    clock.advance(0.5)
    window.trigger("b")
    assert window.wake_at_s == 1.0


def test_a_trigger_after_a_fruitless_window_is_kept(clock: ManualClock, window: BatchingWindow) -> None:
    window.begin()
    clock.advance(1.0)
    window.trigger("a")
    assert window.state() is FRUITLESS
    window.begin()
    assert window.state() is OPEN


def test_uids_are_forgotten_after_a_fruitless_window_too(clock: ManualClock, window: BatchingWindow) -> None:
    window.trigger("a")
    window.begin()
    clock.advance(1.0)
    window.begin()
    clock.advance(1.0)
    assert window.state() is FRUITLESS
    window.trigger("a")
    window.begin()
    assert window.state() is OPEN


def test_a_trigger_at_the_end_of_a_window_opens_the_next_one(clock: ManualClock, window: BatchingWindow) -> None:
    window.begin()
    window.trigger("a")
    clock.advance(1.0)
    window.trigger("b")
    assert window.state() is BATCHED
    window.begin()
    assert window.state() is OPEN


def test_a_window_whose_time_has_passed_need_not_be_asked_before_the_next(
    clock: ManualClock, window: BatchingWindow
) -> None:
    window.begin()
    clock.advance(5.0)
    window.begin()
    assert (window.state(), window.wake_at_s) == (AWAITING, 6.0)


def test_two_windows_never_overlap(window: BatchingWindow) -> None:
    window.begin()
    with pytest.raises(AssertionError, match="the last window has not ended"):
        window.begin()


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, 4, 8]), st.sampled_from(["a", "b", "c", None])), max_size=40))
def test_a_window_is_open_between_its_idle_and_its_greatest_duration(steps: list[tuple[int, str | None]]) -> None:
    """Each step advances by quarters of a second, then triggers; windows follow each other at once."""
    clock = ManualClock(0.0)
    window = BatchingWindow(clock)
    window.begin()
    opened_s: float | None = None
    for quarters, uid in steps:
        for _ in range(quarters):
            clock.advance(0.25)
            due = window.wake_at_s is not None and clock.monotonic() >= window.wake_at_s
            state = window.state()
            assert due == (state in (BATCHED, FRUITLESS))
            if due:
                assert (state is BATCHED) == (opened_s is not None)
                assert opened_s is None or 1.0 <= clock.monotonic() - opened_s <= 10.0
                opened_s = None
                window.begin()
        window.trigger(uid)
        if opened_s is None:
            opened_s = clock.monotonic()
        assert window.state() is OPEN
        assert window.wake_at_s is not None
        assert clock.monotonic() < window.wake_at_s <= opened_s + 10.0
