"""Plans pods onto nodes: those that are there, those already planned, and new ones, in this order.

Owns the loop over the waiting pods, the limits of NodePools, and the order in which places are tried. Changes nothing
that it is given.

Source: karpenter pkg/controllers/provisioning/scheduling/scheduler.go, v1.15.0.
Differs: no deadline; NodeClaims with equally many pods keep their order, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np

from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Pod
from podium.objects.requests import Requests
from podium.provisioner.apis.labels import NODE_POOL
from podium.provisioner.cloudprovider.instance_type_filter import DaemonGroup
from podium.provisioner.cloudprovider.reservations import Reservations
from podium.provisioner.provisioning.causes import limits_text, unavailable_text
from podium.provisioner.provisioning.daemons import uses_devices
from podium.provisioner.provisioning.existing_nodes import ExistingNode
from podium.provisioner.provisioning.node_claims import ClaimContext, PlannedClaim
from podium.provisioner.provisioning.node_index import Limits, NodeIndex, OrderedNodeIndex
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.planned_pods import PlannedPod
from podium.provisioner.provisioning.pod_queue import PodQueue
from podium.provisioner.provisioning.relaxation import relax
from podium.provisioner.provisioning.templates import Template
from podium.provisioner.provisioning.topology import Topology
from podium.provisioner.scheduling.amounts import less
from podium.provisioner.scheduling.refusals import Refusal, all_of
from podium.provisioner.scheduling.volumes import VolumeError
from podium.provisioner.state.state_node import NODES, StateNode

PENDING: Final = "Pending"

_NEEDS_DEVICES = Refusal.of(
    "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter", is_final=True
)
_NO_TEMPLATES = Refusal.of("nodepool requirements filtered out all available instance types")
NOT_LOOKED_AT: Final = "was not looked at: the time limit is over"
_NOT_LOOKED_AT: Final = Refusal.of(NOT_LOOKED_AT, is_final=True)


@dataclass(frozen=True, eq=False)
class Results:
    """The places for which pods were planned.

    Attributes:
        skipped: By NodePool, why it was not bought from.
        lowered_min_values: The NodePools whose NodeClaims report fewer different values than wanted. As upstream, all
            NodeClaims of a NodePool report what holds for the last of them.
        refusals: By uid, why a pod was not planned.
    """

    existing: tuple[ExistingNode, ...]
    claims: tuple[PlannedClaim, ...]
    skipped: Mapping[str, str]
    lowered_min_values: AbstractSet[str] = frozenset()
    refusals: Mapping[str, Refusal] = field(default_factory=dict)


class Solver:
    """One plan over a cluster.

    Args:
        nodes: the nodes that pods can be planned onto.
        pods: the pods to plan.
        is_strict: whether a pod waits for another pass rather than miss a reservation that others hold in this one.
        credit: by reservation, places that become free when a node goes.
        resting: the names of nodes under their NodePool's `consolidateAfter`: they take only pods that are pending, or
            whose node is leaving.

    Raises:
        FieldError: an object has a value that has no meaning.
    """

    def __init__(
        self,
        basis: PlanBasis,
        *,
        nodes: Sequence[StateNode],
        pods: Iterable[Pod],
        is_strict: bool = True,
        credit: Mapping[str, int] | None = None,
        resting: AbstractSet[str] = frozenset(),
    ) -> None:
        self._basis = basis
        prepared_pods = [basis.prepare(pod) for pod in pods]
        self._pods = [prepared_pod.pod for prepared_pod in prepared_pods]
        self._alternatives = {prepared_pod.pod.uid: prepared_pod.volume_alternatives for prepared_pod in prepared_pods}
        self._topology = Topology(
            basis.topology,
            nodes,
            [prepared_pod.pod for prepared_pod in prepared_pods if prepared_pod.has_volumes],
            ignore_preferences=basis.settings.ignore_preferences,
        )
        self._context = ClaimContext(
            self._topology,
            basis.types_filter,
            Reservations(basis.catalogue.instance_types, credit),
            basis.well_known,
            is_strict=is_strict,
            uses_reservations=basis.settings.uses_reservations,
        )
        self._remaining = dict(basis.limits)
        self._claims: list[PlannedClaim] = []
        self._lowered: dict[str, bool] = {}
        self._hostnames = 0
        # Initialised nodes first: they run a pod at once, the others only if they ever join.
        nodes_in_turn = sorted(nodes, key=lambda state: (not state.is_initialized, state.name))
        self._topology.register_all(dict.fromkeys(state.hostname for state in nodes_in_turn))
        self._existing = [ExistingNode(state, basis.room(state), self._topology) for state in nodes_in_turn]
        self._awake = np.array([node.state.name not in resting for node in self._existing], dtype=np.bool_)
        self._node_places, self._claim_places = NodeIndex(), OrderedNodeIndex()
        for node in self._existing:
            self._node_places.add(node.state.hostname, node.free, node.requirements)
        self._leaving = frozenset(state.name for state in basis.nodes if state.is_leaving) if resting else frozenset()
        for state in nodes:
            # Nodes that stay use up the limits too, also those that were bought under an earlier spec of the NodePool.
            self._take_from_limits(state.labels.get(NODE_POOL, ""), state.capacity)

    def solve(self, limit: TimeLimit = UNLIMITED) -> Results:
        """Plan all pods, or those whose turn comes in time. To be called once."""
        queue = PodQueue(self._pods)
        refusals: dict[str, Refusal] = {}
        while (pod := queue.pop()) is not None:
            if limit.is_over():
                limit.is_noticed = True
                refusals.setdefault(pod.uid, _NOT_LOOKED_AT)
                continue
            refusal = self._try(pod)
            if refusal is None:
                refusals.pop(pod.uid, None)
                continue
            refusals[pod.uid] = refusal
            # The pod gets its preferences back, and another chance with them once others are planned.
            self._topology.update(pod)
            queue.push(pod)
        lowered_pools = frozenset(name for name, is_lowered in self._lowered.items() if is_lowered)
        return Results(tuple(self._existing), tuple(self._claims), self._basis.skipped, lowered_pools, refusals)

    def has(self, pod: Pod) -> bool:
        """Return True if the pod was to be planned."""
        return _contains(self._pods, pod.uid)

    def refusals_of_nodes(self, uid: str) -> dict[str, str]:
        """Return by existing node why it cannot take the pod as things are now, with all the pod's preferences."""
        pod = self._pod_of(uid)
        refusals = (
            (node.state.name, pod and node.refusal_of(pod)) for node in self._existing if not _contains(node.pods, uid)
        )
        return {name: refusal.text() for name, refusal in refusals if refusal}

    def refusals_of_claims(self, uid: str) -> dict[str, str]:
        """Return why each planned node cannot take the pod as things are now, by the pods that the node is for."""
        pod = self._pod_of(uid)
        refusals = (
            (claim.pods, pod and claim.refusal_of(pod)) for claim in self._claims if not _contains(claim.pods, uid)
        )
        return {", ".join(sorted(pod.key for pod in pods)): refusal.text() for pods, refusal in refusals if refusal}

    def _pod_of(self, uid: str) -> PlannedPod | None:
        """Return the pod that is asked about, or None if its volumes are not there, which is why it stays."""
        try:
            return self._planned_pod(next(pod for pod in self._pods if pod.uid == uid))
        except VolumeError:
            return None

    # ------------------------------------------------------------ one pod

    def _try(self, pod: Pod) -> Refusal | None:
        """Plan a pod, with as many of its preferences as possible."""
        # A pod loses all its preferences at once on first sight, before others get their turn; upstream does not go
        # back.
        while True:
            refusal = self._add(pod)
            if refusal is None or refusal.is_final:
                return refusal
            less_demanding = relax(pod, tolerate_preferences=self._basis.tolerates_preferences)
            if less_demanding is None:
                return refusal
            pod = less_demanding
            self._topology.update(pod)

    def _add(self, pod: Pod) -> Refusal | None:
        if uses_devices(pod.spec):
            return _NEEDS_DEVICES
        try:
            planned_pod = self._planned_pod(pod)
        except VolumeError as error:
            return Refusal.of(str(error))
        limits = self._topology.limits_of(pod, planned_pod.strict_requirements)
        if self._add_to_nodes(planned_pod, limits) or self._add_to_claims(planned_pod, limits):
            return None
        return self._add_to_new(planned_pod)

    def _add_to_nodes(self, pod: PlannedPod, limits: Limits) -> bool:
        places = self._node_places
        mask = places.open_to(pod.requests, limits)
        # Nodes under consolidateAfter are no destination for pods that consolidation moves: they would never rest.
        if pod.pod.status.phase != PENDING and pod.pod.node_name not in self._leaving:
            mask &= self._awake
        for index in map(int, mask.nonzero()[0]):
            node = self._existing[index]
            if node.take(pod):
                places.narrow(index, node.free, node.requirements)
                places.count_again(index, self._topology.counting(pod.pod))
                return True
        return False

    def _add_to_claims(self, pod: PlannedPod, limits: Limits) -> bool:
        places = self._claim_places
        for index in places.in_order(places.open_to(pod.requests, limits)):
            claim = self._claims[index]
            if claim.take(pod) is None:
                places.move(index, len(claim.pods))
                places.narrow(index, claim.most_left(), claim.requirements)
                places.count_again(index, self._topology.counting(pod.pod))
                return True
        return False

    def _planned_pod(self, pod: Pod) -> PlannedPod:
        """Return the pod with what it asks of a node. Raises: VolumeError."""
        return PlannedPod.of(
            pod,
            self._alternatives[pod.uid],
            self._basis.volumes.attached_volumes(pod),
            ignore_preferences=self._basis.settings.ignore_preferences,
        )

    def _add_to_new(self, pod: PlannedPod) -> Refusal | None:
        if not self._basis.templates:
            return _NO_TEMPLATES
        refusals: dict[str, Refusal] = {}
        for template, groups in self._basis.templates:
            types = self._within_limits(template)
            if isinstance(types, Refusal):
                refusals[template.name] = types
                continue
            self._hostnames += 1
            claim = PlannedClaim(template, groups, types, f"hostname-placeholder-{self._hostnames:04d}", self._context)
            refusal = claim.take(pod, lower_min_values=self._basis.settings.lower_min_values)
            if refusal is None:
                self._claims.append(claim)
                self._claim_places.add(claim.hostname, claim.most_left(), claim.requirements)
                # Known only by the NodePool that succeeded: an earlier one may have lowered its minimums in vain.
                self._lowered[template.name] = claim.lowered_min_values
                # Any of the types may be launched, so the largest of them counts.
                self._take_from_limits(template.name, claim.largest_capacity(self._remaining.get(template.name, ())))
                return None
            limits = {} if types == template.mask else self._remaining[template.name]
            cause = partial(self._cause, pod, template, groups, limits)
            refusals[template.name] = replace(refusal, cause=cause)
            # A lighter NodePool must not take the pod while the heavier one waits for a reservation.
            if refusal.is_final:
                break
        return all_of(refusals)

    def _cause(self, pod: PlannedPod, template: Template, groups: tuple[DaemonGroup, ...], limits: Requests) -> str:
        """Return the cause why no node of the template helps, where the refusal does not say it.

        Args:
            limits: what the NodePool's limits left, if they ruled out instance types.
        """
        if limits:
            claim = PlannedClaim(template, groups, template.mask, "hostname-placeholder", self._context)
            if claim.refusal_of(pod) is None:
                return limits_text(template.name, limits)
        if not self._basis.has_unavailable:
            return ""
        requirements = template.requirements.union(pod.requirements)
        return unavailable_text(
            self._basis.catalogue.instance_types, requirements, pod.requests, self._context.well_known
        )

    # ------------------------------------------------------------ limits

    def _within_limits(self, template: Template) -> int | Refusal:
        """Return the template's instance types that the NodePool's limits allow, as bits."""
        remaining = self._remaining.get(template.name)
        if not remaining:
            return template.mask
        # Exactly 0, as upstream: a limit that is exceeded already does not stop this pass, the creation of the nodes
        # does.
        if remaining.get(NODES) == 0:
            return Refusal.of(f"node limits have been exhausted for nodepool (NodePool={template.name})")
        mask = template.mask & self._context.types_filter.columns.within(remaining)
        if not mask:
            return Refusal.of(f"all available instance types exceed limits for nodepool (NodePool={template.name})")
        return mask

    def _take_from_limits(self, pool: str, capacity: Requests) -> None:
        remaining = self._remaining.get(pool)
        if remaining is not None:
            self._remaining[pool] = less(remaining, capacity)


def _contains(pods: Iterable[Pod], uid: str) -> bool:
    return any(pod.uid == uid for pod in pods)
