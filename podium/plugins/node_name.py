"""NodeName: a pod with `spec.nodeName` goes to that node only.

Runs at: Filter.
Verdict: UnschedulableAndUnresolvable.
Requeue: any node is added.
Cost: nothing for pods that name no node, as all pods from the queue.
Source: kubernetes pkg/scheduler/framework/plugins/nodename/node_name.go, v1.36.2.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework.contract.cluster_event import ActionType, EventRegistration, on
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, TableFilterPlugin
from podium.framework.contract.handle import Handle
from podium.framework.contract.plugin import Scope
from podium.framework.contract.status import Status, unresolvable
from podium.objects.core import Pod, PodSpec
from podium.objects.resource_types import EventResource

_NO_ROW: Final = -1
_REJECTED: Final = unresolvable("node(s) didn't match the requested node name")


class NodeName(TableFilterPlugin, FilterPlugin):
    """Rejects every node but the one that `spec.nodeName` asks for."""

    def __init__(self, args: object, handle: Handle) -> None:
        del args, handle

    def filter_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Verdict 1 for nodes other than the named one."""
        del state
        if not pod.node_name:
            return None
        others: IntArray = np.not_equal(rows, snapshot.row_of.get(pod.node_name, _NO_ROW)).astype(np.int64)
        return others

    def explain(self, state: CycleState, pod: Pod, verdict: int) -> Status:
        """The status of the only verdict."""
        del state, pod, verdict
        return _REJECTED

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Return success or UnschedulableAndUnresolvable."""
        del state
        return _REJECTED if pod.node_name and pod.node_name != node.name else None

    def filter_scope(self, spec: PodSpec) -> Scope:
        """NODE: the answer depends on the node's name."""
        del spec
        return Scope.NODE

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """Nodes that are added."""
        return (on(EventResource.NODE, ActionType.ADD),)
