"""Plans pods onto nodes: those that are there, those already planned, and new ones, in this order.

Owns the loop over the waiting pods, the limits of NodePools, and the order in which places are tried. Changes nothing
that it is given.

Source: karpenter pkg/controllers/provisioning/scheduling/scheduler.go, v1.15.0.
Differs: no deadline; NodeClaims with equally many pods keep their order, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from podium.objects.core import Pod, TopologySpreadConstraint
from podium.objects.requests import Requests, whole_amounts
from podium.provisioner.amounts import largest, less
from podium.provisioner.catalogue import Catalogue
from podium.provisioner.daemons import Daemons, uses_devices
from podium.provisioner.default_spreads import DefaultSpreads
from podium.provisioner.existing_nodes import ExistingNode
from podium.provisioner.instance_type_filter import DaemonGroup, InstanceTypeFilter
from podium.provisioner.instance_types import InstanceType
from podium.provisioner.labels import NODE_POOL
from podium.provisioner.node_claims import ClaimContext, PlannedClaim
from podium.provisioner.objects import ClusterObjects, NodePool
from podium.provisioner.planned_pods import PlannedPod
from podium.provisioner.pod_queue import PodQueue
from podium.provisioner.refusals import Refusal, all_of
from podium.provisioner.relaxation import PREFER_NO_SCHEDULE, relaxed
from podium.provisioner.requirements import Requirements
from podium.provisioner.reservations import RESERVATION_ID, Reservations
from podium.provisioner.state import NODES, StateNode
from podium.provisioner.templates import Template, template_of, usable_pools
from podium.provisioner.topology import Topology, domains_of
from podium.provisioner.volumes import VolumeError, Volumes

_NEEDS_DEVICES = Refusal.of(
    "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter", is_final=True
)
_NO_TEMPLATES = Refusal.of("nodepool requirements filtered out all available instance types")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How Karpenter is configured, as far as planning goes by it.

    Attributes:
        ignore_preferences: Whether pods' preferences have no effect.
        lower_min_values: Whether a NodeClaim may have fewer different values than its NodePool wants.
        uses_reservations: Whether reserved capacity counts.
        default_constraints: Spread constraints for pods that have none.
    """

    ignore_preferences: bool = False
    lower_min_values: bool = False
    uses_reservations: bool = True
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()


