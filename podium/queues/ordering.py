"""Orders the pods by the QueueSort plugin.

Source: kubernetes pkg/scheduler/framework/types.go (LessFunc), v1.36.2.
Differs: a pod that the plugin fails to order comes after all other pods; upstream's process would crash.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np

from podium.framework.contract.plugin import QueueSortPlugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import PluginError, short_repr
from podium.objects.core import Pod
from podium.queues.observer import QueueObserver

SortKey: TypeAlias = Callable[[QueuedPodInfo], Any]

_NOTHING: Final = object()


@runtime_checkable
class SortsByKey(Protocol):
    """A QueueSort plugin with a key function in addition to `less`, which makes the heaps several times faster."""

    def sort_key(self, info: QueuedPodInfo) -> Any:
        """Return a key that orders pods as `less` does."""


class PodOrder:
    """Sort keys of pods, lowest first. Never raises, whatever the plugin does.

    Pods for which the plugin fails are ordered among themselves by priority and time, as PrioritySort does.
    """

    def __init__(self, queue_sort: QueueSortPlugin, observer: QueueObserver) -> None:
        self._name = queue_sort.name
        self._observer = observer
        self._sort_key = self._sort_key_of(queue_sort)
        self._known: Any = _NOTHING

    def __call__(self, info: QueuedPodInfo) -> tuple[bool, Any]:
        """Return the pod's current sort key."""
        try:
            key = self._sort_key(info)
            if self._known is _NOTHING:
                self._known = key
            # A key that compares with one known key compares with all. The heap compares tuples, so this does too.
            (key, 0) < (self._known, 0)  # noqa: B015 - whether it raises is the question
        except BaseException as error:  # noqa: BLE001 - a failing plugin must not lose the pod
            self._observer.plugin_failed(self._name, "QueueSort", info.pod, error)
            return True, _by_priority(info)
        return False, key

    def _sort_key_of(self, queue_sort: QueueSortPlugin) -> SortKey:
        """Return the plugin's `sort_key`, or one that calls `less` if a subclass overrides only `less`."""
        if isinstance(queue_sort, SortsByKey) and _depth(queue_sort, "sort_key") <= _depth(queue_sort, "less"):
            return queue_sort.sort_key

        def compare(a: QueuedPodInfo, b: QueuedPodInfo) -> int:
            try:
                return -1 if _demand_bool(queue_sort.less(a, b)) else int(_demand_bool(queue_sort.less(b, a)))
            except BaseException as error:  # noqa: BLE001 - raised from deep inside a heap, it would corrupt the heap
                self._observer.plugin_failed(self._name, "QueueSort", a.pod, error)
                first, second = _by_priority(a), _by_priority(b)
                return (first > second) - (first < second)

        comparable = functools.cmp_to_key(compare)

        def sort_key(info: QueuedPodInfo) -> Any:
            _demand_bool(queue_sort.less(info, info))
            # The heap keeps outdated entries and still compares them later: their keys must not change with the pod.
            return comparable(replace(info))

        return sort_key


def in_queue_order(pods: Iterable[Pod], queue_sort: QueueSortPlugin) -> list[Pod]:
    """Return the pods as the plugin orders them, if they entered the queue one after the other."""
    infos = [QueuedPodInfo(pod, float(number)) for number, pod in enumerate(pods)]
    return [info.pod for info in sorted(infos, key=PodOrder(queue_sort, QueueObserver()))]


def _demand_bool(answer: object) -> bool:
    """Check the return value of `less`; NumPy's booleans are accepted too.

    Raises:
        PluginError: the value is neither True nor False.
    """
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise PluginError(f"answered {short_repr(answer)}, which is neither True nor False")


def _by_priority(info: QueuedPodInfo) -> tuple[int, float]:
    return -info.pod.priority, info.timestamp_s


def _depth(plugin: object, method: str) -> int:
    """Return the position of the class that defines the method in the plugin's method resolution order."""
    return next((depth for depth, cls in enumerate(type(plugin).__mro__) if method in vars(cls)), 0)
