from __future__ import annotations

from random import Random

from podium.kube.backoff import Backoff, BackoffPolicy


def test_delays_double_from_the_first_to_the_longest_and_are_stretched_by_at_most_their_length() -> None:
    backoff = Backoff(BackoffPolicy(), Random(1))
    for base_s in (0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0):
        assert base_s <= backoff.delay_s() <= 2 * base_s


def test_success_starts_over() -> None:
    backoff = Backoff(BackoffPolicy(), Random(1))
    for _ in range(100):
        backoff.delay_s()
    backoff.reset()
    assert backoff.delay_s() <= 1.6


def test_a_wait_that_was_asked_for_is_kept() -> None:
    assert 7.0 <= Backoff(BackoffPolicy(), Random(1)).delay_s(at_least_s=7.0) <= 14.0


def test_two_clients_do_not_come_back_together() -> None:
    delays_s = {Backoff(BackoffPolicy(), Random(seed)).delay_s() for seed in range(10)}
    assert len(delays_s) == 10
