from __future__ import annotations

import asyncio

import pytest

from podium.client.write_lanes import SLOW_S, Lane


@pytest.fixture
def lane() -> Lane:
    return Lane(priority=0, limit_max=4)


def delays_after_refusal(lane: Lane, *paths: str, retry_after_s: float = 60.0, now_s: float = 0.0) -> list[float]:
    return [lane.refuse(path, retry_after_s, now_s) for path in paths]


def test_the_most_urgent_write_goes_first_and_of_these_the_oldest(lane: Lane) -> None:
    loop = asyncio.new_event_loop()
    old, new, urgent, cancelled = (loop.create_future() for _ in range(4))
    for waiter, urgency in ((old, 0), (cancelled, 9), (new, 0), (urgent, 5)):
        lane.add(waiter, urgency)
    assert (lane.remove(cancelled), lane.remove(cancelled)) == (True, False)
    assert [lane.pop() for _ in range(3)] == [urgent, old, new]
    loop.close()


def test_each_refusal_of_another_object_doubles_the_pause_up_to_what_the_server_asks_for(lane: Lane) -> None:
    assert delays_after_refusal(lane, "a", "b", "c", "d", "e", retry_after_s=3.0) == [0.0, 1.0, 2.0, 3.0, 3.0]


def test_one_object_that_is_refused_again_and_again_holds_up_no_other(lane: Lane) -> None:
    assert delays_after_refusal(lane, "a", "a", "a") == [0.0, 0.0, 0.0]
    assert lane.limit == 1


def test_a_second_refusal_of_an_object_does_not_make_a_pause_longer(lane: Lane) -> None:
    assert delays_after_refusal(lane, "a", "b", "b") == [0.0, 1.0, 0.0]
    assert lane.limit == 0


def test_after_the_pause_one_write_is_a_probe_and_any_answer_opens_the_lane(lane: Lane) -> None:
    delays_after_refusal(lane, "a", "b")
    lane.probe(0.5)
    assert lane.limit == 0
    lane.probe(1.0)
    assert (lane.limit, lane.is_slow(1.0)) == (1, True)
    lane.accept()
    assert (lane.limit, lane.is_slow(1.0)) == (4, False)
    assert delays_after_refusal(lane, "c") == [0.0]


def test_a_lane_is_slow_while_a_write_is_unanswered_for_too_long(lane: Lane) -> None:
    assert not lane.is_slow(1000.0)
    lane.in_flight, lane.progress_s = 1, 10.0
    assert not lane.is_slow(10.0 + SLOW_S / 2)
    assert lane.is_slow(10.0 + SLOW_S)
