"""The states of a pod in the scheduling queue, as a transition table."""

from __future__ import annotations

import enum
from typing import Final

from podium.lib.state_table import StateTable


class QueueState(enum.StrEnum):
    """The state of a pod in the scheduling queue."""

    GONE = "gone"
    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    INCOMPLETE = "incomplete"
    PENDING = "pending"
    IN_FLIGHT = "in flight"


class QueueEvent(enum.StrEnum):
    """The events that move a pod from one state to another."""

    ENQUEUE = "enqueue"
    GATE = "gate"
    BACK_OFF = "back off"
    BACK_OFF_AFTER_ERROR = "back off after error"
    MARK_UNSCHEDULABLE = "mark unschedulable"
    AWAIT_GROUP = "await group"
    AWAIT_RETURN = "await return"
    POP = "pop"
    DELETE = "delete"
    DONE = "done"


QUEUE_STATES: Final[StateTable[QueueState, QueueEvent]] = StateTable(
    "pod in the queue",
    {
        (QueueState.GONE, QueueEvent.ENQUEUE): QueueState.ACTIVE,
        (QueueState.GONE, QueueEvent.GATE): QueueState.GATED,
        # A pod whose binding cycle failed is no longer in flight when it is requeued.
        (QueueState.GONE, QueueEvent.BACK_OFF): QueueState.BACKOFF,
        (QueueState.GONE, QueueEvent.BACK_OFF_AFTER_ERROR): QueueState.ERROR_BACKOFF,
        (QueueState.ACTIVE, QueueEvent.POP): QueueState.IN_FLIGHT,
        (QueueState.ACTIVE, QueueEvent.DELETE): QueueState.GONE,
        (QueueState.BACKOFF, QueueEvent.POP): QueueState.IN_FLIGHT,
        (QueueState.BACKOFF, QueueEvent.ENQUEUE): QueueState.ACTIVE,
        (QueueState.BACKOFF, QueueEvent.DELETE): QueueState.GONE,
        (QueueState.ERROR_BACKOFF, QueueEvent.ENQUEUE): QueueState.ACTIVE,
        # A PreEnqueue plugin failed, runs again after the backoff, and may fail again.
        (QueueState.ERROR_BACKOFF, QueueEvent.BACK_OFF_AFTER_ERROR): QueueState.ERROR_BACKOFF,
        (QueueState.ERROR_BACKOFF, QueueEvent.GATE): QueueState.GATED,
        (QueueState.ERROR_BACKOFF, QueueEvent.DELETE): QueueState.GONE,
        (QueueState.UNSCHEDULABLE, QueueEvent.ENQUEUE): QueueState.ACTIVE,
        (QueueState.UNSCHEDULABLE, QueueEvent.BACK_OFF): QueueState.BACKOFF,
        (QueueState.UNSCHEDULABLE, QueueEvent.BACK_OFF_AFTER_ERROR): QueueState.ERROR_BACKOFF,
        (QueueState.UNSCHEDULABLE, QueueEvent.GATE): QueueState.GATED,
        (QueueState.UNSCHEDULABLE, QueueEvent.DELETE): QueueState.GONE,
        (QueueState.GATED, QueueEvent.ENQUEUE): QueueState.ACTIVE,
        (QueueState.GATED, QueueEvent.BACK_OFF): QueueState.BACKOFF,
        (QueueState.GATED, QueueEvent.BACK_OFF_AFTER_ERROR): QueueState.ERROR_BACKOFF,
        (QueueState.GATED, QueueEvent.GATE): QueueState.GATED,
        (QueueState.GATED, QueueEvent.DELETE): QueueState.GONE,
        # A pod whose PodGroup is unknown, and one whose group is being tried. Others are in the state of their group.
        (QueueState.GONE, QueueEvent.AWAIT_GROUP): QueueState.INCOMPLETE,
        (QueueState.GONE, QueueEvent.AWAIT_RETURN): QueueState.PENDING,
        (QueueState.INCOMPLETE, QueueEvent.DELETE): QueueState.GONE,
        (QueueState.PENDING, QueueEvent.DELETE): QueueState.GONE,
        (QueueState.IN_FLIGHT, QueueEvent.ENQUEUE): QueueState.ACTIVE,
        (QueueState.IN_FLIGHT, QueueEvent.GATE): QueueState.GATED,
        (QueueState.IN_FLIGHT, QueueEvent.BACK_OFF): QueueState.BACKOFF,
        (QueueState.IN_FLIGHT, QueueEvent.BACK_OFF_AFTER_ERROR): QueueState.ERROR_BACKOFF,
        (QueueState.IN_FLIGHT, QueueEvent.MARK_UNSCHEDULABLE): QueueState.UNSCHEDULABLE,
        (QueueState.IN_FLIGHT, QueueEvent.DONE): QueueState.GONE,
    },
)
