from __future__ import annotations

from random import Random

from podium.client.backoff import Backoff, BackoffPolicy
from podium.lib.clock import ManualClock


def backoff_of(clock: ManualClock, seed: int = 1) -> Backoff:
    return Backoff(BackoffPolicy(), Random(seed), clock)


def test_delays_double_up_to_the_longest_and_jitter_adds_at_most_their_length() -> None:
    backoff = backoff_of(ManualClock())
    for base_s in (0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0):
        assert base_s <= backoff.delay_s() <= 2 * base_s


def test_longest_delay_before_the_first_sync_is_5_s_plus_jitter() -> None:
    backoff = backoff_of(ManualClock())
    for base_s in (0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 5.0):
        assert base_s <= backoff.delay_s(is_synced=False) <= 2 * base_s
    assert 30.0 <= backoff.delay_s() <= 60.0


def test_reset_starts_again_with_the_first_delay() -> None:
    backoff = backoff_of(ManualClock())
    for _ in range(100):
        backoff.delay_s()
    backoff.reset()
    assert backoff.delay_s() <= 1.6


def test_first_delay_applies_again_more_than_two_minutes_after_the_last_failure() -> None:
    clock = ManualClock()
    backoff = backoff_of(clock)
    for _ in range(100):
        backoff.delay_s()
    clock.advance(120.0)
    assert backoff.delay_s() >= 30.0
    clock.advance(120.1)
    assert backoff.delay_s() <= 1.6


def test_delay_is_not_below_the_requested_minimum() -> None:
    assert 7.0 <= backoff_of(ManualClock()).delay_s(at_least_s=7.0) <= 14.0


def test_delays_of_several_clients_differ() -> None:
    delays_s = {backoff_of(ManualClock(), seed).delay_s() for seed in range(10)}
    assert len(delays_s) == 10
