from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.client.rate_limit import TokenBucket
from podium.lib.clock import ManualClock


def test_a_full_bucket_lets_a_burst_through_and_then_says_how_long_to_wait() -> None:
    bucket = TokenBucket(10.0, 3, ManualClock(0.0))
    assert [bucket.try_take() for _ in range(4)] == [0.0, 0.0, 0.0, pytest.approx(0.1)]


def test_tokens_come_back_with_time_but_never_more_than_the_burst() -> None:
    clock = ManualClock(0.0)
    bucket = TokenBucket(10.0, 2, clock)
    assert [bucket.try_take(), bucket.try_take()] == [0.0, 0.0]
    clock.advance(0.1)
    assert bucket.try_take() == 0.0
    assert bucket.try_take() > 0.0
    clock.advance(60)
    assert [bucket.try_take() == 0.0 for _ in range(3)] == [True, True, False]


def test_asking_in_vain_costs_nothing() -> None:
    clock = ManualClock(0.0)
    bucket = TokenBucket(1.0, 1, clock)
    bucket.try_take()
    left_s = []
    for _ in range(10):
        clock.advance(0.1)
        left_s.append(bucket.try_take())
    assert left_s == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])


def test_negative_qps_means_no_limit_and_zero_the_defaults_of_client_go() -> None:
    clock = ManualClock(0.0)
    assert TokenBucket.for_client(-1.0, 10, clock) is None
    bucket = TokenBucket.for_client(0.0, 0, clock)
    assert bucket is not None
    assert sum(bucket.try_take() == 0.0 for _ in range(20)) == 10
    clock.advance(1.0)
    assert sum(bucket.try_take() == 0.0 for _ in range(20)) == 5


@given(
    st.floats(0.1, 1000.0),
    st.integers(1, 50),
    st.lists(st.floats(0.0, 10.0, allow_subnormal=False), min_size=1, max_size=60),
)
def test_never_more_goes_through_than_burst_and_rate_allow(qps: float, burst: int, pauses_s: list[float]) -> None:
    clock = ManualClock(0.0)
    bucket = TokenBucket(qps, burst, clock)
    count = 0
    for pause_s in pauses_s:
        clock.advance(pause_s)
        count += bucket.try_take() == 0.0
        assert count <= burst + clock.monotonic() * qps + 1e-6


@given(st.floats(0.1, 1000.0), st.integers(1, 50))
def test_after_the_wait_it_named_a_token_is_there(qps: float, burst: int) -> None:
    clock = ManualClock(0.0)
    bucket = TokenBucket(qps, burst, clock)
    for _ in range(burst):
        assert bucket.try_take() == 0.0
    clock.advance(bucket.try_take())
    assert bucket.try_take() == 0.0
