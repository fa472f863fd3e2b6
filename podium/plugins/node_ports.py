"""NodePorts: a host port is given to one pod on a node only.

Runs at: PreFilter, Filter.
Verdict: Unschedulable.
Requeue: a pod that holds a conflicting port is deleted; any node is added.
Cost: nothing without host ports; else one look-up per port in the snapshot's index.
Source: kubernetes pkg/scheduler/framework/plugins/nodeports/node_ports.go, v1.36.2.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from podium.cluster import HostPort, IntArray, NodeInfo, Rows, Snapshot, host_ports
from podium.cluster.host_ports import ANY_ADDRESS
from podium.framework.contract.cluster_event import ActionType, EventRegistration, HintScope, QueueingHint, on
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, PreFilterPlugin, PreFilterResult, TableFilterPlugin
from podium.framework.contract.handle import Handle
from podium.framework.contract.plugin import Scope
from podium.framework.contract.status import SKIP, Status, unschedulable
from podium.objects.core import Pod, PodSpec
from podium.objects.resource_types import EventResource
from podium.plugins.shared.hints import occupies_node, queue_if

_REJECTED: Final = unschedulable("node(s) didn't have free ports for the requested pod ports")


def _conflict(wanted: HostPort, taken: HostPort) -> bool:
    if (wanted.protocol, wanted.port) != (taken.protocol, taken.port):
        return False
    return wanted.ip == taken.ip or ANY_ADDRESS in (wanted.ip, taken.ip)


def _pods_conflict(wanting: Pod, holding: Pod) -> bool:
    held = host_ports(holding.spec)
    return any(_conflict(wanted, taken) for wanted in host_ports(wanting.spec) for taken in held)


class NodePorts(PreFilterPlugin, TableFilterPlugin, FilterPlugin):
    """Rejects nodes where a host port of the pod is taken."""

    def __init__(self, args: object, handle: Handle) -> None:
        del args, handle

    def pre_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        """Return Skip for a pod without host ports."""
        del state, snapshot
        return None, None if host_ports(pod.spec) else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Verdict 1 for nodes where a port is taken."""
        del state
        taken = [row for port in host_ports(pod.spec) for row in snapshot.host_ports.conflicting_rows(port)]
        if not taken:
            return None
        verdicts = np.zeros(len(snapshot.nodes), np.int64)
        verdicts[taken] = 1
        return verdicts.take(rows)

    def explain(self, state: CycleState, pod: Pod, verdict: int) -> Status:
        """The status of the only verdict."""
        del state, pod, verdict
        return _REJECTED

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Return success or Unschedulable."""
        del state
        return _REJECTED if any(_pods_conflict(pod, other) for other in node.pods) else None

    def filter_scope(self, spec: PodSpec) -> Scope:
        """PODS_ON_NODE: the answer depends on the ports of the pods on the node."""
        return Scope.PODS_ON_NODE if host_ports(spec) else Scope.NODE

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """Pods that are deleted; nodes that are added."""
        return (
            on(EventResource.POD, ActionType.DELETE, hint=self.after_pod_deletion, scope=HintScope.SPEC),
            on(EventResource.NODE, ActionType.ADD),
        )

    def after_pod_deletion(self, pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
        """Queue if the deleted pod held, or was nominated to hold, a conflicting port."""
        del new
        return queue_if(occupies_node(old) and _pods_conflict(pod, old))
