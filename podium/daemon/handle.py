"""The handle that the daemon gives to plugins."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Container, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar, cast

from podium.binder import EventRecorder, WaitingPods
from podium.binder.events.event import plugin_event
from podium.client.informer_set import InformerSet
from podium.cluster import Cache, Snapshot
from podium.config import NEWEST, Release
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.dry_runs import NodeDryRun
from podium.framework.contract.handle import ApiClient, Handle, Lister, Preemptions
from podium.framework.contract.node_metrics import NodeMetrics
from podium.framework.contract.pod_groups import PodGroups
from podium.framework.contract.status import PluginError
from podium.lib.clock import Clock
from podium.objects.core import Pod
from podium.objects.node_metrics import NODE_METRICS, MetricsSource
from podium.objects.resource_types import ObjectT, ResourceType
from podium.queues import Nominator

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PluginHandle:
    """Implements `podium.framework.contract.handle.Handle`.

    Attributes:
        watches: the resources that are watched; None before the process runs, when more may be asked for.
        metrics_sources: the sources of node metrics that plugins have asked for, by name.
        opened: set once the plugins that have it are in use. Until then they may ask for nothing that changes, since
            they are constructed in another thread while pods are scheduled. None if they are in use from the start.
        reading: passes what is read from outside through the boundary.
    """

    clock: Clock
    random: Random
    client: ApiClient
    preemptions: Preemptions
    waiting_pods: WaitingPods
    nominator: Nominator
    recorder: EventRecorder
    cache: Cache
    informers: InformerSet
    pod_groups: PodGroups | None = None
    watches: Container[ResourceType[Any]] | None = None
    move_to_active: Callable[[Iterable[Pod], float], None] = lambda *_: None
    opened: threading.Event | None = None
    release: Release = NEWEST
    reading: Callable[[Callable[[], bool]], Callable[[], bool]] = lambda read: read
    kubeconfig: str | None = None
    scheduler_names: Collection[str] = frozenset()
    _missing: dict[str, Callable[[], bool]] = field(default_factory=dict)
    metrics_sources: dict[str, MetricsSource] = field(default_factory=dict)
    _shared: dict[Callable[..., Any], Any] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        """Return the snapshot of the current attempt."""
        self._demand_opened("snapshot")
        return self.cache.snapshot()

    def lister(self, resource: ResourceType[ObjectT]) -> Lister[ObjectT]:
        """Return the informer's lister; the resource is watched from the start if a plugin asks for it at construction.

        Raises: PluginError for a resource that a process that runs already does not watch (`watches`).
        """
        if self.watches is not None and resource not in self.watches:
            raise PluginError(f"{resource.kind} objects are not watched since the start of podium, restart it")
        return self.informers.informer(resource)

    def is_missing(self, resource: ResourceType[Any]) -> bool:
        """Return True if the API server does not serve the resource."""
        read = self._missing.get(resource.path)
        if read is None:
            read = self._missing[resource.path] = self.reading(lambda: self.informers.is_absent(resource))
        return bool(read())

    def dry_run(self, state: CycleState, row: int) -> AbstractContextManager[NodeDryRun]:
        """Begin a dry run of the attempt's filters on one node."""
        return state.dry_run(row)

    def node_metrics(self, source: MetricsSource) -> NodeMetrics:
        """Return the loads that a task reads from the source. Raises: as `lister`."""
        reports = self.lister(NODE_METRICS)
        self.metrics_sources.setdefault(source.name, source)
        return NodeMetrics(source, reports.get, self.clock)

    def activate(self, pods: Iterable[Pod], after_s: float = 0.0) -> None:
        """Move the pods to the active queue, after that many seconds."""
        self._demand_opened("activate")
        self.move_to_active(pods, after_s)

    def shared(self, make: Callable[[Handle], T]) -> T:
        """Return the object that all plugins and profiles share, made at the first call."""
        if make not in self._shared:
            self._shared[make] = make(self)
        return cast(T, self._shared[make])

    def record(self, pod: Pod, reason: str, note: str, *, action: str = "Scheduling", is_warning: bool = False) -> None:
        """Queue an Event about the pod for writing.

        Raises:
            TypeError: an argument is not a string. Checked here, because the recorder could not name the plugin later.
        """
        self._demand_opened("record")
        for name, value in (("reason", reason), ("note", note), ("action", action)):
            if not isinstance(value, str):
                raise TypeError(f"record: {name} is not a string, but a {type(value).__name__}")
        self.recorder.record(plugin_event(pod, reason, note, action, is_warning=is_warning))

    def _demand_opened(self, method: str) -> None:
        if self.opened is not None and not self.opened.is_set():
            raise PluginError(f"handle.{method} cannot be called in a constructor while podium runs")
