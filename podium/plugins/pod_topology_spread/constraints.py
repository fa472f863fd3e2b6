"""Compiled topology spread constraints: a pod's own, or the default ones.

Owns which pods a constraint selects and which nodes it considers. Never counts pods.

Source: kubernetes pkg/scheduler/framework/plugins/podtopologyspread/common.go and helper/spread.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from podium.cluster import Snapshot
from podium.cluster.matching.lookup import Lookup
from podium.cluster.matching.node_selectors import row_selector
from podium.cluster.matching.taints import is_repelled
from podium.cluster.snapshot import BoolArray
from podium.config.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from podium.config.args import TopologySpreadConstraint as ConfiguredConstraint
from podium.framework import contract as fwk
from podium.objects import resource_types
from podium.objects.core import Node, Pod, PodSpec, Taint, TopologySpreadConstraint, once_per_spec
from podium.objects.errors import FieldError
from podium.objects.meta import LabelSelector, OwnerReference
from podium.objects.selectors import NOTHING, Selector, compile_selector, selector_of_labels
from podium.objects.workloads import ReplicaSet, StatefulSet

HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"
HOSTNAME: Final = "kubernetes.io/hostname"
_HONOR: Final = "Honor"

_SYSTEM_DEFAULTS: Final = (
    ConfiguredConstraint(3, HOSTNAME, SOFT),
    ConfiguredConstraint(5, "topology.kubernetes.io/zone", SOFT),
)

_demanded = once_per_spec(row_selector)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """One constraint. The policies say whether nodes are ignored that the pod could not be placed on anyway."""

    topology_key: str
    max_skew: int
    selector: Selector
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False

    def includes(self, spec: PodSpec, node: Node) -> bool:
        """Return whether the policies include the node."""
        if self.honors_affinity and not _demanded(spec).matches(node.metadata.labels, node.name):
            return False
        return not (self.honors_taints and is_repelled(spec.tolerations, node.spec.taints))

    def inclusion(self, spec: PodSpec, snapshot: Snapshot) -> BoolArray | None:
        """Return by row whether the policies include the node; None if they include all.

        Shape: one entry per row of the snapshot.
        """
        is_included: BoolArray | None = None
        if self.honors_affinity and not _demanded(spec).everything:
            is_included = _demanded(spec).matching(snapshot, np.arange(len(snapshot.nodes)))
        if self.honors_taints:
            is_repelled_by_set = _repulsion(spec).over(snapshot.taint_sets)
            if is_repelled_by_set.any():
                welcome = ~is_repelled_by_set.take(snapshot.taint_set)
                is_included = welcome if is_included is None else is_included & welcome
        return is_included


@once_per_spec
def _repulsion(spec: PodSpec) -> Lookup[tuple[Taint, ...], np.bool_]:
    tolerations = spec.tolerations
    return Lookup(lambda taints: is_repelled(tolerations, taints), np.bool_)


def has_all_keys(labels: Mapping[str, str], constraints: tuple[SpreadConstraint, ...]) -> bool:
    """Return whether a node with these labels is in some domain of each constraint."""
    return all(constraint.topology_key in labels for constraint in constraints)


# ---------------------------------------------------------------- a pod's own


def own_constraints(pod: Pod, action: str) -> tuple[SpreadConstraint, ...]:
    """Return the pod's constraints of that `whenUnsatisfiable`, in order.

    Raises:
        FieldError: one of their selectors is invalid.
    """
    constraints = _hard(pod.spec) if action == HARD else _soft(pod.spec)
    labels = pod.metadata.labels
    return tuple(
        replace(constraint, selector=constraint.selector.narrow({key: labels[key] for key in keys if key in labels}))
        if keys
        else constraint
        for constraint, keys in constraints
    )


@once_per_spec
def _hard(spec: PodSpec) -> tuple[tuple[SpreadConstraint, tuple[str, ...]], ...]:
    return _compile(spec, HARD)


@once_per_spec
def _soft(spec: PodSpec) -> tuple[tuple[SpreadConstraint, tuple[str, ...]], ...]:
    return _compile(spec, SOFT)


def _compile(spec: PodSpec, action: str) -> tuple[tuple[SpreadConstraint, tuple[str, ...]], ...]:
    """Return the constraints, each with its `matchLabelKeys`, which require the pod's own label values."""
    return tuple(
        (_constraint(rule, compile_selector(rule.label_selector)), rule.match_label_keys)
        for rule in spec.topology_spread_constraints
        if rule.when_unsatisfiable == action
    )


