"""The plugins' handle without an API server: it answers questions and carries nothing out.

Owns the stand-ins for the protocols of `podium.framework.contract` that refuse, are empty, or do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar, cast

from podium.cluster import Snapshot
from podium.config import NEWEST, Release
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.dry_runs import NodeDryRun
from podium.framework.contract.handle import ApiClient, Handle, Lister, Nominator, Preemptions, WaitingPod, WaitingPods
from podium.framework.contract.node_metrics import NodeMetrics
from podium.framework.contract.pod_groups import PodGroups
from podium.lib.clock import Clock
from podium.lib.error_text import UserFacingError
from podium.objects.core import Pod
from podium.objects.node_metrics import NODE_METRICS, MetricsSource
from podium.objects.resource_types import ObjectT, ResourceType

T = TypeVar("T")


class WriteRefusedError(UserFacingError):
    """A plugin tried to write although there is no API server."""


class RefusingClient:
    """Implements `podium.framework.contract.handle.ApiClient`: refuses every write."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Raise `WriteRefusedError`."""
        raise WriteRefusedError(f"there is no API server to bind {pod.key} to {node_name}")

    async def patch(
        self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any], subresource: str = ""
    ) -> ObjectT:
        """Raise `WriteRefusedError`."""
        del change, subresource
        raise WriteRefusedError(f"there is no API server to patch {resource.kind} {item.key}")

    async def create(self, resource: ResourceType[ObjectT], item: ObjectT, manifest: Mapping[str, Any]) -> ObjectT:
        """Raise `WriteRefusedError`."""
        del manifest
        raise WriteRefusedError(f"there is no API server to create {resource.kind} {item.key}")

    async def read(self, resource: ResourceType[ObjectT], item: ObjectT) -> ObjectT:
        """Raise `WriteRefusedError`."""
        raise WriteRefusedError(f"there is no API server to read {resource.kind} {item.key}")

    async def delete(self, resource: ResourceType[ObjectT], item: ObjectT) -> None:
        """Raise `WriteRefusedError`."""
        raise WriteRefusedError(f"there is no API server to delete {resource.kind} {item.key}")

    async def merge_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Raise `WriteRefusedError`."""
        del status
        raise WriteRefusedError(f"there is no API server to patch {pod.key}")


class NoPreemptions:
    """Implements `podium.framework.contract.handle.Preemptions`: there are no preemptions."""

    def attempted(self) -> None:
        """Do nothing."""

    def attempted_for_group(self, result: str) -> None:
        """Do nothing."""

    def begin_search(self, preemptor: str) -> Callable[[str], None]:
        """Measure nothing."""
        del preemptor
        return lambda _: None

    def is_preempting(self, uid: str) -> bool:
        """Return False: there are no preemptions."""
        del uid
        return False

    def held_back_from(self, pod: Pod) -> Collection[str]:
        """Return no node: there are no preemption loops."""
        del pod
        return ()

    def is_protected(self, victim: Pod) -> bool:
        """Return False: every pod may be a victim."""
        del victim
        return False


class NoWaitingPods:
    """Implements `podium.framework.contract.handle.WaitingPods`: without binding cycles no pod waits at Permit."""

    def get(self, uid: str) -> None:
        """Return None: no pod waits."""

    def __iter__(self) -> Iterator[WaitingPod]:
        """Return an empty iterator: no pod waits."""
        return iter(())


@dataclass
class OfflineHandle:
    """Implements `podium.framework.contract.handle.Handle`."""

    clock: Clock
    random: Random
    nominator: Nominator
    snapshot_of: Callable[[], Snapshot]
    lister_of: Callable[[ResourceType[Any]], Lister[Any]]
    waiting_pods: WaitingPods = field(default_factory=NoWaitingPods)
    client: ApiClient = field(default_factory=RefusingClient)
    preemptions: Preemptions = field(default_factory=NoPreemptions)
    pod_groups: PodGroups | None = None
    release: Release = NEWEST
    kubeconfig: str | None = None
    scheduler_names: Collection[str] = frozenset()
    _shared: dict[Callable[..., Any], Any] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        """Return the snapshot that the current attempt decides on."""
        return self.snapshot_of()

    def lister(self, resource: ResourceType[ObjectT]) -> Lister[ObjectT]:
        """Return the stored objects of a kind."""
        return self.lister_of(resource)

    def is_missing(self, resource: ResourceType[Any]) -> bool:
        """Return False: a cluster in memory has objects of every kind, perhaps none."""
        del resource
        return False

    def dry_run(self, state: CycleState, row: int) -> AbstractContextManager[NodeDryRun]:
        """Begin a dry run of the attempt's filters on one node."""
        return state.dry_run(row)

    def node_metrics(self, source: MetricsSource) -> NodeMetrics:
        """Return the loads in a stored report: that of the source, or the one that stands for all sources."""
        return NodeMetrics(source, self.lister_of(NODE_METRICS).get, self.clock)

    def activate(self, pods: Iterable[Pod], after_s: float = 0.0) -> None:
        """Do nothing: there is no queue."""

    def shared(self, make: Callable[[Handle], T]) -> T:
        """Return the object that all plugins and profiles of one cluster share, made on first use."""
        if make not in self._shared:
            self._shared[make] = make(self)
        return cast(T, self._shared[make])

    def record(self, pod: Pod, reason: str, note: str, *, action: str = "Scheduling", is_warning: bool = False) -> None:
        """Do nothing: there is no API server for Events."""
