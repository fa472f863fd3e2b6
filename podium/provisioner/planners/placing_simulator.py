"""What would become of the pods if some nodes went, judged by podium: each pod is placed by podium's own plugins.

Owns the cluster that podium's plugins see while nodes are taken away. Decides nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from podium.engine.cluster import Cluster
from podium.objects.core import Pod
from podium.objects.requests import Requests
from podium.objects.resource_types import NODES, PODS
from podium.provisioner.apis.labels import INSTANCE_TYPE
from podium.provisioner.apis.objects import ClusterObjects, NodeClaim
from podium.provisioner.cloudprovider.instance_type_columns import InstanceTypeColumns
from podium.provisioner.disruption.candidates import Candidate
from podium.provisioner.disruption.simulation import Simulation, Simulator, uninitialized_text
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.provisioning.launches import Launch
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.plans import Outcome, Purchase
from podium.provisioner.provisioning.reasons import in_own_words
from podium.provisioner.provisioning.templates import Template
from podium.provisioner.scheduling.amounts import requests_of, total
from podium.provisioner.scheduling.requirements import Requirement
from podium.provisioner.state.evictions import Evictions

_PREEMPTED: Final = "would be preempted"
_LATE: Final = "fits only once the nodes are gone, which its PodDisruptionBudget may prevent"
_SOME_TIME: Final = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True, eq=False)
class LaunchedClaim:
    """A node that is bought in one way only, with its pods."""

    launch: Launch
    pods: Sequence[Pod]
    columns: InstanceTypeColumns

    @property
    def template(self) -> Template:
        """That of its NodePool."""
        return self.launch.template

    def final_requests(self) -> Requests:
        """What its pods take, those of DaemonSets too."""
        return total(self.launch.group.overhead, *(requests_of(each) for each in self.pods))

    def purchase(self) -> Purchase:
        """The node to buy."""
        launch = self.launch
        named = Requirement.of(INSTANCE_TYPE, "In", (launch.instance_type.name,))
        return Purchase(
            self, launch.requirements.union(launch.offering.requirements).add(named), (launch.instance_type,)
        )


class PlacingSimulator(Simulator):
    """Simulates what is left of a cluster as podium's plugins see it. Nodes under `consolidateAfter` take pods, too.

    Args:
        cluster: the cluster before anything went, and the profiles that place the pods. It is not changed.
    """

    def __init__(self, cluster: Cluster, basis: PlanBasis, evictions: Evictions, now: float) -> None:
        super().__init__(basis, evictions, now)
        self._cluster, self._now = cluster, now

    def without(
        self,
        candidates: Sequence[Candidate],
        *,
        is_consolidation: bool = False,  # noqa: ARG002
        is_strict: bool = False,  # noqa: ARG002
        credit: Mapping[str, int] | None = None,  # noqa: ARG002
    ) -> Simulation | None:
        """As `Simulator.without`. Reservations are left out."""
        basis = self._basis
        if not basis.pools:
            return None
        objects = self._objects_leaving(candidates)
        plan = plan_with_podium(basis.with_nodes_of(objects), _as_in(self._cluster, objects), self._now)
        errors = {**plan.errors, **dict.fromkeys(plan.preempted, _PREEMPTED)}
        moving = (pod for each in candidates for pod in each.pods)
        errors.update((pod.key, _LATE) for pod in moving if pod.key in plan.late and self._evictions.budgets_of(pod))
        for state in self._active:
            if not state.is_initialized:
                text = in_own_words(uninitialized_text(state))
                errors.update((pod.key, text) for pod in plan.pods.get(state.name, ()))
        columns = basis.types_filter.columns
        purchases = tuple(
            LaunchedClaim(launch, plan.pods.get(name, ()), columns).purchase() for name, launch in plan.launches.items()
        )
        existing = {name: pods for name, pods in plan.pods.items() if name not in plan.launches}
        waited = {each.key for each in basis.objects.pods if not each.node_name}
        stranded = {key: text for key, text in errors.items() if key not in waited}
        return Simulation(Outcome(existing, purchases, errors), stranded)

    def _objects_leaving(self, candidates: Sequence[Candidate]) -> ClusterObjects:
        """The cluster where these nodes have begun to leave."""
        objects, claims = self._basis.objects, {each.claim.metadata.name for each in candidates}
        return dataclasses.replace(
            objects,
            node_claims=tuple(_leaving(each) if each.metadata.name in claims else each for each in objects.node_claims),
        )


def _leaving(claim: NodeClaim) -> NodeClaim:
    return replace(claim, metadata=replace(claim.metadata, deletion_timestamp=_SOME_TIME))


def _as_in(cluster: Cluster, objects: ClusterObjects) -> Cluster:
    """A fork of the cluster with just the nodes and pods of the objects."""
    world = cluster.fork()
    nodes = {each.name: each for each in objects.nodes}
    pods = {each.key: each for each in objects.pods}
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
        known = world.store.get(PODS, key)
        if known is not None and known.node_name != pod.node_name:
            world.put(
                PODS, known.on_node(pod.node_name) if pod.node_name else Pod(metadata=known.metadata, spec=known.spec)
            )
    return world
