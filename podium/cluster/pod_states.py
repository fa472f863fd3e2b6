"""The states of a pod in the cache, as a transition table.

Source: kubernetes pkg/scheduler/backend/cache/interface.go and cache.go, v1.37.2.
"""

from __future__ import annotations

import enum
from typing import Final

from podium.lib.error_text import UserFacingError
from podium.lib.state_table import InvalidTransition, StateTable
from podium.objects.core import Pod


class PodState(enum.Enum):
    """The state of a pod in the cache."""

    UNKNOWN = enum.auto()
    ASSUMED = enum.auto()
    ADDED = enum.auto()


class PodEvent(enum.Enum):
    """The events of a pod in the cache."""

    ASSUME = enum.auto()
    FORGET = enum.auto()
    ADD = enum.auto()
    UPDATE = enum.auto()
    REMOVE = enum.auto()


POD_STATES: Final = StateTable(
    "pod in the cache",
    {
        (PodState.UNKNOWN, PodEvent.ASSUME): PodState.ASSUMED,
        (PodState.UNKNOWN, PodEvent.ADD): PodState.ADDED,
        (PodState.UNKNOWN, PodEvent.FORGET): PodState.UNKNOWN,
        (PodState.ASSUMED, PodEvent.ADD): PodState.ADDED,
        (PodState.ASSUMED, PodEvent.FORGET): PodState.UNKNOWN,
        (PodState.ASSUMED, PodEvent.REMOVE): PodState.UNKNOWN,
        (PodState.ADDED, PodEvent.UPDATE): PodState.ADDED,
        (PodState.ADDED, PodEvent.REMOVE): PodState.UNKNOWN,
    },
)


class CacheError(UserFacingError):
    """An operation that the pod's state does not allow; the cache is unchanged."""


_REFUSAL_MESSAGES: Final = {
    PodEvent.ASSUME: "pod {pod} is in the cache, so can't be assumed",
    PodEvent.FORGET: "pod {pod} is not assumed, so it cannot be removed or forgotten",
    PodEvent.ADD: "pod {pod} was already in added state",
    PodEvent.UPDATE: "pod {pod} is not in added state, so cannot be updated",
    PodEvent.REMOVE: "pod {pod} is not found in scheduler cache, so cannot be removed from it",
}


def next_state(state: PodState, event: PodEvent, pod: Pod) -> PodState:
    """Return the pod's state after the event.

    Raises:
        CacheError: the state does not allow the event.
    """
    try:
        return POD_STATES.next(state, event)
    except InvalidTransition:
        raise CacheError(_REFUSAL_MESSAGES[event].format(pod=f"{pod.uid}({pod.key})")) from None
