"""TopologyPlacementGenerator: the nodes of one topology domain for all pods of a group that asks for one.

Runs at: PlacementGenerate.
Verdict: Error if the running pods of the group are not all in one domain, or the PodGroup is gone.
Requeue: a pod that was rejected with its group is retried after its backoff.
Cost: one look-up of a label for each node.
Source: kubernetes pkg/scheduler/framework/plugins/topologyaware/topology_placement.go, v1.36.2.
Differs: the domains come in the order of their first nodes; upstream's come in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster import Snapshot
from podium.cluster.pod_groups import PodGroupState
from podium.framework import contract as fwk
from podium.objects.resource_types import POD_GROUPS


class TopologyPlacementGenerator(fwk.PlacementGeneratePlugin):
    """Makes one placement of each domain."""

    def __init__(self, args: object, handle: fwk.Handle) -> None:
        if handle.pod_groups is None:
            raise fwk.GateNeededError(self.name, "GenericWorkload")
        self._groups = handle.lister(POD_GROUPS)

    def generate_placements(
        self, key: str, state: PodGroupState, snapshot: Snapshot
    ) -> tuple[Sequence[fwk.Placement], fwk.Status | None]:
        """Return all nodes for a group without a topology; else those of each domain, or of its running pods' one."""
        group = self._groups.get(key)
        if group is None:
            return (), fwk.error_status(f'podgroup.scheduling.k8s.io "{key.partition("/")[2]}" not found')
        label = group.topology_key
        if label is None:
            return (fwk.Placement("", snapshot.order),), None
        try:
            scheduled_domain = _domain_of_scheduled(state, snapshot, label)
        except fwk.PluginError as error:
            return (), fwk.error_status(f"cannot determine domain for already scheduled pods: {error}")
        rows_of: dict[str, list[int]] = {}
        for row in snapshot.order.tolist():
            domain = snapshot.node(row).labels.get(label)
            if domain is not None and scheduled_domain in (None, domain):
                rows_of.setdefault(domain, []).append(row)
        return [fwk.Placement(domain, np.array(rows, np.intp)) for domain, rows in rows_of.items()], None

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: this plugin rejects groups, not single pods."""
        return ()


def _domain_of_scheduled(state: PodGroupState, snapshot: Snapshot, label: str) -> str | None:
    """Return the domain of the pods that have a node; None if there are none.

    Raises:
        PluginError: they have no domain, or several.
    """
    group_domain: str | None = None
    for pod in state.scheduled():
        row = snapshot.row_of.get(pod.node_name)
        if row is None:
            raise fwk.PluginError(f'getting node for pod {pod.key}: nodeinfo not found for node name "{pod.node_name}"')
        domain = snapshot.node(row).labels.get(label)
        if domain is None:
            raise fwk.PluginError(f"no topology domain found for pod {pod.key}")
        if group_domain not in (None, domain):
            raise fwk.PluginError(f"more than 1 domain found for pod group: {group_domain}, {domain}")
        group_domain = domain
    return group_domain
