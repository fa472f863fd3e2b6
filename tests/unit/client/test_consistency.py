from __future__ import annotations

import pytest

from podium.client.consistency import PATIENCE_S, Consistency
from podium.lib.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def consistency(clock: ManualClock) -> Consistency:
    return Consistency(clock)


def test_nothing_is_amiss_at_first(consistency: Consistency) -> None:
    assert consistency.is_consistent
    assert (consistency.changes, consistency.wait_s()) == (0, 0.0)


def test_a_store_that_changes_is_waited_for_however_long_it_takes(consistency: Consistency, clock: ManualClock) -> None:
    answers: list[bool] = []
    consistency.on_consistent(lambda: answers.append(consistency.is_consistent))
    with consistency.changing():
        with consistency.changing():
            assert not consistency.is_consistent
        clock.advance(10 * PATIENCE_S)
        assert not consistency.is_consistent
        assert not answers
    assert consistency.is_consistent
    assert (answers, consistency.changes) == ([True], 2)


def test_a_change_that_fails_holds_nobody(consistency: Consistency) -> None:
    with pytest.raises(LookupError), consistency.changing():
        raise LookupError
    assert consistency.is_consistent


def test_a_new_list_is_waited_for_but_not_forever(consistency: Consistency, clock: ManualClock) -> None:
    consistency.note_outdated("pods")
    clock.advance(PATIENCE_S - 1.0)
    assert (consistency.is_consistent, consistency.wait_s()) == (False, 1.0)
    # Said again, it is the same list that is waited for.
    consistency.note_outdated("pods")
    clock.advance(1.0)
    assert consistency.is_consistent
    consistency.note_outdated("pods")
    assert consistency.is_consistent


def test_decisions_go_on_when_every_list_is_there(consistency: Consistency) -> None:
    messages: list[str] = []
    consistency.on_consistent(lambda: messages.append("good"))
    consistency.note_outdated("pods")
    consistency.note_outdated("nodes")
    consistency.current("nodes")
    consistency.current("services")
    assert (consistency.is_consistent, messages) == (False, [])
    consistency.current("pods")
    assert (consistency.is_consistent, messages) == (True, ["good"])
