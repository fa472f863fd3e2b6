"""Instance types: what a node of each can hold, where it is offered, and at what price.

Owns these values, and the orders by price. Never filters instance types for pods, and never reads a file.

Units: cpu in thousandths of a core, everything else as counted by its quantity; prices per hour.
Source: karpenter pkg/cloudprovider/types.go and pkg/utils/resources/resources.go, v1.15.0.
Differs: amounts are whole units, rounded up; upstream compares fractions of a millicore or of a byte.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from podium.objects.devices import CounterSet, Device
from podium.objects.requests import Requests
from podium.objects.resource_names import MEMORY, is_hugepages
from podium.provisioner.apis.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE
from podium.provisioner.scheduling import amounts
from podium.provisioner.scheduling.requirements import Requirements

NO_PRICE: Final = sys.float_info.max
"""The price of what cannot be launched: above every other price."""

CAPACITY_TYPES: Final = (RESERVED, SPOT, ON_DEMAND)
"""The capacity types in the order in which they are launched."""

_NO_REQUIREMENTS: Final = Requirements()


@dataclass(frozen=True)
class Overhead:
    """The resources of a node that the system takes before pods can use them."""

    kube_reserved: Requests
    system_reserved: Requests
    eviction_threshold: Requests

    @cached_property
    def total(self) -> Requests:
        """The sum of all three."""
        return amounts.total(self.kube_reserved, self.system_reserved, self.eviction_threshold)


@dataclass(frozen=True, kw_only=True, eq=False)
class Offering:
    """One way to buy an instance type: a zone, a capacity type, perhaps a reservation, and its price.

    Attributes:
        price: Per hour; without a known price, what takes its place in comparisons (`catalogue.size_rank`).
        is_priced: Whether `price` is one, and may be shown.
        is_available: Whether it is healthy; a full reservation may be.
        reservation_capacity: How many more nodes the reservation has room for.
        capacity_override: Capacity that differs from the instance type's, by resource.
        overhead_override: Overhead that differs from the instance type's; its total counts, resource by resource.
    """

    requirements: Requirements
    price: float
    is_priced: bool = True
    is_available: bool = True
    reservation_capacity: int = 0
    capacity_override: Requests | None = None
    overhead_override: Overhead | None = None

    @cached_property
    def zone(self) -> str:
        """The zone; the first by name of several; empty without a zone."""
        return _only_value(self.requirements, ZONE)

    @cached_property
    def capacity_type(self) -> str:
        """The capacity type; the first by name of several; empty without one."""
        return _only_value(self.requirements, CAPACITY_TYPE)

    @cached_property
    def is_launchable(self) -> bool:
        """Return True if a node can be launched now: it is available and, if reserved, the reservation has room."""
        # "reserved" beside other capacity types counts as reserved, as upstream.
        if CAPACITY_TYPE in self.requirements and self.requirements.get(CAPACITY_TYPE).has(RESERVED):
            return self.is_available and self.reservation_capacity > 0
        return self.is_available


@dataclass(frozen=True, slots=True)
class AllocatableOfferings:
    """The available offerings that give a node the same allocatable resources."""

    allocatable: Requests
    offerings: tuple[Offering, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class InstanceType:
    """A kind of machine. Two of them may have one name, for instance with different operating systems.

    Attributes:
        requirements: The labels that its nodes can have.
        devices: By driver, the devices for resource claims that each of its nodes has.
        counters: By driver, the counters that these devices share.
    """

    name: str
    requirements: Requirements
    offerings: tuple[Offering, ...]
    capacity: Requests
    overhead: Overhead
    devices: Mapping[str, tuple[Device, ...]] = field(default_factory=dict)
    counters: Mapping[str, tuple[CounterSet, ...]] = field(default_factory=dict)

    def is_priced(self, requirements: Requirements = _NO_REQUIREMENTS) -> bool:
        """Return True if every offering that can be launched under these requirements has a price."""
        return all(
            offering.is_priced
            for offering in self.offerings
            if offering.is_launchable and requirements.intersects(offering.requirements)
        )

    @property
    def allocatable(self) -> Requests:
        """The resources that pods can use on a node of an offering without overrides."""
        return self.groups[0].allocatable

    @cached_property
    def groups(self) -> tuple[AllocatableOfferings, ...]:
        """The available offerings by what pods can use on their nodes.

        First those without overrides, even if there are none; then the others in the order of their first offering.
        """
        plain: list[Offering] = []
        groups: list[tuple[Offering, list[Offering]]] = []
        for offering in self.offerings:
            if not offering.is_available:
                continue
            # The plain group is there even if it is empty: upstream's first group is that of the type itself.
            if not offering.capacity_override and offering.overhead_override is None:
                plain.append(offering)
                continue
            for first, group in groups:
                if (first.capacity_override, first.overhead_override) == (
                    offering.capacity_override,
                    offering.overhead_override,
                ):
                    group.append(offering)
                    break
            else:
                groups.append((offering, [offering]))
        return (
            AllocatableOfferings(_allocatable(self.capacity, self.overhead.total), tuple(plain)),
            *(AllocatableOfferings(self.allocatable_of(first), tuple(group)) for first, group in groups),
        )

    def allocatable_of(self, offering: Offering) -> Requests:
        """Return the resources that pods can use on a node of this offering."""
        capacity, overhead = self.capacity, self.overhead.total
        if offering.capacity_override:
            capacity = {**capacity, **offering.capacity_override}
        if offering.overhead_override is not None:
            overhead = {**overhead, **offering.overhead_override.total}
        return _allocatable(capacity, overhead)

    def cheapest_price(self, requirements: Requirements, well_known: AbstractSet[str]) -> float:
        """Return the price of the cheapest offering that can be launched under these requirements, or `NO_PRICE`.

        Args:
            well_known: the labels that the requirements need not define.
        """
        return min((offering.price for offering in self._launchable(requirements, well_known)), default=NO_PRICE)

    def worst_launch_price(self, requirements: Requirements, well_known: AbstractSet[str]) -> float:
        """Return the most that a node may cost under these requirements, or `NO_PRICE` if none can be launched.

        That is the price of the most expensive zone, for the capacity type that is launched: the first of
        `CAPACITY_TYPES` that has an offering.

        Args:
            well_known: the labels that the requirements need not define.
        """
        launchable = list(self._launchable(requirements, well_known))
        # A provider launches as reserved if it can, then as spot, and any zone may be what is left: so the dearest of
        # the first.
        for capacity_type in CAPACITY_TYPES:
            prices = [
                offering.price for offering in launchable if offering.requirements.get(CAPACITY_TYPE).has(capacity_type)
            ]
            if prices:
                return max(prices)
        return NO_PRICE

    def price_of(self, zone: str, capacity_type: str) -> float:
        """Return the price of a running node: that of the first offering with these labels, available or not.

        Without such an offering the price is 0: the node is never worth replacing, but may still be deleted.
        """
        offering = self.offering_of(zone, capacity_type)
        return 0.0 if offering is None else offering.price

    def offering_of(self, zone: str, capacity_type: str) -> Offering | None:
        """Return the first offering with these labels, available or not."""
        return next(
            (
                offering
                for offering in self.offerings
                if (offering.zone, offering.capacity_type) == (zone, capacity_type)
            ),
            None,
        )

    def _launchable(self, requirements: Requirements, well_known: AbstractSet[str]) -> Iterable[Offering]:
        for offering in self.offerings:
            if offering.is_launchable and requirements.is_compatible(offering.requirements, well_known):
                yield offering


def in_price_order(
    instance_types: Iterable[InstanceType], requirements: Requirements, well_known: AbstractSet[str]
) -> list[InstanceType]:
    """Return the instance types by `cheapest_price`; equal prices stay in the order they were in.

    This is the order before some are cut off.
    """
    return sorted(instance_types, key=lambda instance_type: instance_type.cheapest_price(requirements, well_known))


def in_price_and_name_order(
    instance_types: Iterable[InstanceType], requirements: Requirements, well_known: AbstractSet[str]
) -> list[InstanceType]:
    """Return the instance types by `cheapest_price`, then by name. This is the order of a plan."""
    return sorted(
        instance_types,
        key=lambda instance_type: (instance_type.cheapest_price(requirements, well_known), instance_type.name),
    )


def fits(requests: Requests, total: Requests) -> bool:
    """Return True if the requests fit into the total. Nothing fits if any amount of the total is negative."""
    # A node over its capacity stays out altogether, even for pods that ask nothing of the resource in question.
    if min(total.values(), default=0) < 0:
        return False
    for name, amount in requests.items():  # noqa: SIM110 - a generator would cost twice the time
        if amount > total.get(name, 0):
            return False
    return True


def unmet_min_values(instance_types: Sequence[InstanceType], requirements: Requirements) -> Mapping[str, int]:
    """Return the labels of which the instance types offer fewer values than `min_values`, with how many they offer.

    Only values that the requirement allows are counted. As upstream, no instance types at all leave nothing unmet.
    """
    unmet: dict[str, int] = {}
    if not instance_types:
        return unmet
    for requirement in sorted(requirements, key=lambda requirement: requirement.key):
        if requirement.min_values is None:
            continue
        values = {
            value
            for instance_type in instance_types
            for value in instance_type.requirements.get(requirement.key).values
        }
        # Values that the requirement forbids do not make the claim more flexible.
        count = sum(requirement.has(value) for value in values)
        if count < requirement.min_values:
            unmet[requirement.key] = count
    return unmet


def needed_for_min_values(instance_types: Sequence[InstanceType], requirements: Requirements) -> int:
    """Return how many instance types, from the first on, offer the `min_values` of each label.

    0 if nothing is wanted, and all of them if all are too few.
    """
    if all(requirement.min_values is None for requirement in requirements):
        return 0
    counts = range(1, len(instance_types) + 1)
    sufficient_counts = (count for count in counts if not unmet_min_values(instance_types[:count], requirements))
    return next(sufficient_counts, len(instance_types))


def _only_value(requirements: Requirements, key: str) -> str:
    requirement = requirements.get(key)
    return "" if requirement.complement else min(requirement.values, default="")


def _allocatable(capacity: Requests, overhead: Requests) -> Requests:
    """Return the capacity without the overhead. Huge pages are taken from the memory, down to 0."""
    amounts_left = dict(amounts.less(capacity, overhead))
    for name, amount in capacity.items():
        if is_hugepages(name):
            # Memory for huge pages is set aside when the node boots; the kubelet counts it in memory as well.
            amounts_left[MEMORY] = max(amounts_left.get(MEMORY, 0) - amount, 0)
    return amounts_left
