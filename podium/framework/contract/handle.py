"""The services that the framework offers to plugins: clock, API client, listers, queue, and what happens at Permit.

Source: staging kube-scheduler/framework/interface.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from random import Random
from typing import Any, Protocol, TypeVar

from podium.cluster import Snapshot
from podium.config import Release
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.dry_runs import NodeDryRun
from podium.framework.contract.node_metrics import NodeMetrics
from podium.framework.contract.pod_groups import PodGroups
from podium.lib.clock import Clock
from podium.objects.core import Pod
from podium.objects.node_metrics import MetricsSource
from podium.objects.resource_types import ObjectT, ResourceType

T = TypeVar("T")

ListedT_co = TypeVar("ListedT_co", covariant=True)


class ApiClient(Protocol):
    """The API requests that plugins may make.

    Raises:
        podium.objects.api_errors.ApiError: the request failed, or its outcome is not known.
    """

    def bind(self, pod: Pod, node_name: str) -> Awaitable[None]:
        """Bind the pod to the node."""

    def patch(
        self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any], subresource: str = ""
    ) -> Awaitable[ObjectT]:
        """Patch the object if its resourceVersion is still that of `item` (a merge patch); return its new state.

        Args:
            subresource: `status` to change the status.
        """

    def create(self, resource: ResourceType[ObjectT], item: ObjectT, manifest: Mapping[str, Any]) -> Awaitable[ObjectT]:
        """Create the object `item` from the manifest, and return it as the API server has it."""

    def read(self, resource: ResourceType[ObjectT], item: ObjectT) -> Awaitable[ObjectT]:
        """Return the object of that name as the API server has it now."""

    def delete(self, resource: ResourceType[ObjectT], item: ObjectT) -> Awaitable[None]:
        """Delete this very object. Harmless if it is gone."""

    def merge_status(self, pod: Pod, status: Mapping[str, Any]) -> Awaitable[None]:
        """Merge these fields into the pod's status."""


class Lister(Protocol[ListedT_co]):
    """The objects of one kind, from the informer's cache."""

    def get(self, key: str) -> ListedT_co | None:
        """Return the object with that key (`<namespace>/<name>`, or the name), or None if there is none."""

    def list(self) -> Iterable[ListedT_co]:
        """Return all objects, as a live view: do not hold it across an await."""

    def in_namespace(self, namespace: str) -> Iterable[ListedT_co]:
        """Return the objects of one namespace, as a live view. The cost does not depend on other namespaces."""


class Preemptions(Protocol):
    """The preemptions that are being carried out."""

    def attempted(self) -> None:
        """Count one preemption attempt for a pod, successful or not."""

    def attempted_for_group(self, result: str) -> None:
        """Count one preemption attempt for a pod group; `result` is the label of the status code."""

    def begin_search(self, preemptor: str) -> Callable[[str], None]:
        """Begin to measure a search for victims, for a `pod` or a `podgroup`.

        Returns:
            What ends the search; it takes the label of the status code.
        """

    def is_preempting(self, uid: str) -> bool:
        """Return True while preemption for the pod with this uid is running; the pod must not be tried meanwhile."""

    def held_back_from(self, pod: Pod) -> Collection[str]:
        """Return the nodes where the pod must not preempt for now: preemptions there kept failing to help it."""

    def is_protected(self, victim: Pod) -> bool:
        """Return True if the pod must not be preempted, whatever its priority."""


class WaitingPod(Protocol):
    """A pod that Permit plugins make wait. The first allow or reject decides; later ones do nothing."""

    @property
    def pod(self) -> Pod:
        """The pod as it was when its attempt began."""

    @property
    def node_name(self) -> str:
        """The node that was chosen for it."""

    @property
    def pending_plugins(self) -> Sequence[str]:
        """The plugins that have not allowed it yet."""

    def allow(self, plugin: str) -> None:
        """Record that the plugin allows the pod. The pod is bound once no pending plugin is left."""

    def reject(self, plugin: str, message: str) -> bool:
        """End the wait: the plugin rejects the pod as unschedulable. Returns whether this was the first signal."""


