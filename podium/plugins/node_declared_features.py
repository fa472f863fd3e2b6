"""NodeDeclaredFeatures: the node must declare the kubelet features that the pod's spec needs.

Runs at: PreFilter (Skip for pods that need nothing special), Filter.
Verdict: UnschedulableAndUnresolvable.
Requeue: a node is added or declares other features than before; the pod itself needs other features than before.
Cost: once per pod spec; then a walk over the nodes for the few pods that need a feature.
Source: kubernetes pkg/scheduler/framework/plugins/nodedeclaredfeatures and component-helpers nodedeclaredfeatures,
v1.36.2; KEP-5328.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework.contract.cluster_event import ActionType, EventRegistration, HintScope, QueueingHint, on
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, PreFilterPlugin, PreFilterResult, TableFilterPlugin
from podium.framework.contract.handle import Handle
from podium.framework.contract.plugin import Scope
from podium.framework.contract.status import SKIP, Status, unresolvable
from podium.objects.core import Node, Pod, PodSpec, once_per_spec
from podium.objects.resource_types import EventResource
from podium.plugins.shared.hints import is_about, queue_if

_REJECTED: Final = unresolvable("node(s) didn't match Pod's required features")


def _restarts_all_containers(spec: PodSpec) -> bool:
    containers = (*spec.containers, *spec.init_containers)
    return any(rule.action == "RestartAllContainers" for each in containers for rule in each.restart_policy_rules)


def _has_own_users_on_host_network(spec: PodSpec) -> bool:
    return spec.host_network and spec.host_users is False


_NEEDS: Final[dict[str, Callable[[PodSpec], bool]]] = {
    "RestartAllContainersOnContainerExits": _restarts_all_containers,
    "UserNamespacesHostNetworkSupport": _has_own_users_on_host_network,
}
"""The features that a spec can need, with the test for each."""


@once_per_spec
def _needed(spec: PodSpec) -> frozenset[str]:
    return frozenset(feature for feature, is_needed in _NEEDS.items() if is_needed(spec))


class NodeDeclaredFeatures(PreFilterPlugin, TableFilterPlugin, FilterPlugin):
    """Rejects nodes that do not declare every feature the pod needs."""

    def __init__(self, args: object, handle: Handle) -> None:
        del args, handle

    def pre_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        """Return Skip if the pod needs no feature."""
        del state, snapshot
        return None, None if _needed(pod.spec) else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Verdict 1 for nodes that lack a feature."""
        del state
        needed = _needed(pod.spec)
        if not needed:
            return None
        lacks = [not needed.issubset(snapshot.node(row).node.status.declared_features) for row in rows.tolist()]
        return np.array(lacks, np.int64)

    def explain(self, state: CycleState, pod: Pod, verdict: int) -> Status:
        """The status of the only verdict."""
        del state, pod, verdict
        return _REJECTED

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Return success or UnschedulableAndUnresolvable."""
        del state
        return None if _needed(pod.spec).issubset(node.node.status.declared_features) else _REJECTED

    def filter_scope(self, spec: PodSpec) -> Scope:
        """NODE: the answer depends on the node's declared features."""
        del spec
        return Scope.NODE

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """Nodes that are added or declare other features; any update of the pod itself."""
        declared = ActionType.UPDATE_NODE_DECLARED_FEATURE
        return (
            on(EventResource.NODE, ActionType.ADD, declared, hint=self.after_node_change, scope=HintScope.SPEC),
            on(EventResource.POD, ActionType.UPDATE, hint=self.after_pod_update, scope=HintScope.SPEC),
        )

    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> QueueingHint:
        """Queue if the node is new or its declared features have changed, whatever the pod needs."""
        del pod
        return queue_if(old is None or old.status.declared_features != new.status.declared_features)

    def after_pod_update(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        """Queue if the pod itself needs other features than before."""
        if old is None or new is None:
            return QueueingHint.QUEUE
        return queue_if(is_about(pod, new) and _needed(old.spec) != _needed(new.spec))
