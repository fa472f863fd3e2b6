"""Where a pod is on its way through the queue, as a table."""

from __future__ import annotations

import enum
from typing import Final

from podium.lib.state_table import StateTable


class Place(enum.StrEnum):
    """Where a pod is, seen from the queue."""

    GONE = "gone"
    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"


class Move(enum.StrEnum):
    """What takes a pod from one place to another."""

    ENQUEUE = "enqueue"
    GATE = "gate"
    BACK_OFF = "back off"
    BACK_OFF_AFTER_ERROR = "back off after error"
    PARK = "park"
    POP = "pop"
    DELETE = "delete"
    DONE = "done"


PLACES: Final[StateTable[Place, Move]] = StateTable(
    "pod in the queue",
    {
        (Place.GONE, Move.ENQUEUE): Place.ACTIVE,
        (Place.GONE, Move.GATE): Place.GATED,
        # A pod that failed in its binding cycle is no longer in flight when it comes back.
        (Place.GONE, Move.BACK_OFF): Place.BACKOFF,
        (Place.GONE, Move.BACK_OFF_AFTER_ERROR): Place.ERROR_BACKOFF,
        (Place.ACTIVE, Move.POP): Place.IN_FLIGHT,
        (Place.ACTIVE, Move.DELETE): Place.GONE,
        (Place.BACKOFF, Move.POP): Place.IN_FLIGHT,
        (Place.BACKOFF, Move.ENQUEUE): Place.ACTIVE,
        (Place.BACKOFF, Move.DELETE): Place.GONE,
        (Place.ERROR_BACKOFF, Move.ENQUEUE): Place.ACTIVE,
        # A PreEnqueue plugin has failed, is asked again after the backoff, and may fail again.
        (Place.ERROR_BACKOFF, Move.BACK_OFF_AFTER_ERROR): Place.ERROR_BACKOFF,
        (Place.ERROR_BACKOFF, Move.GATE): Place.GATED,
        (Place.ERROR_BACKOFF, Move.DELETE): Place.GONE,
        (Place.UNSCHEDULABLE, Move.ENQUEUE): Place.ACTIVE,
        (Place.UNSCHEDULABLE, Move.BACK_OFF): Place.BACKOFF,
        (Place.UNSCHEDULABLE, Move.BACK_OFF_AFTER_ERROR): Place.ERROR_BACKOFF,
        (Place.UNSCHEDULABLE, Move.GATE): Place.GATED,
        (Place.UNSCHEDULABLE, Move.DELETE): Place.GONE,
        (Place.GATED, Move.ENQUEUE): Place.ACTIVE,
        (Place.GATED, Move.BACK_OFF): Place.BACKOFF,
        (Place.GATED, Move.BACK_OFF_AFTER_ERROR): Place.ERROR_BACKOFF,
        (Place.GATED, Move.GATE): Place.GATED,
        (Place.GATED, Move.DELETE): Place.GONE,
        (Place.IN_FLIGHT, Move.ENQUEUE): Place.ACTIVE,
        (Place.IN_FLIGHT, Move.GATE): Place.GATED,
        (Place.IN_FLIGHT, Move.BACK_OFF): Place.BACKOFF,
        (Place.IN_FLIGHT, Move.BACK_OFF_AFTER_ERROR): Place.ERROR_BACKOFF,
        (Place.IN_FLIGHT, Move.PARK): Place.UNSCHEDULABLE,
        (Place.IN_FLIGHT, Move.DONE): Place.GONE,
    },
)