class WaitingPods(Protocol):
    """The pods of all profiles that are waiting at Permit."""

    def get(self, uid: str) -> WaitingPod | None:
        """Return the waiting pod with that uid, or None if it does not wait."""

    def __iter__(self) -> Iterator[WaitingPod]:
        """Return the pods that wait now. The pod that is passed to a Permit plugin is not among them yet."""


class Nominator(Protocol):
    """The nominated pods by node: pods for which preemption makes room there."""

    def node_names(self) -> Sequence[str]:
        """Return the nodes that pods are nominated to."""

    def node_of(self, uid: str) -> str | None:
        """Return the node that the pod with that uid is nominated to, or None if it is not nominated."""

    def pods(self, node_name: str) -> Sequence[Pod]:
        """Return the pods that are nominated to the node."""

    def add(self, pod: Pod, node_name: str) -> None:
        """Nominate the waiting pod to the node, in place of an earlier nomination.

        Attempts of pods of lower or equal priority then leave room for it. Nothing is written to the pod's status.
        """

    def delete(self, pod: Pod) -> None:
        """Remove the pod's nomination, if it has one."""


class Handle(Protocol):
    """The services that the framework offers to plugins."""

    @property
    def clock(self) -> Clock:
        """The clock. Plugins must use it instead of the machine's clock."""

    @property
    def random(self) -> Random:
        """The source of randomness."""

    @property
    def client(self) -> ApiClient:
        """The API client, for the asynchronous extension points."""

    @property
    def preemptions(self) -> Preemptions:
        """The preemptions that are being carried out."""

    @property
    def waiting_pods(self) -> WaitingPods:
        """The pods that wait at Permit, to be allowed or rejected from any other extension point."""

    @property
    def nominator(self) -> Nominator:
        """The nominated pods of each node."""

    @property
    def release(self) -> Release:
        """The minor of Kubernetes whose rules apply. Ask its switches; never compare versions."""

    @property
    def scheduler_names(self) -> Collection[str]:
        """The scheduler names of all profiles: pods with another one are placed by other schedulers."""

    @property
    def kubeconfig(self) -> str | None:
        """The path of podium's kubeconfig, for a client of the plugin's own; None for the pod's service account."""

    @property
    def pod_groups(self) -> PodGroups | None:
        """The pod groups; None if each pod is scheduled alone, because the feature gate GenericWorkload is off."""

    def snapshot(self) -> Snapshot:
        """Return the snapshot that the current attempt decides on."""

    def lister(self, resource: ResourceType[ObjectT]) -> Lister[ObjectT]:
        """Return the lister of a resource. Call it only in the constructor, so that the resource is watched in time."""

    def is_missing(self, resource: ResourceType[Any]) -> bool:
        """Return True if the API server does not serve the resource: its CustomResourceDefinition is not installed."""

    def dry_run(self, state: CycleState, row: int) -> AbstractContextManager[NodeDryRun]:
        """Begin a dry run of the attempt's filters on one node, after PreFilter and before a node is chosen.

        Pods are removed from the node and added back, and `status()` filters it for the pod of the attempt. Leaving the
        context undoes everything. Only one dry run may be open at a time, and none in a filter.

        Args:
            row: the node's row in the snapshot.

        Raises:
            PluginError: no attempt is under way with this state.
        """

    def node_metrics(self, source: MetricsSource) -> NodeMetrics:
        """Return the measured loads of nodes from a source, which is read regularly in the background.

        Call it only in the constructor, as `lister`. Plugins with equal sources share one.
        """

    def activate(self, pods: Iterable[Pod], after_s: float = 0.0) -> None:
        """Try these pods again after the delay, whatever they wait for. Pods no longer queued by then are skipped."""

    def shared(self, make: Callable[[Handle], T]) -> T:
        """Return the value that all plugins and profiles share. The first call creates it with `make`.

        Call it only in the plugin's constructor, as `lister`.
        """

    def record(self, pod: Pod, reason: str, note: str, *, action: str = "Scheduling", is_warning: bool = False) -> None:
        """Record an Event for the pod. Returns at once; equal Events become a series.

        Args:
            reason, action: one `UpperCamelCase` word each.
            note: a sentence; cut after 1,024 bytes.
        """
