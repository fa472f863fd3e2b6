"""The nodes that may be bought for a pod: those of each NodePool, in the order in which they are tried.

Owns which of them a NodePool's limits still allow. Never decides whether podium places the pod there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final

from podium.objects.core import Pod
from podium.objects.requests import Requests
from podium.provisioner.apis.labels import NODE_POOL
from podium.provisioner.cloudprovider.instance_type_filter import DaemonGroup
from podium.provisioner.planners.planned_devices import PlannedDevices
from podium.provisioner.provisioning.candidate_nodes import CandidateNode, candidate_nodes, has_room
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.relaxation import without_first_alternative
from podium.provisioner.provisioning.templates import Template
from podium.provisioner.provisioning.topology_groups import IGNORE
from podium.provisioner.scheduling.amounts import less, total
from podium.provisioner.scheduling.pod_requirements import has_meaning, strict_pod_requirements
from podium.provisioner.scheduling.requirements import Requirements
from podium.provisioner.scheduling.taints import untolerated_taints
from podium.provisioner.state.state_node import NODES as NODE_COUNT

TRIES_MAX: Final = 64
"""How many kinds of nodes are tried for one pod."""


class NodeOptions:
    """The nodes that may be bought, within the limits of their NodePools.

    Args:
        scheduler_names: those that podium serves; for other pods nothing is bought.
    """

    def __init__(self, basis: PlanBasis, scheduler_names: Collection[str], devices: PlannedDevices) -> None:
        self._basis = basis
        self._scheduler_names = scheduler_names
        self._devices = devices
        self._left: dict[str, Requests] = {}

    def of_pool(
        self, template: Template, groups: Sequence[DaemonGroup], pod: Pod, candidates: Mapping[str, CandidateNode]
    ) -> list[CandidateNode]:
        """Return the nodes of a NodePool that may suit the pod, the cheapest first; those of another zone or capacity
        type before those that differ in size only.

        Args:
            candidates: the nodes that are bought already, which count towards the limits.
        """
        is_ours = pod.spec.scheduler_name in self._scheduler_names
        if not is_ours or untolerated_taints(template.taints, pod.spec.tolerations):
            return []
        remaining, requests = self.remaining(template.name, candidates), self._devices.plain_requests(pod)
        options = [
            candidate
            for requirements in self.alternatives(template, pod)
            for candidate in candidate_nodes(template, groups, requirements, self._basis.well_known)
            if has_room(candidate, requests) and _is_within(candidate, remaining)
        ]
        first: dict[tuple[str, str], CandidateNode] = {}
        if self._devices.uses(pod):
            # The cheapest nodes have no devices, and would be all that is tried.
            options.sort(key=lambda option: not option.instance_type.devices)
        for candidate in options:
            first.setdefault((candidate.offering.zone, candidate.offering.capacity_type), candidate)
        ahead = list(first.values())
        options_in_order = [*ahead, *(option for option in options if option not in ahead)]
        # Only a few of them are tried, so that few are made in all their variants.
        return list(islice(chain.from_iterable(option.variants() for option in options_in_order), TRIES_MAX))

    def alternatives(self, template: Template, pod: Pod) -> Iterator[Requirements]:
        """Yield the requirements on a node of the NodePool for the pod, by the alternatives of its node affinity."""
        spec = pod.spec
        while has_meaning(spec):
            requirements = strict_pod_requirements(spec)
            # Where no label in common is left, a node of this NodePool cannot satisfy the alternative, whatever is
            # bought.
            if template.requirements.is_compatible(requirements, self._basis.well_known):
                yield template.requirements.union(requirements)
            less_demanding = without_first_alternative(spec)
            if less_demanding is None:
                return
            spec = less_demanding

    def remaining(self, pool: str, candidates: Mapping[str, CandidateNode]) -> Requests:
        """Return what the limits of the NodePool leave beside its nodes and these; empty if it has none."""
        limits = self._basis.limits.get(pool)
        if limits is None:
            return {}
        capacities = [
            node.capacity for node in self._basis.nodes if not node.is_leaving and node.labels.get(NODE_POOL) == pool
        ]
        bought = [_capacity(candidate) for candidate in candidates.values() if candidate.template.name == pool]
        return less(limits, total(*capacities, *bought))

    def of_all_pools(self, pod: Pod, candidates: Mapping[str, CandidateNode]) -> list[CandidateNode]:
        """Return the nodes of all NodePools that may suit the pod."""
        templates = self._basis.templates
        return [option for template, groups in templates for option in self.of_pool(template, groups, pod, candidates)]

    def all_for(self, pods: Iterable[Pod]) -> Iterator[CandidateNode]:
        """Yield every node that can be bought for one of these pods, whatever the limits, in all its variants."""
        for template, groups in self._basis.templates:
            requirement_sets: dict[object, Requirements] = {}
            for pod in pods:
                for requirements in self.alternatives(template, pod):
                    identity = frozenset(map(str, requirements))
                    requirement_sets.setdefault(identity, requirements)
            for requirements in requirement_sets.values():
                for candidate in candidate_nodes(template, groups, requirements, self._basis.well_known):
                    yield from candidate.variants()

    def are_within_limits(self, nodes: Iterable[CandidateNode]) -> bool:
        """Return True if the limits of the NodePools allow these nodes together, beside the nodes that are there."""
        # Each NodePool has limits of its own.
        by_pool: dict[str, list[CandidateNode]] = {}
        for node in nodes:
            by_pool.setdefault(node.template.name, []).append(node)
        return all(
            total(*map(_capacity, of_pool)).get(name, 0) <= amount
            for pool, of_pool in by_pool.items()
            for name, amount in self._limits_left(pool).items()
        )

    def within_limits(self, nodes: Iterable[CandidateNode]) -> Iterator[CandidateNode]:
        """Yield those of the nodes that the limits still allow beside the nodes that are there and those before."""
        remaining_by_pool: dict[str, Requests] = {}
        for node in nodes:
            pool = node.template.name
            remaining = remaining_by_pool.get(pool) or self._limits_left(pool)
            if _is_within(node, remaining):
                remaining_by_pool[pool] = less(remaining, _capacity(node))
                yield node

    def _limits_left(self, pool: str) -> Requests:
        if pool not in self._left:
            self._left[pool] = self.remaining(pool, {})
        return self._left[pool]

    def without_limits(self) -> NodeOptions:
        """Return the options as they were if no NodePool had limits."""
        return NodeOptions(self._basis.without_limits(), self._scheduler_names, self._devices)

    def domains(self, key: str) -> list[str]:
        """Return the values of the label that new nodes may have."""
        domains = self._basis.topology.domains.get(key)
        return [] if domains is None else domains.open_to((), IGNORE)

    def plain_requests(self, pod: Pod) -> Requests:
        """Return the pod's requests that the node itself must meet, and none of its devices."""
        return self._devices.plain_requests(pod)

    def exceeded_limits(self, candidate: CandidateNode, candidates: Mapping[str, CandidateNode]) -> Requests:
        """Return the limits that the node would exceed beside these, by resource; empty if it is within all."""
        remaining, capacity = self.remaining(candidate.template.name, candidates), _capacity(candidate)
        limits = self._basis.limits.get(candidate.template.name, {})
        return {name: limits[name] for name, amount in remaining.items() if capacity.get(name, 0) > amount}


def _is_within(candidate: CandidateNode, remaining: Requests) -> bool:
    capacity = _capacity(candidate)
    return all(capacity.get(name, 0) <= amount for name, amount in remaining.items())


def _capacity(candidate: CandidateNode) -> Requests:
    return {**candidate.instance_type.capacity, NODE_COUNT: 1}
