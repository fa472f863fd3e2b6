"""What plugins are lent in tests: a world that stands still, and remembers what was done to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic

from podium.binder import WaitingPods
from podium.cluster import Snapshot
from podium.framework.interface import Lister
from podium.framework.still import NoPreemptions
from podium.lib.change_log import ChangeLog
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.objects.resource_types import KubeObject, ObjectT, ResourceType
from podium.queues import Nominator


@dataclass(frozen=True, slots=True)
class NotedEvent:
    """An Event that a plugin has recorded."""

    pod: Pod
    reason: str
    note: str
    action: str
    is_warning: bool


@dataclass(frozen=True, slots=True)
class StillClient:
    """Implements `podium.framework.interface.ApiClient`: remembers what was asked for, and always succeeds."""

    bound: dict[str, str] = field(default_factory=dict)
    patches: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Note the node of the pod, by its key."""
        self.bound[pod.key] = node_name

    async def patch(self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any]) -> ObjectT:
        """Note the change, by the object's key; the object stays as it is."""
        del resource
        self.patches.append((item.key, change))
        return item


class StillLister(Generic[ObjectT]):
    """Implements `podium.framework.interface.Lister`."""

    def __init__(self, objects: Iterable[ObjectT]) -> None:
        self._objects = {each.key: each for each in objects}
        self._nothing: ChangeLog[ObjectT] = ChangeLog()

    def get(self, key: str) -> ObjectT | None:
        """The object of that key."""
        return self._objects.get(key)

    def list(self) -> Iterable[ObjectT]:
        """All of them."""
        return self._objects.values()

    def in_namespace(self, namespace: str) -> Iterable[ObjectT]:
        """Those of one namespace."""
        return [each for each in self._objects.values() if each.metadata.namespace == namespace]

    def change_log(self) -> ChangeLog[ObjectT]:
        """Nothing ever changes."""
        return self._nothing


class StillHandle:
    """Implements `podium.framework.Handle`.

    Args:
        objects: what the listers list, of any kinds, nodes and pods among them.

    `events` are those that plugins have recorded. `waiting_pods.add(pod, node_name, {plugin: seconds})` makes a pod
    wait; `clock.advance(seconds)` lets time pass.
    """

    def __init__(self, snapshot: Snapshot, objects: Iterable[KubeObject] = (), *, seed: int = 1) -> None:
        self.clock = ManualClock()
        self.random = Random(seed)
        self.client = StillClient()
        self.preemptions = NoPreemptions()
        self.waiting_pods = WaitingPods(self.clock)
        self.events: list[NotedEvent] = []
        self._snapshot = snapshot
        self._objects = tuple(objects)
        self._pods = {each.key: each for each in self._objects if isinstance(each, Pod)}
        self.nominator = Nominator(self._pods.get)
        for pod in self._pods.values():
            if pod.status.nominated_node_name:
                self.nominator.add(pod)

    def snapshot(self) -> Snapshot:
        """The snapshot that the current attempt decides on."""
        return self._snapshot

    def lister(self, resource: ResourceType[ObjectT]) -> Lister[ObjectT]:
        """The objects of a kind."""
        return StillLister(each for each in self._objects if isinstance(each, resource.type))

    def record(self, pod: Pod, reason: str, note: str, *, action: str = "Scheduling", is_warning: bool = False) -> None:
        """Remember the Event."""
        self.events.append(NotedEvent(pod, reason, note, action, is_warning))
