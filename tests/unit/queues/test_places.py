"""The table itself; that the queue keeps to it is shown by the simulation."""

from __future__ import annotations

import itertools

import pytest

from podium.lib.state_table import InvalidTransition
from podium.queues import PLACES, Move, Place

QUEUED = {Place.ACTIVE, Place.BACKOFF, Place.ERROR_BACKOFF, Place.UNSCHEDULABLE, Place.GATED}


@pytest.mark.parametrize(("place", "move"), list(itertools.product(Place, Move)))
def test_a_move_leads_to_one_kind_of_place_wherever_it_starts(place: Place, move: Move) -> None:
    destinations = {
        Move.ENQUEUE: Place.ACTIVE,
        Move.GATE: Place.GATED,
        Move.BACK_OFF: Place.BACKOFF,
        Move.BACK_OFF_AFTER_ERROR: Place.ERROR_BACKOFF,
        Move.PARK: Place.UNSCHEDULABLE,
        Move.POP: Place.IN_FLIGHT,
        Move.DELETE: Place.GONE,
        Move.DONE: Place.GONE,
    }
    if (place, move) in PLACES.transitions:
        assert PLACES.next(place, move) is destinations[move]
    else:
        with pytest.raises(InvalidTransition):
            PLACES.next(place, move)


def test_every_waiting_pod_can_be_deleted() -> None:
    assert {place for place, move in PLACES.transitions if move is Move.DELETE} == QUEUED


def test_pods_that_back_off_after_an_error_are_never_popped_early() -> None:
    assert {place for place, move in PLACES.transitions if move is Move.POP} == {Place.ACTIVE, Place.BACKOFF}


def test_every_place_can_be_reached_and_left() -> None:
    assert set(PLACES.transitions.values()) == set(Place)
    assert {place for place, _ in PLACES.transitions} == set(Place)
