"""Which instance types a NodeClaim can still have, and why none is left.

Owns the test of one instance type against requirements and requests, the groups of instance types that run the same
DaemonSets, and the texts of a failure.

Source: karpenter pkg/controllers/provisioning/scheduling/nodeclaim.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from podium.objects.requests import Requests
from podium.objects.resource_names import CPU
from podium.provisioner.amounts import amounts_text, largest, smallest, total
from podium.provisioner.host_ports import HostPort, any_conflict
from podium.provisioner.instance_types import InstanceType, fits, unmet_min_values
from podium.provisioner.labels import HOSTNAME
from podium.provisioner.refusals import Refusal
from podium.provisioner.requirements import Requirements

MILLION_CORES: Final = 1_000_000_000
"""A cpu request that is probably a typo, in thousandths of a core."""


@dataclass(frozen=True, eq=False)
class DaemonGroup:
    """Instance types whose nodes run the same DaemonSets.

    Attributes:
        overhead: What the pods of these DaemonSets take; empty without any.
        ports: The node's ports that they use.
    """

    instance_types: tuple[InstanceType, ...]
    overhead: Requests = field(default_factory=dict)
    ports: tuple[HostPort, ...] = ()


@dataclass(frozen=True, slots=True)
class _Match:
    """What requirements mean for an instance type: whether it meets them, and what its offerings leave for pods."""

    is_compatible: bool
    allocatable: tuple[Requests, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """The instance types that are left, at least one.

    Attributes:
        lowered_min_values: By label, how many values are left where there are fewer than wanted.
    """

    instance_types: tuple[InstanceType, ...]
    lowered_min_values: Mapping[str, int]


@dataclass(slots=True)
class _Tally:
    """What some instance type met."""

    requirements: bool = False
    resources: bool = False
    offering: bool = False
    all_but_offering: bool = False
    all_but_resources: bool = False
    all_but_requirements: bool = False

    def add(self, *, requirements: bool, resources: bool, offering: bool) -> None:
        self.requirements |= requirements
        self.resources |= resources
        self.offering |= offering
        self.all_but_offering |= requirements and resources and not offering
        self.all_but_resources |= requirements and offering and not resources
        self.all_but_requirements |= resources and offering and not requirements

    def text(self) -> str:
        unmet = (not self.requirements, not self.resources, not self.offering)
        known = _NONE_MET.get(unmet)
        if known is not None:
            return known
        if self.all_but_offering:
            return (
                "no instance type which met the scheduling requirements and had enough resources, had a required "
                "offering"
            )
        if self.all_but_requirements:
            return (
                "no instance type which had enough resources and the required offering met the scheduling requirements"
            )
        if self.all_but_resources:
            return (
                "no instance type which met the scheduling requirements and the required offering had the required "
                "resources"
            )
        return "no instance type met the requirements/resources/offering tuple"


_NONE_MET: Final[Mapping[tuple[bool, bool, bool], str]] = {
    (True, True, True): (
        "no instance type met the scheduling requirements or had enough resources or had a required offering"
    ),
    (True, True, False): "no instance type met the scheduling requirements or had enough resources",
    (True, False, True): "no instance type met the scheduling requirements or had a required offering",
    (False, True, True): "no instance type had enough resources or had a required offering",
    (True, False, False): "no instance type met all requirements",
    (False, True, False): "no instance type has enough resources",
    (False, False, True): "no instance type has the required offering",
}


class InstanceTypeFilter:
    """Filters instance types, and remembers which of them meet which requirements.

    Args:
        well_known: the labels that requirements need not define.
    """

    def __init__(self, well_known: AbstractSet[str]) -> None:
        self._well_known = well_known
        self._matches: dict[Requirements, dict[InstanceType, _Match]] = {}

    def filtered(
        self,
        instance_types: Iterable[InstanceType],
        groups: Sequence[DaemonGroup],
        requirements: Requirements,
        requests: Requests,
        *,
        pod_requests: Requests,
        ports: Sequence[HostPort] = (),
        lower_min_values: bool = False,
    ) -> Options | Refusal:
        """The instance types that are left, in the order of the groups.

        Args:
            requests: what all pods of the NodeClaim take.
            pod_requests: what the last of them takes, for the text of a failure.
            ports: the node's ports that the last of them asks for.
            lower_min_values: whether fewer different values than wanted will do.
        """
        allowed = frozenset(instance_types)
        known = self._known(requirements)
        tally = _Tally()
        overheads: list[Requests] = []
        left: list[InstanceType] = []
        for group in groups:
            if any_conflict(ports, group.ports):
                continue
            wanted = requests
            if group.overhead:
                overheads.append(group.overhead)
                wanted = total(requests, group.overhead)
            for each in group.instance_types:
                if each not in allowed:
                    continue
                match = known.get(each)
                if match is None:
                    match = known[each] = self._match(each, requirements)
                has_room = any(fits(wanted, amounts) for amounts in match.allocatable)
                has_offering = bool(match.allocatable)
                if match.is_compatible and has_room:
                    left.append(each)
                tally.add(requirements=match.is_compatible, resources=has_room, offering=has_offering)
        unmet = unmet_min_values(left, requirements)
        if left and (lower_min_values or not unmet):
            return Options(tuple(left), unmet)
        return Refusal(lambda: _text(tally, unmet, requirements, pod_requests, overheads))

    def _known(self, requirements: Requirements) -> dict[InstanceType, _Match]:
        # No instance type speaks of the hostname, which would make every NodeClaim's requirements another key.
        return self._matches.setdefault(without_hostname(requirements), {})

    def _match(self, instance_type: InstanceType, requirements: Requirements) -> _Match:
        return _Match(
            instance_type.requirements.intersects(requirements),
            tuple(
                group.allocatable
                for group in instance_type.groups
                if any(requirements.is_compatible(each.requirements, self._well_known) for each in group.offerings)
            ),
        )


def without_hostname(requirements: Requirements) -> Requirements:
    """The requirements on all other labels."""
    return Requirements(each for each in requirements if each.key != HOSTNAME)


def _text(
    tally: _Tally,
    unmet: Mapping[str, int],
    requirements: Requirements,
    pod_requests: Requests,
    overheads: Sequence[Requests],
) -> str:
    if unmet:
        text = f"minValues requirement is not met for label(s) (label(s)=[{' '.join(sorted(unmet))}])"
    else:
        text = tally.text()
    text += f", requirements={requirements}, resources={_resources_text(pod_requests, overheads)}"
    is_typo = pod_requests.get(CPU, 0) >= MILLION_CORES
    if not unmet and is_typo and tally.requirements and tally.offering and not tally.resources:
        text += " (CPU request >= 1 Million, m vs M typo?)"
    return text


def _resources_text(pod_requests: Requests, overheads: Sequence[Requests]) -> str:
    if not overheads:
        return amounts_text(pod_requests)
    least = overheads[0]
    for each in overheads[1:]:
        least = smallest(least, each)
    if not least:
        return amounts_text(pod_requests)
    low, high = total(least, pod_requests), total(largest(overheads), pod_requests)
    return amounts_text(low) if low == high else f"min={amounts_text(low)}, max={amounts_text(high)}"
