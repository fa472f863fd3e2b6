"""The plugins' handle in tests: a cluster that does not change, and a record of the plugins' actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from podium.binder import WaitingPods
from podium.cluster import Snapshot
from podium.cluster.pod_groups import PodGroupState, PodGroupStates
from podium.config import NEWEST, PodGroupRules, Release
from podium.engine.offline import OfflineHandle
from podium.engine.store import ObjectStore
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.objects.custom_resources import all_resources
from podium.objects.resource_types import PODS, KubeObject, ObjectT, ResourceType
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
class RecordingClient:
    """Implements `podium.framework.contract.handle.ApiClient`: records every request, and always succeeds."""

    bound: dict[str, str] = field(default_factory=dict)
    patches: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    created: list[Mapping[str, Any]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Record the node of the pod by the pod's key."""
        self.bound[pod.key] = node_name

    async def patch(
        self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any], subresource: str = ""
    ) -> ObjectT:
        """Record the change by the object's key. The object is not changed."""
        self.patches.append((item.key, change))
        return item

    async def create(self, resource: ResourceType[ObjectT], item: ObjectT, manifest: Mapping[str, Any]) -> ObjectT:
        """Record the manifest."""
        self.created.append(manifest)
        return item

    async def read(self, resource: ResourceType[ObjectT], item: ObjectT) -> ObjectT:
        """Return the object unchanged."""
        return item

    async def delete(self, resource: ResourceType[ObjectT], item: ObjectT) -> None:
        """Record the object's key."""
        self.deleted.append(item.key)

    async def merge_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Record the change by the pod's key."""
        self.patches.append((pod.key, {"status": status}))


@dataclass(frozen=True, slots=True)
class RecordedGroups:
    """Implements `podium.framework.contract.pod_groups.PodGroups` for pods that do not change.

    `activated` holds the pods that plugins have activated.
    """

    rules: PodGroupRules = field(default_factory=PodGroupRules)
    states: PodGroupStates = field(default_factory=PodGroupStates)
    activated: list[Pod] = field(default_factory=list)

    def state(self, key: str) -> PodGroupState | None:
        """Return the group's pods by their state."""
        return self.states.get(key)

    def scheduled(self) -> Iterable[Pod]:
        """Return the pods of all groups that have a node."""
        return self.states.scheduled()

    def activate(self, pods: Iterable[Pod]) -> None:
        """Record the pods."""
        self.activated.extend(pods)


class RecordingHandle(OfflineHandle):
    """Implements `podium.framework.Handle`.

    Args:
        objects: the objects for the listers, of any kind, including nodes and pods.

    `events` holds the Events that plugins have recorded. `waiting_pods.add(pod, node_name, {plugin: seconds})` makes a
    pod wait; `clock.advance(seconds)` lets time pass.
    """

    clock: ManualClock
    client: RecordingClient
    nominator: Nominator
    waiting_pods: WaitingPods

    def __init__(
        self, snapshot: Snapshot, objects: Iterable[KubeObject] = (), *, seed: int = 1, release: Release = NEWEST
    ) -> None:
        resources = {resource.type: resource for resource in all_resources()}
        store = ObjectStore((resources[type(item)], item) for item in objects)
        pods, clock = store.objects(PODS), ManualClock()
        super().__init__(
            clock,
            Random(seed),
            Nominator(pods.get),
            lambda: snapshot,
            store.lister,
            WaitingPods(clock),
            RecordingClient(),
            release=release,
        )
        self.events: list[NotedEvent] = []
        states = PodGroupStates()
        self.pod_groups = RecordedGroups(states=states)
        for pod in pods.values():
            self.nominator.add(pod)
            (states.put_assigned if pod.node_name else states.put_waiting)(pod)

    def record(self, pod: Pod, reason: str, note: str, *, action: str = "Scheduling", is_warning: bool = False) -> None:
        """Record the Event in `events`."""
        self.events.append(NotedEvent(pod, reason, note, action, is_warning))
