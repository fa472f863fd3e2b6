"""A member cluster: the state that estimates need, updated as objects change, and the answers.

Owns nodes and pods in columns with pod usages as upstream counts them, quotas, deployments and replica sets. Never
does I/O.

Source: karmada pkg/estimator/server estimate.go and server.go, framework/runtime, v1.18.
Differs: the columns are updated in place; upstream copies all nodes for every question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from podium.cluster import Cache, Snapshot
from podium.cluster.cache import ReportBroken
from podium.engine.replicas import PLACED_MAX
from podium.estimator.accurate import EstimateSteps, replica_of
from podium.estimator.amounts import upstream_pod_usage
from podium.estimator.claims import Claims
from podium.estimator.cluster_objects import ResourceModel
from podium.estimator.component_sets import SetPlacement, without_assumed
from podium.estimator.errors import EstimateError
from podium.estimator.explain import NodeEstimate, explain_nodes
from podium.estimator.free_capacity import ClusterCapacity
from podium.estimator.quota import RESOURCE_QUOTAS, ResourceQuota, replicas_within, sets_within
from podium.estimator.replicas import max_available_replicas
from podium.estimator.requirements import (
    MAX_INT32,
    AssumedWorkload,
    Component,
    ComponentReplicaRequirements,
    ObjectReference,
    ReplicaRequirements,
)
from podium.estimator.scheduler_view import SchedulerView
from podium.estimator.summaries import MemberSummary, summarise
from podium.estimator.template import pod_made_by, replica_as_asked
from podium.estimator.workloads import (
    DEPLOYMENT_KIND,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Deployment,
    Job,
    Templated,
    TemplatedReplicaSet,
    TemplatedStatefulSet,
    controller_uid,
    new_replica_set,
    unschedulable_pods,
)
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.requests import filter_requests
from podium.objects.resource_types import NODES, PODS, KubeObject, ResourceType

READ: Final[tuple[ResourceType[Any], ...]] = (NODES, PODS, RESOURCE_QUOTAS, DEPLOYMENTS, REPLICA_SETS)
"""The kinds that an estimate reads."""

READ_TO_TRY: Final[tuple[ResourceType[Any], ...]] = (STATEFUL_SETS, JOBS)
"""More workloads with pod templates, which accurate estimates read in addition to the plugins' kinds."""


@dataclass(frozen=True, slots=True)
class Gates:
    """The feature gates of upstream's estimator server, and the one of its status controller that concerns grades."""

    resource_quota_estimate: bool = False
    scheduling_overcommit_protection: bool = False
    customized_cluster_resource_modeling: bool = True


