"""Narrows the instance types of a NodeClaim, and explains why none is left.

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
from podium.provisioner.apis.labels import HOSTNAME
from podium.provisioner.cloudprovider.instance_type_columns import InstanceTypeColumns
from podium.provisioner.cloudprovider.instance_types import InstanceType, unmet_min_values
from podium.provisioner.scheduling.amounts import amounts_text, largest, smallest, total
from podium.provisioner.scheduling.host_ports import HostPort, any_conflict
from podium.provisioner.scheduling.refusals import Refusal
from podium.provisioner.scheduling.requirements import Requirements

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


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """The instance types that are left, at least one.

    Attributes:
        mask: The instance types, as bits.
        lowered_min_values: By label, how many values are left where there are fewer than wanted.
    """

    mask: int
    lowered_min_values: Mapping[str, int]


@dataclass(slots=True)
class _Tally:
    """The conditions that some instance type met."""

    requirements: bool = False
    resources: bool = False
    offering: bool = False
    all_but_resources: bool = False
    all_but_requirements: bool = False

    def add(self, considered: int, meeting: int, roomy: int, in_offer: int) -> None:
        """Count instance types; those with room are among those that are offered."""
        self.requirements |= bool(considered & meeting)
        self.resources |= bool(considered & roomy)
        self.offering |= bool(considered & in_offer)
        self.all_but_resources |= bool(considered & meeting & in_offer & ~roomy)
        self.all_but_requirements |= bool(considered & roomy & ~meeting)

    def text(self) -> str:
        unmet = (not self.requirements, not self.resources, not self.offering)
        sentence = _NONE_MET.get(unmet)
        if sentence is not None:
            return sentence
        if self.all_but_requirements:
            # Upstream's order of the pairs, of which several can hold.
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
    """Filters the instance types of a catalogue.

    Args:
        well_known: the labels that requirements need not define.

    Attributes:
        columns: The instance types.
        everything: All of them, as if there were no DaemonSets.
    """

    def __init__(self, instance_types: Sequence[InstanceType], well_known: AbstractSet[str]) -> None:
        self.columns = InstanceTypeColumns(instance_types, well_known)
        self.everything = DaemonGroup(tuple(instance_types))
        self._groups: dict[DaemonGroup, int] = {}

    def mask_of(self, group: DaemonGroup) -> int:
        """Return the instance types of a group as bits."""
        mask = self._groups.get(group)
        if mask is None:
            mask = self._groups[group] = self.columns.mask_of(group.instance_types)
        return mask

    def in_order(self, mask: int, groups: Iterable[DaemonGroup]) -> tuple[InstanceType, ...]:
        """Return the instance types of these bits, in the order of the groups."""
        parts = [mask_of_group for group in groups if (mask_of_group := mask & self.mask_of(group))]
        if len(parts) == 1:
            return self.columns.types_in(parts[0])
        return tuple(instance_type for part in parts for instance_type in self.columns.types_in(part))

    def filter_types(
        self,
        options: int,
        groups: Sequence[DaemonGroup],
        requirements: Requirements,
        requests: Requests,
        *,
        pod_requests: Requests,
        ports: Sequence[HostPort] = (),
        lower_min_values: bool = False,
    ) -> Options | Refusal:
        """Return the instance types that are left.

        Args:
            options: the instance types that may be left, as bits.
            requests: what all pods of the NodeClaim take.
            pod_requests: what the last of them takes, for the text of a failure.
            ports: the node's ports that the last of them asks for.
            lower_min_values: whether fewer different values than wanted will do.
        """
        columns = self.columns
        # The two answers do not depend on the group, so one look serves all groups.
        meeting, in_offer = columns.meeting(requirements), columns.offered_rows(requirements)
        open_groups = [group for group in groups if not any_conflict(ports, group.ports)] if ports else groups
        remainder = 0
        for group in open_groups:
            considered = self.mask_of(group) & options & meeting
            if considered:
                demand = total(requests, group.overhead) if group.overhead else requests
                # Room counts only in an offering that can be had: a group of offerings may leave less to pods than
                # another.
                remainder |= considered & columns.types_of_rows(columns.with_room(demand) & in_offer)
        unmet: Mapping[str, int] = {}
        if remainder and any(requirement.min_values is not None for requirement in requirements):
            unmet = unmet_min_values(self.in_order(remainder, groups), requirements)
        if remainder and (lower_min_values or not unmet):
            return Options(remainder, unmet)

        def text() -> str:
            # Made again for the text, which few refusals are asked for.
            tally = _Tally()
            for group in open_groups:
                demand = total(requests, group.overhead) if group.overhead else requests
                roomy = columns.types_of_rows(columns.with_room(demand) & in_offer)
                tally.add(self.mask_of(group) & options, meeting, roomy, columns.types_of_rows(in_offer))
            overheads = [group.overhead for group in open_groups if group.overhead]
            return _text(tally, unmet, requirements, pod_requests, overheads)

        return Refusal(text)


def without_hostname(requirements: Requirements) -> Requirements:
    """Return the requirements on all other labels."""
    return Requirements(requirement for requirement in requirements if requirement.key != HOSTNAME)


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
    # What other pods of the claim request is left out, as upstream: the text is about this pod.
    if not overheads:
        return amounts_text(pod_requests)
    least = overheads[0]
    for overhead in overheads[1:]:
        least = smallest(least, overhead)
    if not least:
        return amounts_text(pod_requests)
    low, high = total(least, pod_requests), total(largest(overheads), pod_requests)
    return amounts_text(low) if low == high else f"min={amounts_text(low)}, max={amounts_text(high)}"