def _constraint(rule: TopologySpreadConstraint | ConfiguredConstraint, selector: Selector) -> SpreadConstraint:
    return SpreadConstraint(
        rule.topology_key,
        rule.max_skew,
        selector,
        min_domains=1 if rule.min_domains is None else rule.min_domains,
        honors_affinity=rule.node_affinity_policy in (None, _HONOR),
        honors_taints=rule.node_taints_policy == _HONOR,
    )


# ---------------------------------------------------------------- by default


class DefaultConstraints:
    """The constraints of pods that define none: spread with the pods of the same services and workload."""

    def __init__(self, args: PodTopologySpreadArgs, handle: fwk.Handle) -> None:
        self.is_system = args.defaulting_type == SYSTEM_DEFAULTING
        configured_constraints = _SYSTEM_DEFAULTS if self.is_system else args.default_constraints
        self._by_action = {
            action: tuple(
                _constraint(rule, NOTHING) for rule in configured_constraints if rule.when_unsatisfiable == action
            )
            for action in (HARD, SOFT)
        }
        self._latest: dict[str, tuple[Selector, tuple[SpreadConstraint, ...]]] = {}
        self._compiled: tuple[LabelSelector, Selector] | None = None
        """The selector of the latest workload, and what it was compiled to."""
        if configured_constraints:
            self._services = handle.lister(resource_types.SERVICES)
            self._controllers = handle.lister(resource_types.REPLICATION_CONTROLLERS)
            self._workloads: dict[str, fwk.Lister[ReplicaSet] | fwk.Lister[StatefulSet]] = {
                "ReplicaSet": handle.lister(resource_types.REPLICA_SETS),
                "StatefulSet": handle.lister(resource_types.STATEFUL_SETS),
            }

    def has_any(self, action: str) -> bool:
        """Return whether any pod gets constraints of that `whenUnsatisfiable`."""
        return bool(self._by_action[action])

    def constraints(self, pod: Pod, action: str) -> tuple[SpreadConstraint, ...]:
        """Return the constraints of that `whenUnsatisfiable`; none if no service or workload selects the pod."""
        constraints = self._by_action[action]
        if not constraints:
            return ()
        selector = self._selector(pod)
        if selector.everything:
            return ()
        latest = self._latest.get(action)
        # Replicas are mostly tried one after the other.
        if latest is None or latest[0] is not selector:
            of_selector = tuple(replace(constraint, selector=selector) for constraint in constraints)
            latest = self._latest[action] = selector, of_selector
        return latest[1]

    def _selector(self, pod: Pod) -> Selector:
        """Return the joint selector of the pod's services and of the workload that owns it."""
        meta = pod.metadata
        required_labels: dict[str, str] = {}
        for service in self._services.in_namespace(meta.namespace):
            if service.spec.selector.items() <= meta.labels.items():
                required_labels |= service.spec.selector
        owner = meta.controller
        if owner is None:
            return selector_of_labels(required_labels)
        key = f"{meta.namespace}/{owner.name}"
        if (owner.api_version, owner.kind) == ("v1", "ReplicationController"):
            controller = self._controllers.get(key)
            return selector_of_labels(
                required_labels if controller is None else {**required_labels, **controller.spec.selector}
            )
        return self._of_workload(owner, key).narrow(required_labels)

    def _of_workload(self, owner: OwnerReference, key: str) -> Selector:
        """Return the owning workload's selector; one for all pods if it is absent or invalid, or there is no owner."""
        workloads = self._workloads.get(owner.kind) if owner.api_version == "apps/v1" else None
        workload = workloads.get(key) if workloads is not None else None
        if workload is None or workload.spec.selector is None:
            return selector_of_labels({})
        if self._compiled is None or self._compiled[0] is not workload.spec.selector:
            try:
                self._compiled = workload.spec.selector, compile_selector(workload.spec.selector)
            except FieldError:
                return selector_of_labels({})
        return self._compiled[1]
