"""The pauses between attempts to connect."""

from __future__ import annotations

from podium.estimator.client.connections import next_pause_s


def test_pauses_double_up_to_half_a_minute() -> None:
    pauses_s = [0.0]
    while len(pauses_s) < 12:
        pauses_s.append(next_pause_s(pauses_s[-1], 0.0))
    assert pauses_s[1:4] == [0.5, 1.0, 2.0]
    assert pauses_s[-2:] == [30.0, 30.0]


def test_a_connection_that_lasted_is_dialled_again_at_once() -> None:
    assert next_pause_s(30.0, 1.0) == 0.0


def test_a_connection_that_breaks_soon_is_dialled_after_the_first_pause() -> None:
    assert next_pause_s(30.0, 0.1) == 0.5
