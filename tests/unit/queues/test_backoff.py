from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.queues import PodBackoff
from tests.builders import pod


def failed_pod(times: int = 0, *, errors: int = 0, at_s: float = 1000.0) -> QueuedPodInfo:
    return QueuedPodInfo(pod(), at_s, unschedulable_count=times, consecutive_errors_count=errors)


def test_it_doubles_up_to_the_longest() -> None:
    backoff = PodBackoff()
    assert [backoff.duration_s(failures) for failures in range(7)] == [0, 1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize(
    ("initial_s", "max_s", "failures", "duration_s"),
    [(1, 10, 100_000, 10), (10, 10, 1, 10), (20, 10, 1, 10), (3, 10, 2, 6), (3, 10, 3, 10), (5, 10, 2, 10)],
)
def test_it_never_exceeds_the_longest(initial_s: float, max_s: float, failures: int, duration_s: float) -> None:
    assert PodBackoff(initial_s, max_s).duration_s(failures) == duration_s


def test_errors_count_before_rejections() -> None:
    assert PodBackoff().expiration_s(failed_pod(4, errors=1)) == 1001
    assert PodBackoff().expiration_s(failed_pod(4)) == 1008


def test_a_pod_that_never_failed_does_not_back_off() -> None:
    assert not PodBackoff().is_backing_off(failed_pod(), 0.0)
    assert not PodBackoff().is_backing_off(failed_pod(), 1000.0)


def test_a_longest_backoff_of_zero_turns_it_off() -> None:
    assert not PodBackoff(max_s=0).is_backing_off(failed_pod(3), 1000.0)


@pytest.mark.parametrize(("failed_at_s", "still", "no_more"), [(1000.0, 1001.999, 1002.0), (1000.7, 1001.999, 1002.0)])
def test_it_ends_with_the_second_in_which_it_runs_out(failed_at_s: float, still: float, no_more: float) -> None:
    assert PodBackoff().is_backing_off(failed_pod(1, at_s=failed_at_s), still)
    assert not PodBackoff().is_backing_off(failed_pod(1, at_s=failed_at_s), no_more)


def test_when_it_runs_out_is_remembered() -> None:
    info = failed_pod(1)
    PodBackoff().expiration_s(info)
    info.unschedulable_count = 5
    assert PodBackoff().expiration_s(info) == 1001


@given(st.floats(1, 2e9), st.integers(1, 80))
def test_the_wait_is_at_least_its_duration_and_at_most_a_second_more(at_s: float, failures: int) -> None:
    backoff = PodBackoff()
    info = failed_pod(failures, at_s=at_s)
    duration_s = backoff.duration_s(failures)
    assert backoff.is_backing_off(info, at_s + duration_s)
    assert not backoff.is_backing_off(info, at_s + duration_s + 1)