@dataclass(frozen=True, eq=False)
class Results:
    """Where pods were planned.

    Attributes:
        skipped: By NodePool, why it was not bought from.
        lowered_min_values: The NodePools whose NodeClaims are told to have fewer different values than wanted. As
            upstream, all NodeClaims of a NodePool are told what holds for the last of them.
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
        all_nodes: all nodes, those that are leaving too.
        pods: the pods to plan.
        is_strict: whether a pod waits for another pass rather than miss a reservation that others hold in this one.

    Raises:
        FieldError: an object has a value that has no meaning.
    """

    def __init__(
        self,
        objects: ClusterObjects,
        catalogue: Catalogue,
        settings: Settings,
        *,
        nodes: Sequence[StateNode],
        all_nodes: Sequence[StateNode],
        pods: Sequence[Pod],
        is_strict: bool = True,
    ) -> None:
        self._settings = settings
        self._volumes = Volumes(objects)
        self._alternatives: dict[str, tuple[Requirements, ...]] = {}
        well_known = catalogue.well_known | {RESERVATION_ID}
        pools = usable_pools(objects.node_pools)
        types_filter = InstanceTypeFilter(well_known)
        spreads = DefaultSpreads(objects, settings.default_constraints)
        self._pods = [self._prepared(pod, spreads) for pod in pods]
        self._topology = Topology(
            objects,
            nodes,
            all_nodes,
            [each for each in self._pods if each.uid in self._alternatives],
            domains_of(pools, catalogue.instance_types),
            ignore_preferences=settings.ignore_preferences,
        )
        self._context = ClaimContext(
            self._topology,
            types_filter,
            Reservations(catalogue.instance_types),
            well_known,
            is_strict=is_strict,
            uses_reservations=settings.uses_reservations,
        )
        self._tolerate_preferences = any(
            taint.effect == PREFER_NO_SCHEDULE for pool in pools for taint in pool.spec.template.spec.taints
        )
        self._skipped: dict[str, str] = {}
        self._templates: list[tuple[Template, tuple[DaemonGroup, ...]]] = []
        self._remaining = {
            each.metadata.name: whole_amounts(each.spec.limits, "spec.limits") for each in pools if each.spec.limits
        }
        self._claims: list[PlannedClaim] = []
        self._lowered: dict[str, bool] = {}
        self._hostnames = 0
        daemons = Daemons(objects, well_known)
        self._read_templates(pools, catalogue, types_filter, daemons)
        csi_nodes = {each.metadata.name: each for each in objects.csi_nodes}
        self._existing = [
            ExistingNode(
                each,
                self._topology,
                daemons.on_node(each),
                self._volumes,
                csi_nodes.get(each.node.metadata.name) if each.node is not None else None,
            )
            for each in sorted(nodes, key=lambda each: (not each.is_initialized, each.name))
        ]
        for each in nodes:
            self._take_from_limits(each.labels.get(NODE_POOL, ""), each.capacity)

    def solve(self) -> Results:
        """Plan all pods. To be called once."""
        queue = PodQueue(self._pods)
        refusals: dict[str, Refusal] = {}
        while (pod := queue.pop()) is not None:
            refusal = self._try(pod)
            if refusal is None:
                refusals.pop(pod.uid, None)
                continue
            refusals[pod.uid] = refusal
            # The pod gets its preferences back, and another chance with them once others are planned.
            self._topology.update(pod)
            queue.push(pod)
        lowered = frozenset(name for name, is_lowered in self._lowered.items() if is_lowered)
        return Results(tuple(self._existing), tuple(self._claims), self._skipped, lowered, refusals)

    # ------------------------------------------------------------ one pod

    def _try(self, pod: Pod) -> Refusal | None:
        """Plan a pod, with as many of its preferences as possible."""
        while True:
            refusal = self._add(pod)
            if refusal is None or refusal.is_final:
                return refusal
            less_demanding = relaxed(pod, tolerate_preferences=self._tolerate_preferences)
            if less_demanding is None:
                return refusal
            pod = less_demanding
            self._topology.update(pod)

    def _add(self, pod: Pod) -> Refusal | None:
        if uses_devices(pod.spec):
            return _NEEDS_DEVICES
        try:
            attached = self._volumes.attached(pod)
        except VolumeError as error:
            return Refusal.of(str(error))
        planned = PlannedPod.of(
            pod,
            self._alternatives.get(pod.uid, ()),
            attached,
            ignore_preferences=self._settings.ignore_preferences,
        )
        if any(node.take(planned) for node in self._existing):
            return None
        # The order stays from pod to pod, so equally full NodeClaims are not always tried in the order of their making.
        self._claims.sort(key=lambda each: len(each.pods))
        if any(claim.take(planned) is None for claim in self._claims):
            return None
        return self._add_to_new(planned)

    def _add_to_new(self, pod: PlannedPod) -> Refusal | None:
        if not self._templates:
            return _NO_TEMPLATES
        refusals: list[Refusal] = []
        for template, groups in self._templates:
            types = self._within_limits(template)
            if isinstance(types, Refusal):
                refusals.append(types)
                continue
            self._hostnames += 1
            claim = PlannedClaim(template, groups, types, f"hostname-placeholder-{self._hostnames:04d}", self._context)
            refusal = claim.take(pod, lower_min_values=self._settings.lower_min_values)
            if refusal is None:
                self._claims.append(claim)
                self._lowered[template.name] = claim.lowered_min_values
                # Any of the types may be launched, so the largest of them counts.
                self._take_from_limits(template.name, largest(each.capacity for each in claim.instance_types))
                return None
            refusals.append(refusal)
            if refusal.is_final:
                break
        return all_of(refusals)

    # ------------------------------------------------------------ limits

    def _within_limits(self, template: Template) -> tuple[InstanceType, ...] | Refusal:
        remaining = self._remaining.get(template.name)
        if not remaining:
            return template.instance_types
        if remaining.get(NODES) == 0:
            return Refusal.of(f"node limits have been exhausted for nodepool (NodePool={template.name})")
        left = tuple(
            each
            for each in template.instance_types
            if all(each.capacity.get(name, 0) <= amount for name, amount in remaining.items())
        )
        if not left:
            return Refusal.of(f"all available instance types exceed limits for nodepool (NodePool={template.name})")
        return left

    def _take_from_limits(self, pool: str, capacity: Requests) -> None:
        remaining = self._remaining.get(pool)
        if remaining is not None:
            self._remaining[pool] = less(remaining, capacity)

    # ------------------------------------------------------------ preparation

    def _prepared(self, pod: Pod, spreads: DefaultSpreads) -> Pod:
        """The pod with default constraints, its volumes' alternatives noted.

        A pod whose volumes are not there gets neither, and no rules about other pods until it is first refused.
        """
        try:
            self._alternatives[pod.uid] = self._volumes.alternatives(pod)
        except VolumeError:
            return pod
        return spreads.applied(pod)

    def _read_templates(
        self, pools: Iterable[NodePool], catalogue: Catalogue, types_filter: InstanceTypeFilter, daemons: Daemons
    ) -> None:
        for pool in pools:
            template = template_of(
                pool, catalogue.instance_types, types_filter, lower_min_values=self._settings.lower_min_values
            )
            if isinstance(template, str):
                self._skipped[pool.metadata.name] = template
            else:
                self._templates.append((template, daemons.groups_of(template)))
