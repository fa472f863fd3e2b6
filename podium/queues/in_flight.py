"""The pods in flight, that is, being scheduled, and the events that have arrived in the meantime.

An event that arrives while a pod is being scheduled may be too late for the pod's snapshot. It is recorded until every
pod that was in flight at the time has been requeued or is done.

Source: kubernetes pkg/scheduler/backend/queue/active_queue.go, v1.36.2.
Differs: a pod's position in the record is an index, not an entry in the event list.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.queues.hints import Hints, Interest, Strategy
from podium.queues.observer import QueueObserver

POD_POPPED = "PodPopped"


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event and the objects that came with it."""

    interest: Interest
    old: Any
    new: Any


class InFlightPods:
    """Pods in flight by UID, oldest first, and the events since the oldest was popped.

    Invariant: every recorded event is newer than the oldest pod in flight.
    """

    def __init__(self, observer: QueueObserver) -> None:
        self._observer = observer
        # An OrderedDict finds its oldest item at once; a plain dict would step over all the removed ones first.
        self._pods: OrderedDict[str, tuple[QueuedPodInfo, int]] = OrderedDict()
        self._events: list[RecordedEvent] = []
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def add(self, info: QueuedPodInfo) -> None:
        """Add a popped pod, which must not be in flight yet."""
        uid = info.pod.uid
        assert uid not in self._pods, info.transitions
        self._pods[uid] = (info, self._forgotten + len(self._events))
        self._observer.in_flight_events_delta(POD_POPPED, 1)

    def record(self, interest: Interest, old: Any, new: Any) -> None:
        """Record the event for the pods in flight, of which there must be at least one."""
        assert self._pods
        self._events.append(RecordedEvent(interest, old, new))
        self._observer.in_flight_events_delta(interest.label, 1)

    def events_since_popped(self, uid: str) -> Iterator[RecordedEvent] | None:
        """Return the events since the pod was popped, oldest first; None if the pod is not in flight."""
        entry = self._pods.get(uid)
        if entry is None:
            return None
        events = self._events
        return (events[index] for index in range(entry[1] - self._forgotten, len(events)))

    def remove(self, uid: str) -> QueuedPodInfo | None:
        """Remove the pod, and the events that no other pod in flight needs."""
        entry = self._pods.pop(uid, None)
        if entry is None:
            return None
        self._observer.in_flight_events_delta(POD_POPPED, -1)
        if self._events:
            self._forget_events()
        return entry[0]

    def pods(self) -> tuple[QueuedPodInfo, ...]:
        """Return the pods in flight, oldest first."""
        return tuple(info for info, _ in self._pods.values())

    @property
    def event_count(self) -> int:
        """The number of recorded events."""
        return len(self._events)

    def _forget_events(self) -> None:
        needless = len(self._events)
        if self._pods:
            _, start = next(iter(self._pods.values()))
            needless = start - self._forgotten
        if needless:
            for event in self._events[:needless]:
                self._observer.in_flight_events_delta(event.interest.label, -1)
            del self._events[:needless]
            self._forgotten += needless


def soonest(hints: Hints, info: QueuedPodInfo, events: Iterable[RecordedEvent]) -> Strategy:
    """Return how soon the pod may be tried again after these events, which came during its attempt."""
    best = Strategy.SKIP
    for event in events:
        strategy = hints.strategy(info, event.interest, event.old, event.new)
        if strategy is Strategy.IMMEDIATELY:
            return strategy
        if strategy is Strategy.AFTER_BACKOFF:
            best = strategy
            if not info.pending_plugins:
                break
    return best
