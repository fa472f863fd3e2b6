"""The plugin contract: one abstract class per extension point, all derived from `Plugin`.

A plugin derives from the class of each extension point that it implements. A misspelt method is noticed when the
plugin is constructed, because the abstract method stays unimplemented. A plain `def` method decides and must not wait;
an `async def` method carries a decision out. Every plugin is constructed as `Class(args, handle)`.

This module has the classes for pods in the queue; `filter`, `post_filter`, `score`, `bind` and `placements` have those
of the later extension points.

Source: staging kube-scheduler/framework/interface.go, v1.36.2.
Differs: a success is None.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from podium.cluster import Snapshot
from podium.framework.contract.cluster_event import ALL_EVENTS, EventRegistration
from podium.framework.contract.handle import Handle
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import Status, short_repr
from podium.lib.change_log import ChangeLog
from podium.objects.core import Pod, PodSpec

_NO_CHANGES: Final[ChangeLog[int]] = ChangeLog()


class Scope(enum.IntEnum):
    """The state that a plugin's answer about a node depends on, besides the pod's spec.

    Answers of every scope but CLUSTER are cached for pods of the same spec until something in that scope changes. Dry
    runs can evaluate filters of scope NODE and USAGE for many nodes at once.
    """

    NODE = 0
    """The node itself: labels, taints, allocatable resources."""
    USAGE = 1
    """The node, the number of pods on it, and the sum of their requests, also as `nonzero_requested` counts them."""
    PODS_ON_NODE = 2
    """The node, and the pods on it."""
    CLUSTER = 3
    """Anything: other nodes, other objects, the pod's labels, the clock."""


class Plugin(ABC):
    """A scheduling plugin. Its class name is its name in the configuration, in metrics and in logs.

    `Args` is the type of its args, a dataclass or msgspec struct: the configuration's `pluginConfig` entry is validated
    against it, and `args` is a value of that type. Without `Args`, `args` is the unvalidated entry, or None.
    """

    name: ClassVar[str]
    Args: ClassVar[type | None] = None

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def __init_subclass__(cls) -> None:
        """Name the plugin after its class, unless it names itself.

        Raises:
            TypeError: the name is not a string, but for example a property.
        """
        name: object = cls.__dict__.get("name", cls.__name__)
        if not isinstance(name, str) or not name:
            raise TypeError(f"{cls.__name__}.name: {short_repr(name)} is not a name")
        cls.name = name

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events that may make a pod schedulable that this plugin rejected. By default all events."""
        return ALL_EVENTS

    def filter_scope(self, spec: PodSpec) -> Scope:
        """Return the scope that PreFilter and Filter depend on for pods with this spec. The default is CLUSTER.

        With a smaller scope, PreFilter must depend on the spec alone.
        """
        return Scope.CLUSTER

    def score_scope(self, spec: PodSpec) -> Scope:
        """Return the scope that PreScore and Score depend on for pods with this spec. The default is CLUSTER.

        With a smaller scope, PreScore must depend on the spec alone, and NormalizeScores on the scores alone: equal raw
        scores must become equal normalised scores.
        """
        return Scope.CLUSTER

    def outside_changes(self, snapshot: Snapshot) -> ChangeLog[int]:
        """Return a log of the rows about which the plugin answers otherwise, though nothing in its scope has changed.

        A plugin of a scope smaller than CLUSTER overrides this if its answers also depend on what it reads elsewhere,
        such as measured loads. It is called before each attempt with cached answers. Another log than the last one
        stands for changes of all rows. The log of a plugin of scope NODE must not have a row for every pod that is
        placed, since all plugins are asked again about its rows.
        """
        return _NO_CHANGES


class PreEnqueuePlugin(Plugin):
    """Decides whether a pod may enter the active queue."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Return success to admit the pod to the queue; any other status keeps it gated."""


class QueueSortPlugin(Plugin):
    """Orders the active queue; there is exactly one."""

    @abstractmethod
    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Return True if `a` is scheduled before `b`."""