class MemberCluster:
    """One member cluster.

    Args:
        report_broken: called with each object that cannot be read in full.
        view: the scheduler's view of the cluster, for accurate answers.
    """

    def __init__(
        self, name: str, report_broken: ReportBroken, gates: Gates = Gates(), view: SchedulerView | None = None
    ) -> None:
        self.name = name
        self.quotas: dict[str, ResourceQuota] = {}
        self.deployments: dict[str, Deployment] = {}
        self.replica_sets: dict[str, TemplatedReplicaSet] = {}
        self.stateful_sets: dict[str, TemplatedStatefulSet] = {}
        self.jobs: dict[str, Job] = {}
        self._gates = gates
        self._view = view
        self._cache = Cache(report_broken, upstream_pod_usage)
        self._claims = Claims()
        self._capacity = ClusterCapacity(self._cache.snapshot(), self._claims)
        self._room_of = self._cache.changes
        self._pods_of: dict[str, dict[str, Pod]] = {}
        self._waiting: dict[str, Pod] = {}

    # ------------------------------------------------------------ changes

    def put(self, item: KubeObject) -> None:
        """Add or update an object of one of the kinds in `READ`. A pod that has ended is ignored."""
        match item:
            case Node():
                self.put_node(item)
            case Pod():
                # As upstream's informer, whose field selector leaves out ended pods.
                if not item.has_ended:
                    self.put_pod(item)
            case ResourceQuota():
                self.quotas[item.key] = item
            case Deployment():
                self.deployments[item.key] = item
            case TemplatedReplicaSet():
                self.replica_sets[item.key] = item
            case TemplatedStatefulSet():
                self.stateful_sets[item.key] = item
            case Job():
                self.jobs[item.key] = item
            case _:
                raise AssertionError(f"an estimate does not need {item.key}")

    def put_node(self, node: Node) -> None:
        """Add or update a node."""
        self._cache.put_node(node)
        if self._view is not None:
            self._view.put_node(node)

    def drop_node(self, name: str) -> None:
        """Remove a node."""
        self._cache.remove_node(name)
        if self._view is not None:
            self._view.drop_node(name)

    def put_pod(self, pod: Pod) -> None:
        """Add or update a pod that has not ended."""
        if pod.node_name:
            self._cache.put_pod(pod)
            self._waiting.pop(pod.uid, None)
        else:
            self._waiting[pod.uid] = pod
        if self._view is not None:
            self._view.put_pod(pod)
        # Pods by controller: the question about unschedulable replicas would otherwise go through all pods.
        owner = controller_uid(pod.metadata)
        if owner is not None:
            self._pods_of.setdefault(owner, {})[pod.uid] = pod

    def drop_pod(self, pod: Pod) -> None:
        """Remove a pod."""
        self._cache.drop_pod(pod)
        self._waiting.pop(pod.uid, None)
        if self._view is not None:
            self._view.drop_pod(pod)
        owner = controller_uid(pod.metadata)
        if owner is not None and owner in self._pods_of:
            self._pods_of[owner].pop(pod.uid, None)
            if not self._pods_of[owner]:
                del self._pods_of[owner]

    # ------------------------------------------------------------ answers

    def snapshot(self) -> Snapshot:
        """Return the present state of the nodes, valid until the next call."""
        return self._cache.snapshot()

    def summary(self, models: Sequence[ResourceModel]) -> MemberSummary:
        """Return what Karmada's status controller collects of the nodes and pods, in order of namespace and name.

        Differs: a pod that ended before it had a node does not count as waiting, since ended pods are not watched.

        Raises:
            FieldError: an amount cannot be read, or the models have no ranges.
        """
        nodes = [node for node in self.snapshot().nodes if node is not None]
        running = [pod for name in self._cache.known_node_names() for pod in self._cache.pods_on(name)]
        pods = sorted([*running, *self._waiting.values()], key=lambda pod: pod.key)
        return summarise(sorted(nodes, key=lambda node: node.name), pods, models)

    def capacity(self) -> ClusterCapacity:
        """Return the present free capacity of the nodes."""
        snapshot = self.snapshot()
        # Columns are shared by all estimates until an object changes.
        if self._room_of != self._cache.changes:
            self._capacity = ClusterCapacity(snapshot, self._claims)
            self._room_of = self._cache.changes
        return self._capacity

    def max_available_replicas(
        self, requirements: ReplicaRequirements | None, assumed_workloads: Sequence[AssumedWorkload] = ()
    ) -> int:
        """Return how many replicas fit into the cluster.

        Raises:
            EstimateError: an amount cannot be read.
        """
        # Without nodes upstream answers 0 before it looks at quotas, even for a request that cannot be read.
        if not len(self.snapshot()):
            return 0
        assumed_workloads = self._workloads_honoured(assumed_workloads)
        try:
            by_nodes = max_available_replicas(self.capacity(), requirements, assumed_workloads)
            return min(by_nodes, self._within_quotas(requirements, assumed_workloads))
        except FieldError as error:
            raise EstimateError(f"failed to estimate replicas: {error}") from error

    @property
    def is_accurate(self) -> bool:
        """Return whether the member supports accurate estimates."""
        return self._view is not None

    def replicas_in_steps(
        self,
        requirements: ReplicaRequirements | None,
        assumed_workloads: Sequence[AssumedWorkload],
        workload: ObjectReference | None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> EstimateSteps:
        """Compute in steps how many replicas podium would bind here; see `accurate.replicas_in_steps`.

        Args:
            workload: the owner of the replicas. If it does not exist here, or its kind has no known pod template,
                only the requirements describe the replicas.

        Raises:
            EstimateError: an amount cannot be read, or an attempt failed.
        """
        assert self._view is not None, "this member answers only as upstream does"
        assumed_workloads = self._workloads_honoured(assumed_workloads)
        try:
            # The quota's limit first: it needs no attempt, and may be an error.
            limit = self._within_quotas(requirements, assumed_workloads)
            template_pod = self._made_by(workload)
            replica = replica_of(requirements) if template_pod is None else replica_as_asked(template_pod, requirements)
            filter_requests(replica.spec)
        except FieldError as error:
            raise EstimateError(f"failed to estimate replicas: {error}") from error
        count = yield from self._view.replicas_in_steps(replica, _on_their_way(assumed_workloads), is_over)
        return min(count, limit)

    def _within_quotas(
        self, requirements: ReplicaRequirements | None, assumed_workloads: Sequence[AssumedWorkload]
    ) -> int:
        if not self._gates.resource_quota_estimate:
            return MAX_INT32
        return replicas_within(self.quotas.values(), requirements, assumed_workloads)

    def _made_by(self, workload: ObjectReference | None) -> Pod | None:
        """Return a pod made from the workload's present template."""
        if workload is None:
            return None
        template_owner: Templated | None = None
        match workload.kind, f"{workload.namespace}/{workload.name}":
            case "Deployment", key:
                template_owner = self.deployments.get(key)
                # The template of the replica set has the pod-template-hash label that the pods have.
                if template_owner is not None:
                    template_owner = new_replica_set(template_owner, self.replica_sets.values()) or template_owner
            case "ReplicaSet", key:
                template_owner = self.replica_sets.get(key)
            case "StatefulSet", key:
                template_owner = self.stateful_sets.get(key)
            case "Job", key:
                template_owner = self.jobs.get(key)
        return pod_made_by(template_owner) if template_owner is not None else None

    def explain_replicas(self, requirements: ReplicaRequirements | None) -> list[NodeEstimate]:
        """Return the part of each node in `max_available_replicas`. Quotas are not included, since they limit the sum.

        Raises:
            EstimateError: an amount cannot be read.
        """
        try:
            return explain_nodes(self.snapshot(), self._claims, requirements)
        except FieldError as error:
            raise EstimateError(f"failed to estimate replicas: {error}") from error

    def max_available_component_sets(
        self,
        components: Sequence[Component | None],
        namespace: str = "",
        assumed_workloads: Sequence[AssumedWorkload] = (),
    ) -> int:
        """Return how many complete sets of the components fit into the cluster.

        Raises:
            EstimateError: an amount cannot be read.
        """
        return self.prepare_component_sets(components, namespace, assumed_workloads)()

    def prepare_component_sets(
        self, components: Sequence[Component | None], namespace: str, assumed_workloads: Sequence[AssumedWorkload]
    ) -> Callable[[], int]:
        """Return a function that does the work of `max_available_component_sets` and can run in a thread.

        Raises:
            EstimateError: an amount cannot be read.
        """
        if not len(self.snapshot()):
            return lambda: 0
        assumed_workloads = self._workloads_honoured(assumed_workloads)
        try:
            limit = MAX_INT32
            if self._gates.resource_quota_estimate:
                # Quotas limit the sum, so the placement may stop there.
                limit = sets_within(self.quotas.values(), namespace, components, assumed_workloads)
            if not components:
                return lambda: limit
            placement = SetPlacement(without_assumed(self.capacity(), assumed_workloads, components), components)
        except FieldError as error:
            raise EstimateError(f"failed to estimate component sets: {error}") from error
        # Placement works on copies, so that it may run in a thread while objects change.
        return lambda: placement.run(limit)

    def unschedulable_replicas(self, workload: ObjectReference | None, threshold_s: float, now_s: float) -> int:
        """Return how many replicas of a deployment have been unschedulable for longer than the threshold.

        Raises:
            EstimateError: there is no such workload, or it is of another kind.
        """
        if workload is None:
            raise EstimateError("resource is nil")
        key = f"{workload.namespace}/{workload.name}"
        if workload.kind != DEPLOYMENT_KIND:
            raise EstimateError(f"kind({workload.kind}) of workload({key}) is not supported")
        deployment = self.deployments.get(key)
        if deployment is None:
            raise EstimateError(f'deployments.apps "{key}" not found')
        return unschedulable_pods(
            deployment, self.replica_sets.values(), self._pods_owned_by_any_of(deployment), threshold_s, now_s
        )

    def _pods_owned_by_any_of(self, deployment: Deployment) -> Iterable[Pod]:
        for replica_set in self.replica_sets.values():
            if controller_uid(replica_set.metadata) == deployment.metadata.uid:
                yield from self._pods_of.get(replica_set.metadata.uid, {}).values()

    def _workloads_honoured(self, assumed_workloads: Sequence[AssumedWorkload]) -> Sequence[AssumedWorkload]:
        return assumed_workloads if self._gates.scheduling_overcommit_protection else ()


def _on_their_way(assumed_workloads: Iterable[AssumedWorkload]) -> list[Pod]:
    """Return the pods of assumed workloads, at most as many as are ever placed."""
    pods: list[Pod] = []
    for workload in assumed_workloads:
        for component in workload.components:
            if component is None:
                continue
            requirements = component.replica_requirements or ComponentReplicaRequirements()
            like = ReplicaRequirements(
                node_claim=requirements.node_claim,
                resource_request=requirements.resource_request,
                namespace=workload.namespace,
            )
            # A huge assumed workload must not take minutes before anything is estimated.
            count = min(component.replicas, PLACED_MAX - len(pods))
            pods += [replica_of(like, f"assumed-{len(pods) + number}") for number in range(count)]
    return pods
