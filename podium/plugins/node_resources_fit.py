"""NodeResourcesFit: a node must have the resources that the pod requests; a strategy scores how full it gets.

Runs at: PreFilter, Filter, PreScore, Score, PlacementScore.
Verdict: Unschedulable if deleting pods could free enough, UnschedulableAndUnresolvable if even the empty node has too
little, each with every failing resource. UnschedulableAndUnresolvable from PreFilter if a request cannot be parsed.
Requeue: a pod is deleted or scaled down; a node is added or grows on which the pod fits when it is empty; a device
class begins to provide a requested resource.
Cost: two gathers per requested resource.
Source: kubernetes pkg/scheduler/framework/plugins/noderesources/fit.go, v1.36.2. Where a node offers none of an
extended resource that a device class provides, DynamicResources decides.
Differs: of the resources that a pod requests beyond the 60th, an explanation names only one. Scalar resources that a
node has too little of are named in order; upstream's come in any order. An unreadable request, which the API server
would not admit, rejects the pod instead of failing every attempt.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.config.args import NodeResourcesFitArgs
from podium.devices.class_table import IMPLICIT_PREFIX
from podium.framework import contract as fwk
from podium.objects.core import Node, Pod, PodSpec, once_per_spec
from podium.objects.devices import DeviceClass
from podium.objects.errors import FieldError
from podium.objects.requests import (
    Requests,
    filter_requests,
    node_allocatable,
    pod_requests,
    requests_on_node,
    scoring_requests,
)
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended_resource
from podium.plugins.shared.allocation_strategies import MostAllocated, strategy_of
from podium.plugins.shared.cluster_devices import ClusterDevices
from podium.plugins.shared.device_totals import DeviceTotals
from podium.plugins.shared.hints import is_about, occupies_node, pod_events, queue_if

_TOO_MANY_PODS: Final = 1
_UNRESOLVABLE: Final = 2
_FIRST_RESOURCE_BIT: Final = 2
_RESOURCE_BITS: Final = 61
_NATIVE_ORDER: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)


class Demand(NamedTuple):
    """A request for one resource. The amount is above 0."""

    resource: str
    amount: int


@once_per_spec
def _demands(spec: PodSpec) -> tuple[Demand, ...]:
    """Return the requests in the order in which reasons are given: cpu, memory, ephemeral storage, the rest by name."""
    requests = filter_requests(spec)
    other_names = sorted(name for name in requests if name not in _NATIVE_ORDER)
    return tuple(Demand(name, requests[name]) for name in (*_NATIVE_ORDER, *other_names) if requests.get(name, 0) > 0)


def _bit(index: int) -> int:
    """Return the verdict's bit for the request at that index. The last bit is shared by all from there on."""
    return 1 << _FIRST_RESOURCE_BIT + min(index, _RESOURCE_BITS - 1)


