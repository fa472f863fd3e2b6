from __future__ import annotations

from podium.lib.clock import ManualClock
from podium.lib.expiring import ExpiringCache


def test_an_answer_is_good_for_as_long_as_was_said() -> None:
    clock = ManualClock()
    cache: ExpiringCache[int] = ExpiringCache(clock, 10)
    cache.put("q", 1, 10.0)
    clock.advance(9.9)
    assert cache.get("q") == 1
    clock.advance(0.1)
    assert cache.get("q") is None
    assert len(cache) == 0


def test_the_oldest_answers_go_where_there_are_too_many() -> None:
    cache: ExpiringCache[int] = ExpiringCache(ManualClock(), 2)
    for question in range(3):
        cache.put(question, question, 10.0)
    assert [cache.get(question) for question in range(3)] == [None, 1, 2]
