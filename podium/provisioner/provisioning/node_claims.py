"""Nodes that would be bought, while pods are planned onto them.

Owns one NodeClaim's requirements, its instance types and its places in reservations, which each pod narrows.

Source: karpenter pkg/controllers/provisioning/scheduling/nodeclaim.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from podium.objects.core import Pod
from podium.objects.requests import Requests
from podium.provisioner.apis.labels import CAPACITY_TYPE, HOSTNAME, RESERVED
from podium.provisioner.cloudprovider.instance_type_columns import InstanceTypeColumns
from podium.provisioner.cloudprovider.instance_type_filter import (
    DaemonGroup,
    InstanceTypeFilter,
    Options,
    without_hostname,
)
from podium.provisioner.cloudprovider.instance_types import InstanceType, Offering
from podium.provisioner.cloudprovider.reservations import Reservations, reservation_label, reservation_of
from podium.provisioner.provisioning.planned_pods import PlannedPod
from podium.provisioner.provisioning.templates import Template
from podium.provisioner.provisioning.topology import Topology
from podium.provisioner.scheduling.amounts import less, smallest, total
from podium.provisioner.scheduling.host_ports import HostPort, any_conflict, host_ports
from podium.provisioner.scheduling.refusals import Refusal
from podium.provisioner.scheduling.requirements import Requirement, Requirements
from podium.provisioner.scheduling.taints import taints_text, untolerated_taints

_UNRESERVABLE = Refusal.of(
    "one or more instance types with compatible reserved offerings are available, but could not be reserved",
    is_final=True,
)
_ALL_FULL = Refusal.of(
    "all compatible reserved offerings are full and no on-demand or spot fallback is available", is_final=True
)
_ONLY_FULL = Refusal.of("the only compatible reserved offering is full; falling through to other NodePools")
_WOULD_LOSE_ALL = Refusal.of(
    "satisfying updated nodeclaim constraints would remove all compatible reserved offering options", is_final=True
)


@dataclass(frozen=True, eq=False)
class ClaimContext:
    """The collaborators that all NodeClaims of one plan share.

    Attributes:
        is_strict: Whether a pod waits for another pass rather than miss a reservation that others hold in this one.
        uses_reservations: Whether reserved capacity counts at all.
    """

    topology: Topology
    types_filter: InstanceTypeFilter
    reservations: Reservations
    well_known: frozenset[str]
    is_strict: bool = True
    uses_reservations: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class _Narrowing:
    """The state of a NodeClaim with one more pod."""

    requirements: Requirements
    options: int
    reserved: tuple[Offering, ...]


class PlannedClaim:
    """A NodeClaim that takes pods.

    Attributes:
        requirements: What its node must be like.
        options: The instance types that it can still have, as bits.
        pods: The pods that are planned onto it.
        lowered_min_values: Whether it has fewer different values than its NodePool wants.
    """

    def __init__(
        self,
        template: Template,
        groups: Sequence[DaemonGroup],
        options: int,
        hostname: str,
        context: ClaimContext,
    ) -> None:
        self.template = template
        # Each claim has a hostname of its own until it is bought, so that spreading over hosts can tell them apart.
        self.requirements = template.requirements.add(Requirement(HOSTNAME, False, frozenset((hostname,))))
        self.options = options
        self.pods: list[Pod] = []
        self.lowered_min_values = False
        self._requests: Requests = {}
        self._hostname = hostname
        self._groups = groups
        self._context = context
        self._ports: list[HostPort] = []
        self._reserved: tuple[Offering, ...] = ()

    def take(self, pod: PlannedPod, *, lower_min_values: bool = False) -> Refusal | None:
        """Plan the pod onto this node if it can run there.

        Args:
            lower_min_values: whether fewer different values than the NodePool wants will do.

        Returns: why it cannot; None if it was planned.
        """
        narrowing = self._narrow(pod, lower_min_values=lower_min_values)
        if isinstance(narrowing, Refusal):
            return narrowing
        self.lowered_min_values |= _is_lower(narrowing.requirements, self.requirements)
        self.pods.append(pod.pod)
        self.requirements = narrowing.requirements
        self.options = narrowing.options
        self._requests = total(self._requests, pod.requests)
        # Only now: a claim that refuses its first pod is thrown away and must leave no host behind.
        self._context.topology.register(self._hostname)
        self._context.topology.record(pod.pod, self.template.taints, narrowing.requirements)
        self._ports += host_ports(pod.spec)
        self._context.reservations.hold(self._hostname, narrowing.reserved)
        self._reserved = narrowing.reserved
        return None

    def refusal_of(self, pod: PlannedPod) -> Refusal | None:
        """Return the reason why the NodeClaim cannot take the pod now, or None if it can. Plans nothing."""
        narrowing = self._narrow(pod, lower_min_values=False)
        return narrowing if isinstance(narrowing, Refusal) else None

    @property
    def instance_types(self) -> tuple[InstanceType, ...]:
        """Those that it can still have, in the order of the groups that run the same DaemonSets."""
        return self._context.types_filter.in_order(self.options, self._groups)

    @property
    def columns(self) -> InstanceTypeColumns:
        """All instance types."""
        return self._context.types_filter.columns

    @property
    def hostname(self) -> str:
        """The name that stands for its node."""
        return self._hostname

    def most_left(self) -> Requests:
        """Return the most that its node may have left for pods."""
        return less(self.columns.most_room(self.options), self._requests)

    def largest_capacity(self, names: Iterable[str]) -> Requests:
        """Return the most that its node may have of each of these resources."""
        return self.columns.largest_capacity(self.options, names)

    def final_requirements(self) -> Requirements:
        """Return the requirements once all pods are planned, pinned to the reservations that the NodeClaim holds."""
        requirements = without_hostname(self.requirements)
        if not self._reserved:
            return requirements
        pinned = Requirements(requirement for requirement in requirements if requirement.key != CAPACITY_TYPE)
        names = frozenset(reservation_of(offering) for offering in self._reserved)
        label = reservation_label(self._reserved[0])
        return pinned.add(Requirement(CAPACITY_TYPE, False, frozenset((RESERVED,))), Requirement(label, False, names))

    def final_requests(self) -> Requests:
        """Return the requests of the pods, and at least those of the DaemonSets beside them.

        As upstream, a group without DaemonSets is forgotten when the next group has some.
        """
        least: Requests = {}
        for group in self._groups:
            # Which types are launched is open, so only what all groups run for certain is added: the least of each
            # amount.
            if not self.options & self._context.types_filter.mask_of(group):
                continue
            least = smallest(least, group.overhead) if least else group.overhead
        return total(self._requests, least)

    # ------------------------------------------------------------ one more pod

    def _narrow(self, pod: PlannedPod, *, lower_min_values: bool) -> _Narrowing | Refusal:
        untaken = untolerated_taints(self.template.taints, pod.spec.tolerations)
        if untaken:
            # A refusal's text is made on demand: most refusals are followed by a success, and are never read.
            return Refusal(lambda: taints_text(untaken))
        node_requirements, pod_requirements, well_known = self.requirements, pod.requirements, self._context.well_known
        if not node_requirements.is_compatible(pod_requirements, well_known):
            return Refusal(
                lambda: (
                    "incompatible requirements, "
                    f"{_incompatibility_text(node_requirements, pod_requirements, well_known)}"
                )
            )
        # Volumes' topology comes before that of pods, which collapses to one domain and would leave no choice of a
        # zone.
        base = node_requirements.union(pod_requirements)
        last: _Narrowing | Refusal | None = None
        for alternative in pod.volume_alternatives or (None,):
            last = self._with_volumes(pod, base, alternative, lower_min_values)
            if isinstance(last, _Narrowing):
                break
        assert last is not None
        return last

    def _with_volumes(
        self, pod: PlannedPod, base: Requirements, alternative: Requirements | None, lower_min_values: bool
    ) -> _Narrowing | Refusal:
        context = self._context
        if alternative is not None:
            if not base.is_compatible(alternative, context.well_known):
                before_volumes, volumes, well_known = base, alternative, context.well_known
                return Refusal(
                    lambda: (
                        "incompatible volume requirements, "
                        f"{_incompatibility_text(before_volumes, volumes, well_known)}"
                    )
                )
            base = base.union(alternative)
        topology_requirements = context.topology.narrow(pod.pod, self.template.taints, pod.strict_requirements, base)
        if isinstance(topology_requirements, Refusal):
            return topology_requirements
        if not base.is_compatible(topology_requirements, context.well_known):
            return Refusal(lambda: _incompatibility_text(base, topology_requirements, context.well_known))
        requirements = base.union(topology_requirements)
        ports = host_ports(pod.spec)
        options = context.types_filter.filter_types(
            self.options,
            () if any_conflict(ports, self._ports) else self._groups,
            requirements,
            total(self._requests, pod.requests),
            pod_requests=pod.requests,
            ports=ports,
            lower_min_values=lower_min_values,
        )
        if isinstance(options, Refusal):
            return options
        if options.lowered_min_values:
            requirements = _with_minimums(requirements, options)
        reserved = self._reservable(options.mask, requirements)
        if isinstance(reserved, Refusal):
            return reserved
        return _Narrowing(requirements, options.mask, reserved)

    # ------------------------------------------------------------ reservations

    def _reservable(self, options: int, requirements: Requirements) -> tuple[Offering, ...] | Refusal:
        context = self._context
        if not context.uses_reservations or not context.reservations:
            return ()
        has_room = has_full = has_other = False
        reservable: list[Offering] = []
        for instance_type in context.types_filter.in_order(options, self._groups):
            # All compatible reservations are held, not one: until the launch it is open which of them the node gets.
            for offering in instance_type.offerings:
                if not offering.is_available or not requirements.is_compatible(
                    offering.requirements, context.well_known
                ):
                    continue
                if offering.capacity_type != RESERVED:
                    has_other = True
                elif context.reservations.is_full(offering):
                    has_full = True
                else:
                    has_room = True
                    if context.reservations.can_hold(self._hostname, offering):
                        reservable.append(offering)
        # Strict while buying: it is better to wait for the next pass than to pay for a node beside an unused
        # reservation.
        if context.is_strict and has_room and not reservable:
            return _UNRESERVABLE
        if has_full and not has_room and not has_other:
            return _ALL_FULL if context.is_strict else _ONLY_FULL
        if context.is_strict and self._reserved and not reservable:
            return _WOULD_LOSE_ALL
        return tuple(reservable)


def _incompatibility_text(existing: Requirements, incoming: Requirements, well_known: frozenset[str]) -> str:
    return "; ".join(existing.incompatibilities(incoming, well_known))


def _with_minimums(requirements: Requirements, options: Options) -> Requirements:
    minimums = options.lowered_min_values
    return Requirements(
        msgspec.structs.replace(requirement, min_values=minimums[requirement.key])
        if requirement.key in minimums
        else requirement
        for requirement in requirements
    )


def _is_lower(requirements: Requirements, requirements_before: Requirements) -> bool:
    for requirement in requirements_before:
        minimum = requirements.get(requirement.key).min_values
        if requirement.min_values is not None and minimum is not None and minimum < requirement.min_values:
            return True
    return False
