"""The containers in which pods wait, and the one operation that moves pods between them.

Owns the active heap, the two backoff heaps and the unschedulable pods, and tracks each pod's state. Never decides
where a pod belongs: the scheduling queue does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TypeAlias

from podium.framework.contract.plugin import QueueSortPlugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.lib.clock import Clock
from podium.lib.heap import KeyedHeap
from podium.lib.state_table import InvalidTransition
from podium.queues.backoff import PodBackoff
from podium.queues.observer import QueueObserver
from podium.queues.ordering import PodOrder
from podium.queues.states import QUEUE_STATES, QueueEvent, QueueState
from podium.queues.unschedulable_pods import UnschedulablePods

_Heap: TypeAlias = KeyedHeap[QueuedPodInfo]


class QueuedPods:
    """All waiting pods, each in exactly one container."""

    def __init__(
        self,
        queue_sort: QueueSortPlugin,
        backoff: PodBackoff,
        clock: Clock,
        label_readers: Mapping[str, frozenset[str]],
        observer: QueueObserver,
    ) -> None:
        self._backoff = backoff
        self._clock = clock
        self._states: dict[str, QueueState] = {}
        sort_key, expiration_s = PodOrder(queue_sort, observer), backoff.expiration_s
        self.active: _Heap = KeyedHeap(_key, sort_key)
        self.backing_off: _Heap = KeyedHeap(_key, lambda info: (expiration_s(info), sort_key(info)))
        self.backing_off_after_error: _Heap = KeyedHeap(_key, expiration_s)
        self.unschedulable = UnschedulablePods(label_readers)
        self._containers: dict[QueueState, _Heap | UnschedulablePods] = {
            QueueState.ACTIVE: self.active,
            QueueState.BACKOFF: self.backing_off,
            QueueState.ERROR_BACKOFF: self.backing_off_after_error,
            QueueState.UNSCHEDULABLE: self.unschedulable,
            QueueState.GATED: self.unschedulable,
        }

    def state_of(self, key: str) -> QueueState:
        """Return the state of the pod or group with that key; GONE if it is in none of the containers."""
        return self._states.get(key, QueueState.GONE)

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return the waiting pod, or group, with that key."""
        state = self._states.get(key)
        return self._containers[state].get(key) if state is not None else None

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """Return every waiting pod, in no particular order."""
        return chain(self.active, self.backing_off, self.backing_off_after_error, self.unschedulable)

    def move(
        self,
        info: QueuedPodInfo,
        move: QueueEvent,
        event: str,
        *,
        coming_from: QueueState = QueueState.GONE,
        now_s: float | None = None,
    ) -> QueueState:
        """Move the pod from its current state to the state that the transition table gives.

        Args:
            event: What caused the move, for the pod's history.
            coming_from: The state of a pod that is in none of the containers.
            now_s: The time, if the caller has just read it.

        Returns:
            The previous state.

        Raises:
            InvalidTransition: the table has no such transition.
        """
        key = info.key
        old_state = self._states.get(key, coming_from)
        try:
            new_state = QUEUE_STATES.next(old_state, move)
        except InvalidTransition:
            raise InvalidTransition(QUEUE_STATES.name, old_state, move, f"{key}:\n{info.transitions}") from None
        containers = self._containers
        # Without a change of state the push below only updates the position.
        if old_state is not new_state and old_state in containers:
            containers[old_state].remove(key)
        container = containers.get(new_state)
        if container is not None:
            container.push(info)
            self._states[key] = new_state
        else:
            self._states.pop(key, None)
        if now_s is None:
            now_s = self._clock.now()
        for member in info.member_infos:
            if new_state is QueueState.UNSCHEDULABLE or new_state is QueueState.GATED:
                member.schedulable_since_s = None
            elif member.schedulable_since_s is None:
                member.schedulable_since_s = now_s
            member.transitions.record(now_s, event, old_state, new_state, info.gating_plugin)
        return old_state

    def reorder(self, info: QueuedPodInfo) -> None:
        """Update the position of a waiting pod whose object has been replaced."""
        self._containers[self._states[info.key]].push(info)

    def reorder_all(self) -> None:
        """Order all waiting pods anew: the QueueSort plugin may go by objects that came after the pods.

        Cost: one sort key for each pod.
        """
        # Pods that wait for events have no order.
        self.active.reorder()
        self.backing_off.reorder()

    def is_backing_off(self, info: QueuedPodInfo) -> bool:
        """Return whether the pod is backing off now."""
        return self._backoff.is_backing_off(info, self._clock.now())

    def backoff_ends_s(self, info: QueuedPodInfo) -> float:
        """Return the first moment at which the pod no longer backs off."""
        return self._backoff.expiration_s(info) + 1.0

    def backoff_completed(self) -> QueuedPodInfo | None:
        """Return a pod whose backoff has ended; pods that back off after an error come last."""
        for heap in (self.backing_off, self.backing_off_after_error):
            first = heap.peek()
            if first is not None and not self.is_backing_off(first):
                return first
        return None

    def __len__(self) -> int:
        return len(self._states)


def _key(info: QueuedPodInfo) -> str:
    return info.key
