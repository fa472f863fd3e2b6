"""The table itself; that the queue keeps to it is shown by the simulation."""

from __future__ import annotations

import itertools

import pytest

from podium.lib.state_table import InvalidTransition
from podium.queues import QUEUE_STATES, QueueEvent, QueueState

QUEUED = {QueueState.ACTIVE, QueueState.BACKOFF, QueueState.ERROR_BACKOFF, QueueState.UNSCHEDULABLE, QueueState.GATED}


@pytest.mark.parametrize(("place", "move"), list(itertools.product(QueueState, QueueEvent)))
def test_a_move_leads_to_one_kind_of_place_wherever_it_starts(place: QueueState, move: QueueEvent) -> None:
    destinations = {
        QueueEvent.ENQUEUE: QueueState.ACTIVE,
        QueueEvent.GATE: QueueState.GATED,
        QueueEvent.BACK_OFF: QueueState.BACKOFF,
        QueueEvent.BACK_OFF_AFTER_ERROR: QueueState.ERROR_BACKOFF,
        QueueEvent.MARK_UNSCHEDULABLE: QueueState.UNSCHEDULABLE,
        QueueEvent.AWAIT_GROUP: QueueState.INCOMPLETE,
        QueueEvent.AWAIT_RETURN: QueueState.PENDING,
        QueueEvent.POP: QueueState.IN_FLIGHT,
        QueueEvent.DELETE: QueueState.GONE,
        QueueEvent.DONE: QueueState.GONE,
    }
    if (place, move) in QUEUE_STATES.transitions:
        assert QUEUE_STATES.next(place, move) is destinations[move]
    else:
        with pytest.raises(InvalidTransition):
            QUEUE_STATES.next(place, move)


def test_every_waiting_pod_can_be_deleted() -> None:
    deletable = {place for place, move in QUEUE_STATES.transitions if move is QueueEvent.DELETE}
    assert deletable == QUEUED | {QueueState.INCOMPLETE, QueueState.PENDING}


def test_pods_that_back_off_after_an_error_are_never_popped_early() -> None:
    assert {place for place, move in QUEUE_STATES.transitions if move is QueueEvent.POP} == {
        QueueState.ACTIVE,
        QueueState.BACKOFF,
    }


def test_every_place_can_be_reached_and_left() -> None:
    assert set(QUEUE_STATES.transitions.values()) == set(QueueState)
    assert {place for place, _ in QUEUE_STATES.transitions} == set(QueueState)
