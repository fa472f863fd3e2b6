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
from podium.framework import contract as fwk
from podium.objects.core import Pod, PodSpec
from podium.plugins.shared.hints import occupies_node, queue_if

_REJECTED: Final = fwk.unschedulable("node(s) didn't have free ports for the requested pod ports")


def _conflict(new_port: HostPort, port_in_use: HostPort) -> bool:
    if (new_port.protocol, new_port.port) != (port_in_use.protocol, port_in_use.port):
        return False
    return new_port.ip == port_in_use.ip or ANY_ADDRESS in (new_port.ip, port_in_use.ip)


def _pods_conflict(incoming_pod: Pod, pod_on_node: Pod) -> bool:
    ports_in_use = host_ports(pod_on_node.spec)
    return any(
        _conflict(new_port, port_in_use) for new_port in host_ports(incoming_pod.spec) for port_in_use in ports_in_use
    )


class NodePorts(fwk.PreFilterPlugin, fwk.TableFilterPlugin, fwk.FilterPlugin):
    """Rejects nodes where a host port of the pod is taken."""

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return Skip for a pod without host ports."""
        return None, None if host_ports(pod.spec) else fwk.SKIP

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return verdict 1 for nodes where a port is taken."""
        conflicting_rows = [row for port in host_ports(pod.spec) for row in snapshot.host_ports.conflicting_rows(port)]
        if not conflicting_rows:
            return None
        verdicts = np.zeros(len(snapshot.nodes), np.int64)
        verdicts[conflicting_rows] = 1
        return verdicts.take(rows)

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return the status of the only verdict."""
        return _REJECTED

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success or Unschedulable."""
        return _REJECTED if any(_pods_conflict(pod, pod_on_node) for pod_on_node in node.pods) else None

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return PODS_ON_NODE: the answer depends on the ports of the pods on the node."""
        return fwk.Scope.PODS_ON_NODE if host_ports(spec) else fwk.Scope.NODE

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register pods that are deleted; nodes that are added."""
        return (
            fwk.on(
                self.handle.release.events.assigned_pods,
                fwk.ActionType.DELETE,
                hint=self.after_pod_deletion,
                scope=fwk.HintScope.SPEC,
            ),
            fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD),
        )

    def after_pod_deletion(self, pod: Pod, old: Pod, new: Pod | None) -> fwk.QueueingHint:
        """Queue if the deleted pod held, or was nominated to hold, a conflicting port."""
        return queue_if(occupies_node(old) and _pods_conflict(pod, old))
