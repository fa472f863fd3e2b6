"""The places in which pods wait, and the one way from one to another.

Owns the active heap, the two backoff heaps and the unschedulable pods, and which pod is in which of them. Never decides
where a pod belongs: the scheduling queue does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from podium.framework.interface import QueueSortPlugin
from podium.framework.queued_pod import QueuedPodInfo
from podium.lib.clock import Clock
from podium.lib.heap import KeyedHeap
from podium.lib.state_table import InvalidTransition
from podium.queues.backoff import PodBackoff
from podium.queues.places import PLACES, Move, Place
from podium.queues.unschedulable_pods import UnschedulablePods

_Heap: TypeAlias = KeyedHeap[QueuedPodInfo]


@runtime_checkable
class SortsByKey(Protocol):
    """What a QueueSort plugin may offer beside `less`: heaps are several times faster with a key."""

    def sort_key(self, info: QueuedPodInfo) -> Any:
        """Orders pods as `less` does."""


class QueuedPods:
    """Every pod that waits, each in exactly one place."""

    def __init__(
        self,
        queue_sort: QueueSortPlugin,
        backoff: PodBackoff,
        clock: Clock,
        label_readers: Mapping[str, frozenset[str]],
    ) -> None:
        self._backoff = backoff
        self._clock = clock
        self._places: dict[str, Place] = {}
        sort_key, expiration_s = _sort_key_of(queue_sort), backoff.expiration_s
        self.active: _Heap = KeyedHeap(_key, sort_key)
        self.backing_off: _Heap = KeyedHeap(_key, lambda info: (expiration_s(info), sort_key(info)))
        self.backing_off_after_error: _Heap = KeyedHeap(_key, expiration_s)
        self.unschedulable = UnschedulablePods(label_readers)
        self._homes: dict[Place, _Heap | UnschedulablePods] = {
            Place.ACTIVE: self.active,
            Place.BACKOFF: self.backing_off,
            Place.ERROR_BACKOFF: self.backing_off_after_error,
            Place.UNSCHEDULABLE: self.unschedulable,
            Place.GATED: self.unschedulable,
        }

    def place(self, key: str) -> Place:
        """Where the pod waits; GONE if nowhere."""
        return self._places.get(key, Place.GONE)

    def get(self, key: str) -> QueuedPodInfo | None:
        """The waiting pod with that key."""
        place = self._places.get(key)
        return self._homes[place].get(key) if place is not None else None

    def move(self, info: QueuedPodInfo, move: Move, event: str, *, coming_from: Place = Place.GONE) -> Place:
        """Take the pod from where it is to where the move leads.

        Args:
            event: What caused the move, for the pod's story.
            coming_from: Where a pod comes from that waits nowhere.

        Returns:
            The place it was in.

        Raises:
            InvalidTransition: there is no such move from where it is.
        """
        key = info.pod.key
        before = self._places.get(key, coming_from)
        try:
            after = PLACES.next(before, move)
        except InvalidTransition:
            raise InvalidTransition(PLACES.name, before, move, f"{key}:\n{info.story}") from None
        homes = self._homes
        if before is not after and before in homes:
            homes[before].remove(key)
        home = homes.get(after)
        if home is not None:
            home.push(info)
            self._places[key] = after
        else:
            self._places.pop(key, None)
        info.story.tell(self._clock.now(), event, before, after, info.gating_plugin)
        return before

    def replaced(self, info: QueuedPodInfo) -> None:
        """The waiting pod's object has been replaced: order it anew."""
        key = info.pod.key
        self._homes[self._places[key]].push(info)

    def is_backing_off(self, info: QueuedPodInfo) -> bool:
        """Whether the pod has to wait for its backoff now."""
        return self._backoff.is_backing_off(info, self._clock.now())

    def backoff_completed(self) -> QueuedPodInfo | None:
        """A pod that has backed off for long enough; those with errors come last."""
        for heap in (self.backing_off, self.backing_off_after_error):
            first = heap.peek()
            if first is not None and not self.is_backing_off(first):
                return first
        return None

    def __len__(self) -> int:
        return len(self._places)


def _key(info: QueuedPodInfo) -> str:
    return info.pod.key


def _sort_key_of(queue_sort: QueueSortPlugin) -> Callable[[QueuedPodInfo], Any]:
    """The plugin's own sort key, unless it is inherited and `less` is not: then the two may disagree."""
    if isinstance(queue_sort, SortsByKey) and _depth(queue_sort, "sort_key") <= _depth(queue_sort, "less"):
        return queue_sort.sort_key

    def compare(a: QueuedPodInfo, b: QueuedPodInfo) -> int:
        return -1 if queue_sort.less(a, b) else int(queue_sort.less(b, a))

    comparable = functools.cmp_to_key(compare)
    # A heap leaves entries behind that it compares later still: they must not change with the pod.
    return lambda info: comparable(replace(info))


def _depth(plugin: object, method: str) -> int:
    """How far up the classes of the plugin the method is defined."""
    return next((depth for depth, cls in enumerate(type(plugin).__mro__) if method in vars(cls)), 0)
