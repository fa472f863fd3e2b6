"""NodeUnschedulable: cordoned nodes take only pods that tolerate the cordon.

Runs at: PreFilter, Filter.
Verdict: UnschedulableAndUnresolvable.
Requeue: a schedulable node is added, or a node is uncordoned; the pod itself gets a toleration for cordoned nodes.
Cost: one gather over the rows; nothing for pods that tolerate the cordon.
Source: kubernetes pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go, v1.36.2 and v1.37.2.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.matching.taints import CORDONED
from podium.framework import contract as fwk
from podium.objects.core import Node, Pod, PodSpec, once_per_spec
from podium.objects.tolerations import is_tolerated
from podium.plugins.shared.hints import is_about, queue_if, taint_events

_REJECTED: Final = fwk.unresolvable("node(s) were unschedulable")


@once_per_spec
def _tolerates_cordon(spec: PodSpec) -> bool:
    return is_tolerated(spec.tolerations, CORDONED)


class NodeUnschedulable(fwk.PreFilterPlugin, fwk.TableFilterPlugin, fwk.FilterPlugin):
    """Rejects nodes with `spec.unschedulable`."""

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return success: upstream runs the plugin here for the sake of an alpha gate."""
        return None, None

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return verdict 1 for nodes that are cordoned."""
        if _tolerates_cordon(pod.spec):
            return None
        is_cordoned = snapshot.unschedulable.take(rows)
        return is_cordoned.astype(np.int64) if is_cordoned.any() else None

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return the status of the only verdict."""
        return _REJECTED

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success or UnschedulableAndUnresolvable."""
        return _REJECTED if node.node.spec.unschedulable and not _tolerates_cordon(pod.spec) else None

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return NODE: the answer depends on whether the node is cordoned."""
        return fwk.Scope.NODE

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register nodes that are added or uncordoned, and tolerations that are added to the pod."""
        return taint_events(self.handle.release.events, self.after_node_change, self.after_toleration_change)

    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> fwk.QueueingHint:
        """Queue if the node is schedulable now and was not before."""
        return queue_if(not new.spec.unschedulable and (old is None or old.spec.unschedulable))

    def after_toleration_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> fwk.QueueingHint:
        """Queue if the pod itself tolerates cordoned nodes now."""
        return queue_if(new is not None and is_about(pod, new) and _tolerates_cordon(new.spec))
