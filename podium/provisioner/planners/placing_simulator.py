"""Simulates where pods would go if some nodes went: podium's own plugins place each pod.

Owns the cluster that podium's plugins see while nodes are taken away. Decides nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from podium.engine.cluster import Cluster
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS
from podium.provisioner.apis.objects import ClusterObjects, NodeClaim
from podium.provisioner.disruption.candidates import Candidate
from podium.provisioner.disruption.simulation import Simulation, Simulator, uninitialized_text
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.provisioning.plan import Unschedulable
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.reasons import in_own_words
from podium.provisioner.state.evictions import Evictions

_PREEMPTED: Final = "would be preempted"
_LATE: Final = "fits only once the nodes are gone, which its PodDisruptionBudget may prevent"
_SOME_TIME: Final = "1970-01-01T00:00:00Z"


class PlacingSimulator(Simulator):
    """Simulates what is left of a cluster as podium's plugins see it. Nodes under `consolidateAfter` take pods, too.

    Args:
        cluster: the cluster before anything went, and the profiles that place the pods. It is not changed.
    """

    def __init__(self, cluster: Cluster, basis: PlanBasis, evictions: Evictions, now_s: float) -> None:
        super().__init__(basis, evictions, now_s)
        self._cluster, self._now = cluster, now_s

    def without(
        self,
        candidates: Sequence[Candidate],
        *,
        is_consolidation: bool = False,  # noqa: ARG002
        is_strict: bool = False,  # noqa: ARG002
        credit: Mapping[str, int] | None = None,  # noqa: ARG002
    ) -> Simulation | None:
        """Simulate as `Simulator.without` does. Reservations are left out."""
        basis = self._basis
        if not basis.pools:
            return None
        objects = self._objects_leaving(candidates)
        plan = plan_with_podium(basis.with_nodes_of(objects), _as_in(self._cluster, objects), self._now)
        unschedulable = dict(plan.unschedulable)
        moving = (pod for candidate in candidates for pod in candidate.pods)
        for pod in moving:
            # The eviction API refuses to evict the pod while its budget is exhausted, and only the eviction would make
            # the room.
            if pod.key in plan.late and self._evictions.budgets_of(pod):
                unschedulable[pod.key] = Unschedulable(pod, _LATE)
        for state in self._active:
            if not state.is_initialized:
                text = in_own_words(uninitialized_text(state))
                unschedulable.update((pod.key, Unschedulable(pod, text)) for pod in plan.existing.get(state.name, ()))
        # Consolidation narrows the requirements of a node until it costs less than those that go.
        nodes = tuple(dataclasses.replace(node, is_pinned=False) for node in plan.nodes)
        plan = dataclasses.replace(plan, nodes=nodes, unschedulable=unschedulable)
        pending = {pod.key for pod in basis.objects.pods if not pod.node_name}
        reasons = {**plan.reasons, **dict.fromkeys(plan.preempted, _PREEMPTED)}
        return Simulation(plan, {key: reason for key, reason in reasons.items() if key not in pending})

    def _objects_leaving(self, candidates: Sequence[Candidate]) -> ClusterObjects:
        """Return the cluster where these nodes have begun to leave."""
        objects, claims = self._basis.objects, {candidate.claim.metadata.name for candidate in candidates}
        return dataclasses.replace(
            objects,
            node_claims=tuple(
                _leaving(claim) if claim.metadata.name in claims else claim for claim in objects.node_claims
            ),
        )


def _leaving(claim: NodeClaim) -> NodeClaim:
    return replace(claim, metadata=replace(claim.metadata, deletion_timestamp=_SOME_TIME))


def _as_in(cluster: Cluster, objects: ClusterObjects) -> Cluster:
    """Return a fork of the cluster with just the nodes and pods of the objects."""
    world = cluster.fork()
    nodes = {node.name: node for node in objects.nodes}
    pods = {pod.key: pod for pod in objects.pods}
    for pod in world.pods:
        if pod.key not in pods:
            world.drop(PODS, pod)
    for node in world.nodes:
        if node.name not in nodes:
            world.drop(NODES, node)
    for name, node in nodes.items():
        if world.store.get(NODES, name) is None:
            world.put(NODES, node)
    for key, pod in pods.items():
        pod_there = world.store.get(PODS, key)
        if pod_there is not None and pod_there.node_name != pod.node_name:
            world.put(
                PODS,
                pod_there.on_node(pod.node_name)
                if pod.node_name
                else Pod(metadata=pod_there.metadata, spec=pod_there.spec),
            )
    return world
