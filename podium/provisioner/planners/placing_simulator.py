"""Simulates where podium's own plugins would place the pods of nodes that are removed.

Owns the forked cluster that the plugins see while these nodes leave. Decides nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from podium.engine.cluster import Cluster
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS
from podium.provisioner.apis.objects import ClusterObjects, NodeClaim
from podium.provisioner.disruption.broken_gangs import BrokenGang, broken_gangs
from podium.provisioner.disruption.candidates import Candidate, names_of
from podium.provisioner.disruption.simulation import Simulation, Simulator, uninitialized_text
from podium.provisioner.planners.local_storage import LocalStorage
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.provisioning.plan import NodePlan, Unschedulable
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.reasons import in_own_words
from podium.provisioner.state.evictions import Evictions

_PREEMPTED: Final = "would be preempted"
_LATE: Final = "fits only once the nodes are gone, which its PodDisruptionBudget may prevent"
_DELETION_TIME: Final = "1970-01-01T00:00:00Z"
"""Any time will do: a NodeClaim is leaving once it has a deletion timestamp."""


class PlacingSimulator(Simulator):
    """Simulates what is left of a cluster, with podium's plugins placing the pods.

    Differs: nodes under `consolidateAfter` also take pods; Karpenter's consolidation places no running pods there.

    Args:
        cluster: the cluster before any node leaves, and the profiles that place the pods. It is not changed.
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
        """Simulate that the candidates go, as `Simulator.without` does. Its options and reservations are ignored."""
        basis = self._basis
        if not basis.pools:
            return None
        objects = self._objects_with_leaving(candidates)
        plan = plan_with_podium(basis.with_nodes_of(objects), _fork_with(self._cluster, objects), self._now)
        unschedulable = dict(plan.unschedulable)
        for broken_gang in self.broken_gangs(candidates):
            unschedulable.update((pod.key, Unschedulable(pod, broken_gang.text)) for pod in broken_gang.moving_pods)
        moving = (pod for candidate in candidates for pod in candidate.pods)
        for pod in moving:
            # Only its eviction makes room for the pod elsewhere, and the eviction API refuses to evict it while its
            # budget is exhausted.
            if pod.key in plan.late and self._evictions.budgets_of(pod):
                unschedulable[pod.key] = Unschedulable(pod, _LATE)
        for state in self._active:
            if not state.is_initialized:
                text = in_own_words(uninitialized_text(state))
                unschedulable.update((pod.key, Unschedulable(pod, text)) for pod in plan.existing.get(state.name, ()))
        # Not pinned to one offering: consolidation narrows the requirements until a node costs less than those that go.
        nodes = tuple(dataclasses.replace(node, is_pinned=False) for node in plan.nodes)
        plan = dataclasses.replace(plan, nodes=nodes, unschedulable=unschedulable)
        pending = {pod.key for pod in basis.objects.pods if not pod.node_name}
        reasons = {**plan.reasons, **dict.fromkeys(plan.preempted, _PREEMPTED)}
        return Simulation(plan, {key: reason for key, reason in reasons.items() if key not in pending})

    def warnings(self, candidates: Sequence[Candidate], nodes: Iterable[NodePlan]) -> Iterator[str]:  # noqa: ARG002
        """Yield a sentence for each storage that new nodes are taken to have. No gang breaks, so none is named."""
        storage = LocalStorage(self._cluster)
        for node in nodes:
            yield from storage.warnings(node.name, node.node.labels(node.name), node.pods)

    def broken_gangs(self, candidates: Sequence[Candidate]) -> Sequence[BrokenGang]:
        """Return the gangs that would have fewer running members than they need while those of the candidates move."""
        return list(broken_gangs(self._basis, names_of(candidates)))

    def _objects_with_leaving(self, candidates: Sequence[Candidate]) -> ClusterObjects:
        """Return the objects with the candidates' NodeClaims being deleted."""
        objects, claim_names = self._basis.objects, {candidate.claim.metadata.name for candidate in candidates}
        return dataclasses.replace(
            objects,
            node_claims=tuple(
                _as_leaving(claim) if claim.metadata.name in claim_names else claim for claim in objects.node_claims
            ),
        )


def _as_leaving(claim: NodeClaim) -> NodeClaim:
    return replace(claim, metadata=replace(claim.metadata, deletion_timestamp=_DELETION_TIME))


def _fork_with(cluster: Cluster, objects: ClusterObjects) -> Cluster:
    """Return a fork of the cluster that has the nodes and pods of the objects, and no others."""
    forked_cluster = cluster.fork()
    nodes = {node.name: node for node in objects.nodes}
    pods = {pod.key: pod for pod in objects.pods}
    for pod in forked_cluster.pods:
        if pod.key not in pods:
            forked_cluster.drop(PODS, pod)
    for node in forked_cluster.nodes:
        if node.name not in nodes:
            forked_cluster.drop(NODES, node)
    for name, node in nodes.items():
        if forked_cluster.store.get(NODES, name) is None:
            forked_cluster.put(NODES, node)
    for key, pod in pods.items():
        current_pod = forked_cluster.store.get(PODS, key)
        if current_pod is not None and current_pod.node_name != pod.node_name:
            forked_cluster.put(
                PODS,
                current_pod.on_node(pod.node_name)
                if pod.node_name
                else Pod(metadata=current_pod.metadata, spec=current_pod.spec),
            )
    return forked_cluster