class NodeResourcesFit(
    fwk.PreFilterPlugin,
    fwk.TableFilterPlugin,
    fwk.FilterPlugin,
    fwk.PreScorePlugin,
    fwk.TableScorePlugin,
    fwk.ScorePlugin,
    fwk.PlacementScorePlugin,
):
    """Rejects nodes without enough free resources, and scores the others by how full the pod makes them.

    A verdict is a set of bits: too many pods, unresolvable, then one for each request.
    """

    def __init__(self, args: NodeResourcesFitArgs, handle: fwk.Handle) -> None:
        self._events = handle.release.events
        self._by_container = not handle.release.sums_resized_pods
        self._devices = handle.shared(ClusterDevices)
        self._totals = DeviceTotals.of_resources(self._devices, args.scoring_strategy.resources)
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._strategy = strategy_of(args.scoring_strategy)
        self._of_placements = MostAllocated(args.scoring_strategy)

    @property
    def ignores_nothing(self) -> bool:
        """Return whether every requested resource counts."""
        return not self._ignored and not self._ignored_groups

    # ------------------------------------------------------------ filtering

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Prepare the filter without ever returning Skip: every pod counts towards the number of pods."""
        try:
            _demands(pod.spec)
        except FieldError as error:
            return None, fwk.unresolvable(str(error))
        return None, None

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return a set of bits for each node without enough free resources."""
        verdicts: IntArray | None = None
        is_full = snapshot.pod_count.take(rows) >= snapshot.allowed_pods.take(rows)
        if np.count_nonzero(is_full):
            verdicts = is_full * np.int64(_TOO_MANY_PODS)
        for index, (resource, amount) in enumerate(self._held_demands(pod.spec)):
            allocatable = snapshot.allocatable(resource).take(rows)
            short = allocatable - snapshot.requested(resource).take(rows) < amount
            if not np.count_nonzero(short):
                continue
            if resource not in _NATIVE_ORDER and self._devices.class_for(resource) is not None:
                short &= allocatable > 0
            if verdicts is None:
                verdicts = np.zeros(len(rows), np.int64)
            verdicts |= short * np.int64(_bit(index))
            verdicts |= (short & (allocatable < amount)) * np.int64(_UNRESOLVABLE)
        return verdicts

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return every reason, in upstream's order; scalar resources, which have none there, by name."""
        reasons = ["Too many pods"] if verdict & _TOO_MANY_PODS else []
        demands = self._held_demands(pod.spec)[:_RESOURCE_BITS]
        reasons += (f"Insufficient {demand.resource}" for index, demand in enumerate(demands) if verdict & _bit(index))
        return fwk.Status(_code(bool(verdict & _UNRESOLVABLE)), tuple(reasons))

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success, Unschedulable or UnschedulableAndUnresolvable."""
        snapshot, row = node.snapshot, node.row
        reasons = ["Too many pods"] if len(snapshot.pods[row]) >= snapshot.allowed_pods.item(row) else []
        unresolvable_too = False
        for resource, amount in self._held_demands(pod.spec):
            allocatable = snapshot.allocatable_on(row, resource)
            if amount > allocatable - snapshot.requested_on(row, resource) and not self._are_devices(
                resource, allocatable
            ):
                reasons.append(f"Insufficient {resource}")
                unresolvable_too |= amount > allocatable
        return fwk.Status(_code(unresolvable_too), tuple(reasons)) if reasons else None

    def _are_devices(self, resource: str, allocatable: int) -> bool:
        """Return whether DynamicResources decides about the resource on a node that offers this much of it."""
        return allocatable <= 0 and resource not in _NATIVE_ORDER and self._devices.class_for(resource) is not None

    def _held_demands(self, spec: PodSpec) -> tuple[Demand, ...]:
        demands = _demands(spec)
        if not self._ignored and not self._ignored_groups:
            return demands
        return tuple(demand for demand in demands if not self._is_ignored(demand.resource))

    def _is_ignored(self, resource: str) -> bool:
        if not is_extended_resource(resource):
            return False
        return resource in self._ignored or resource.partition("/")[0] in self._ignored_groups

    # ------------------------------------------------------------ scoring

    def pre_score(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> fwk.Status | None:
        """Prepare scoring without ever returning Skip; return Error if a request cannot be parsed."""
        try:
            scoring_requests(pod.spec)
        except FieldError as error:
            return fwk.error_status(error)
        return None

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the strategy's score, from 0 to MAX_NODE_SCORE."""
        return self._strategy.score_rows(scoring_requests(pod.spec), snapshot, rows, self._totals)

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return the strategy's score, from 0 to MAX_NODE_SCORE."""
        return self._strategy.score(scoring_requests(pod.spec), node, self._totals)

    def score_placement(self, group: fwk.ProposedGroup, snapshot: Snapshot) -> int:
        """Return how full the group makes the placement's nodes together, from 0 to MAX_NODE_SCORE."""
        requests: Counter[str] = Counter()
        for pod in group.pods:
            requests.update(scoring_requests(pod.spec))
        return self._of_placements.score_together(requests, snapshot, group.placement.rows)

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return USAGE: the answer depends on what the pods on the node request."""
        return fwk.Scope.USAGE

    def score_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return USAGE: the score depends on what the pods on the node request together; CLUSTER if devices count."""
        has_devices = self._totals is not None and self._totals.classes(scoring_requests(spec))
        return fwk.Scope.CLUSTER if has_devices else fwk.Scope.USAGE

    # ------------------------------------------------------------ requeueing

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register pods that are deleted or scaled down; nodes that are added or grow."""
        return (
            *pod_events(
                self._events,
                fwk.ActionType.DELETE | fwk.ActionType.UPDATE_POD_SCALE_DOWN,
                fwk.ActionType.UPDATE_POD_SCALE_DOWN,
                self.after_pod_change,
            ),
            fwk.on(
                fwk.EventResource.NODE,
                fwk.ActionType.ADD,
                fwk.ActionType.UPDATE_NODE_ALLOCATABLE,
                hint=self.after_node_change,
                scope=fwk.HintScope.SPEC,
            ),
            fwk.on(
                fwk.EventResource.DEVICE_CLASS,
                fwk.ActionType.ADD,
                fwk.ActionType.UPDATE,
                hint=self.after_class_change,
                scope=fwk.HintScope.SPEC,
            ),
        )

    def after_pod_change(self, pod: Pod, old: Pod, new: Pod | None) -> fwk.QueueingHint:
        """Queue if a pod on a node is deleted or frees a requested resource, or if the pod itself is scaled down."""
        if new is None:
            return queue_if(occupies_node(old))
        if is_about(pod, new):
            return fwk.QueueingHint.QUEUE
        if not new.node_name:
            return fwk.QueueingHint.SKIP
        old_requests, new_requests = (requests_on_node(item, by_container=self._by_container) for item in (old, new))
        return queue_if(any(old_requests.get(name, 0) > new_requests.get(name, 0) for name, _ in _demands(pod.spec)))

    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> fwk.QueueingHint:
        """Queue if the pod fits on the empty node, and the node is new or has more of a requested resource."""
        demands = _demands(pod.spec)
        allocatable, allowed_pods = node_allocatable(new)
        if allowed_pods < 1 or any(
            amount > allocatable.get(name, 0) and not self._are_devices(name, allocatable.get(name, 0))
            for name, amount in demands
        ):
            return fwk.QueueingHint.SKIP
        if old is None:
            return fwk.QueueingHint.QUEUE
        allocatable_before, allowed_before = node_allocatable(old)
        return queue_if(allowed_pods > allowed_before or self._grew(demands, allocatable_before, allocatable))

    def after_class_change(self, pod: Pod, old: DeviceClass | None, new: DeviceClass) -> fwk.QueueingHint:
        """Queue if the class now provides a resource that the pod requests."""
        requests, resource = pod_requests(pod.spec), new.spec.extended_resource_name
        if old is None and f"{IMPLICIT_PREFIX}{new.key}" in requests:
            return fwk.QueueingHint.QUEUE
        is_news = old is None or (old.spec.extended_resource_name or "") != (resource or "")
        return queue_if(is_news and resource is not None and resource in requests)

    def _grew(self, demands: tuple[Demand, ...], old_amounts: Requests, new_amounts: Requests) -> bool:
        return any(
            new_amounts.get(name, 0) > old_amounts.get(name, 0) or self._are_devices(name, new_amounts.get(name, 0))
            for name, _ in demands
        )


def _code(unresolvable_too: bool) -> fwk.Code:
    return fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable_too else fwk.Code.UNSCHEDULABLE
