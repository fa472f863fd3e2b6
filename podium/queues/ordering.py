"""The order in which pods are tried, as the QueueSort plugin has it.

Source: kubernetes pkg/scheduler/framework/types.go (LessFunc), v1.36.2.
Differs: a pod that the plugin cannot order comes after all that it can; upstream's process would end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np

from podium.framework.contract.interface import QueueSortPlugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import PluginError, told
from podium.queues.observer import QueueObserver

SortKey: TypeAlias = Callable[[QueuedPodInfo], Any]

_NOTHING: Final = object()


@runtime_checkable
class SortsByKey(Protocol):
    """What a QueueSort plugin may offer beside `less`: heaps are several times faster with a key."""

    def sort_key(self, info: QueuedPodInfo) -> Any:
        """Orders pods as `less` does."""


class PodOrder:
    """Sort keys of pods, the lowest first. Never raises, whatever the plugin does.

    Pods that the plugin fails for are ordered among themselves by priority and time, as PrioritySort does.
    """

    def __init__(self, queue_sort: QueueSortPlugin, observer: QueueObserver) -> None:
        self._name = queue_sort.name
        self._observer = observer
        self._sort_key = self._sort_key_of(queue_sort)
        self._known: Any = _NOTHING

    def __call__(self, info: QueuedPodInfo) -> tuple[bool, Any]:
        """The key of the pod as it is now."""
        try:
            key = self._sort_key(info)
            if self._known is _NOTHING:
                self._known = key
            # One that compares with another's compares with everybody's; in a tuple, as the heap compares them.
            (key, 0) < (self._known, 0)  # noqa: B015 - whether it raises is the question
        except BaseException as error:  # noqa: BLE001 - a plugin's failure must not lose the pod
            self._observer.plugin_failed(self._name, "QueueSort", info.pod, error)
            return True, _by_priority(info)
        return False, key

    def _sort_key_of(self, queue_sort: QueueSortPlugin) -> SortKey:
        """The plugin's own sort key, unless it is inherited and `less` is not: then the two may disagree."""
        if isinstance(queue_sort, SortsByKey) and _depth(queue_sort, "sort_key") <= _depth(queue_sort, "less"):
            return queue_sort.sort_key

        def compare(a: QueuedPodInfo, b: QueuedPodInfo) -> int:
            try:
                return -1 if _demand_bool(queue_sort.less(a, b)) else int(_demand_bool(queue_sort.less(b, a)))
            except BaseException as error:  # noqa: BLE001 - two pods that the plugin cannot compare, deep in a heap
                self._observer.plugin_failed(self._name, "QueueSort", a.pod, error)
                first, second = _by_priority(a), _by_priority(b)
                return (first > second) - (first < second)

        comparable = functools.cmp_to_key(compare)

        def sort_key(info: QueuedPodInfo) -> Any:
            _demand_bool(queue_sort.less(info, info))
            # A heap leaves entries behind that it compares later still: they must not change with the pod.
            return comparable(replace(info))

        return sort_key


def _demand_bool(answer: object) -> bool:
    """What `less` answered; NumPy's truth values will do too.

    Raises:
        PluginError: it is neither True nor False.
    """
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise PluginError(f"answered {told(answer)}, which is neither True nor False")


def _by_priority(info: QueuedPodInfo) -> tuple[int, float]:
    return -info.pod.priority, info.timestamp_s


def _depth(plugin: object, method: str) -> int:
    """How far up the classes of the plugin the method is defined."""
    return next((depth for depth, cls in enumerate(type(plugin).__mro__) if method in vars(cls)), 0)
