"""NodeName: a pod with `spec.nodeName` goes to that node only.

Runs at: PreFilter, Filter.
Verdict: UnschedulableAndUnresolvable.
Requeue: any node is added.
Cost: nothing for pods that name no node, as all pods from the queue.
Source: kubernetes pkg/scheduler/framework/plugins/nodename/node_name.go, v1.36.2 and v1.37.2.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework import contract as fwk
from podium.objects.core import Pod, PodSpec

_NO_ROW: Final = -1
_REJECTED: Final = fwk.unresolvable("node(s) didn't match the requested node name")


class NodeName(fwk.PreFilterPlugin, fwk.TableFilterPlugin, fwk.FilterPlugin):
    """Rejects every node but the one that `spec.nodeName` asks for."""

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return the named node only, if there is one."""
        return fwk.PreFilterResult(frozenset({pod.node_name})) if pod.node_name else None, None

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return verdict 1 for nodes other than the named one."""
        if not pod.node_name:
            return None
        verdicts: IntArray = np.not_equal(rows, snapshot.row_of.get(pod.node_name, _NO_ROW)).astype(np.int64)
        return verdicts

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return the status of the only verdict."""
        return _REJECTED

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success or UnschedulableAndUnresolvable."""
        return _REJECTED if pod.node_name and pod.node_name != node.name else None

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return NODE: the answer depends on the node's name."""
        return fwk.Scope.NODE

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register nodes that are added."""
        return (fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD),)
