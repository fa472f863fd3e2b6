"""Instance types as columns: which of them meet requirements, have room and are offered, for all of them at once.

Owns sets of instance types as bits of an integer, and what was found out about a requirement before. The first question
about a requirement costs a look at each different value of its label, the next ones a dictionary look-up. Room is one
comparison of arrays for each resource.

Bits: the lowest is the first instance type. An instance type whose offerings differ in what they leave for pods has
further rows after those of all instance types, one for each group of offerings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.objects.quantity import INT64_MAX, INT64_MIN
from podium.objects.requests import Requests
from podium.provisioner.apis.labels import HOSTNAME, INSTANCE_TYPE
from podium.provisioner.cloudprovider.instance_types import NO_PRICE, InstanceType, Offering
from podium.provisioner.scheduling.requirements import Requirement, Requirements

_Answers: TypeAlias = tuple[Requirement | None, ...]
"""What requirements say about each label of offerings."""

NO_TYPES: Final = 0


class InstanceTypeColumns:
    """A catalogue's instance types.

    Args:
        well_known: the labels that requirements need not define.
    """

    def __init__(self, instance_types: Sequence[InstanceType], well_known: AbstractSet[str]) -> None:
        self._types = tuple(instance_types)
        self._well_known = well_known
        self._indices = {instance_type: index for index, instance_type in enumerate(self._types)}
        # Integers, not arrays: a set of 1,000 types is 128 bytes, one AND joins two of them, and it is a dictionary's
        # key.
        self.all: Final = (1 << len(self._types)) - 1
        self._by_value: dict[str, dict[Requirement, int]] = defaultdict(dict)
        for index, instance_type in enumerate(self._types):
            for requirement in instance_type.requirements:
                masks = self._by_value[requirement.key]
                masks[requirement] = masks.get(requirement, 0) | 1 << index
        names = sorted({instance_type.name for instance_type in self._types})
        ranks = {name: rank for rank, name in enumerate(names)}
        self._name_ranks = np.array([ranks[instance_type.name] for instance_type in self._types], dtype=np.int64)
        self._read_rows()
        self._read_offerings()
        self._meeting: dict[Requirement, int] = {}
        self._tuples: dict[int, tuple[InstanceType, ...]] = {}
        self._offered: dict[_Answers, int] = {}
        self._most_room: dict[int, Requests] = {}
        self._named_types: dict[tuple[InstanceType, ...], tuple[int, Requirement]] = {}
        self._prices: dict[_Answers, NDArray[np.float64]] = {}
        self._orders: dict[tuple[tuple[InstanceType, ...], _Answers, bool], tuple[InstanceType, ...]] = {}

    # ------------------------------------------------------------ sets

    def mask_of(self, instance_types: Iterable[InstanceType]) -> int:
        """Return these instance types as bits."""
        mask = 0
        for instance_type in instance_types:
            mask |= 1 << self._indices[instance_type]
        return mask

    def types_in(self, mask: int) -> tuple[InstanceType, ...]:
        """Return the instance types of these bits, in their order."""
        instance_types = self._tuples.get(mask)
        if instance_types is None:
            instance_types = self._tuples[mask] = tuple(
                instance_type for index, instance_type in enumerate(self._types) if mask >> index & 1
            )
        return instance_types

    # ------------------------------------------------------------ questions

    def meeting(self, requirements: Requirements) -> int:
        """Return the instance types whose labels can meet the requirements, offerings aside."""
        mask = self.all
        for requirement in requirements:
            # No instance type speaks of the hostname, which is another one for each NodeClaim.
            if requirement.key != HOSTNAME:
                cached_mask = self._meeting.get(requirement)
                mask &= self._meeting_one(requirement) if cached_mask is None else cached_mask
        return mask

    def offered_rows(self, requirements: Requirements) -> int:
        """Return the rows with an available offering that is compatible with the requirements."""
        # Keyed by what the requirements say about offerings' labels only: claims differ in hostnames, their answers do
        # not.
        answers = self._answers(requirements)
        mask = self._offered.get(answers)
        if mask is None:
            mask = 0
            for offering, row_mask in self._available.items():
                if requirements.is_compatible(offering, self._well_known):
                    mask |= row_mask
            self._offered[answers] = mask
        return mask

    def with_room(self, requests: Requests) -> int:
        """Return the rows whose allocatable resources hold the requests."""
        mask = self._usable
        for name, amount in requests.items():
            column = self._allocatable.get(name)
            if column is not None:
                # A request beyond int64 fits nowhere; numpy would raise instead.
                mask = mask & (column >= min(amount, INT64_MAX))
            elif amount > 0:
                return NO_TYPES
        return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")

    def types_of_rows(self, rows: int) -> int:
        """Return the instance types that have any of these rows."""
        mask = rows & self.all
        for bit, owner in self._further_rows:
            if rows & bit:
                mask |= owner
        return mask

    def within(self, limits: Requests) -> int:
        """Return the instance types whose capacity exceeds none of the limits."""
        within = np.ones(len(self._types), dtype=np.bool_)
        for name, limit in limits.items():
            column = self._capacity.get(name)
            within &= (column if column is not None else np.zeros(1, dtype=np.int64)) <= _int64(limit)
        return int.from_bytes(np.packbits(within, bitorder="little").tobytes(), "little")

    def largest_capacity(self, mask: int, names: Iterable[str]) -> Requests:
        """Return the largest capacity of any of these instance types, for each of these resources."""
        selection = _bits(mask, len(self._types))
        columns = {name: self._capacity[name] for name in names if name in self._capacity}
        return {name: int(column[selection].max(initial=0)) for name, column in columns.items()}

    def most_room(self, mask: int) -> Requests:
        """Return the most that any of these instance types has for pods, resource by resource."""
        amounts = self._most_room.get(mask)
        # Claims mostly have the options of another one, so the maximum over 1,000 rows is worth remembering.
        if amounts is None:
            rows = mask
            for bit, owner in self._further_rows:
                if owner & mask:
                    rows |= bit
            selection = _bits(rows, self._row_count)
            amounts = {name: int(column[selection].max(initial=0)) for name, column in self._allocatable.items()}
            self._most_room[mask] = amounts
        return amounts

    # ------------------------------------------------------------ prices

    def in_price_order(
        self, instance_types: tuple[InstanceType, ...], requirements: Requirements, *, then_by_name: bool = False
    ) -> tuple[InstanceType, ...]:
        """Return the instance types by the price of their cheapest offering under these requirements.

        Args:
            then_by_name: whether equal prices are put in order of name; else they stay in the order they were in.
        """
        answers = self._answers(requirements)
        key = (instance_types, answers, then_by_name)
        order = self._orders.get(key)
        if order is None:
            indices = np.fromiter(
                (self._indices[instance_type] for instance_type in instance_types), np.int64, len(instance_types)
            )
            prices = self._prices_of(requirements, answers)[indices]
            # lexsort is stable, so equal prices stay in the order in which they were filtered, as a cut by price needs
            # it.
            by_name = self._name_ranks[indices] if then_by_name else np.arange(len(indices))
            order = self._orders[key] = tuple(instance_types[index] for index in np.lexsort((by_name, prices)).tolist())
        return order

    def cheapest_price(self, instance_type: InstanceType, requirements: Requirements) -> float:
        """Return the price of its cheapest offering that can be launched under these requirements, or `NO_PRICE`."""
        return float(self._prices_of(requirements, self._answers(requirements))[self._indices[instance_type]])

    def name_requirement(self, instance_types: tuple[InstanceType, ...]) -> Requirement:
        """Return the requirement of any of these instance types, by name."""
        return self._tell(instance_types)[1]

    def launchable_capacity_types(
        self, instance_types: tuple[InstanceType, ...], requirements: Requirements
    ) -> frozenset[str]:
        """Return the capacity types in which any of these instance types can be launched under these requirements."""
        mask, _ = self._tell(instance_types)
        return frozenset(
            offering.capacity_type
            # Offerings with equal requirements are one entry: a zone and a capacity type are on offer for hundreds of
            # types.
            for offering, launchable, _, _ in self._launchable
            if launchable & mask and requirements.is_compatible(offering.requirements, self._well_known)
        )

    def _prices_of(self, requirements: Requirements, answers: _Answers) -> NDArray[np.float64]:
        lowest = self._prices.get(answers)
        if lowest is None:
            lowest = np.full(len(self._types), NO_PRICE)
            for offering, _, indices, prices in self._launchable:
                if requirements.is_compatible(offering.requirements, self._well_known):
                    np.minimum.at(lowest, indices, prices)
            self._prices[answers] = lowest
        return lowest

    # ------------------------------------------------------------ what is remembered

    def _tell(self, instance_types: tuple[InstanceType, ...]) -> tuple[int, Requirement]:
        name_parts = self._named_types.get(instance_types)
        if name_parts is None:
            names = frozenset(instance_type.name for instance_type in instance_types)
            name_parts = self.mask_of(instance_types), Requirement(INSTANCE_TYPE, False, names)
            self._named_types[instance_types] = name_parts
        return name_parts

    def _meeting_one(self, requirement: Requirement) -> int:
        requirement_alone = Requirements((requirement,))
        mask = self.all
        for value, owners in self._by_value.get(requirement.key, {}).items():
            if not Requirements((value,)).intersects(requirement_alone):
                mask &= ~owners
        self._meeting[requirement] = mask
        return mask

    def _answers(self, requirements: Requirements) -> _Answers:
        return tuple(requirements.get(key) if key in requirements else None for key in self._offering_keys)

    # ------------------------------------------------------------ reading

    def _read_rows(self) -> None:
        count = len(self._types)
        rows = [instance_type.allocatable for instance_type in self._types]
        self._further_rows: list[tuple[int, int]] = []
        self._rows_of: list[list[int]] = [[index] for index in range(count)]
        for index, instance_type in enumerate(self._types):
            for group in instance_type.groups[1:]:
                self._further_rows.append((1 << len(rows), 1 << index))
                self._rows_of[index].append(len(rows))
                rows.append(group.allocatable)
        self._allocatable = _columns(rows)
        self._row_count = len(rows)
        # Nothing fits where any amount is negative.
        self._usable = np.array([all(amount >= 0 for amount in row.values()) for row in rows], dtype=np.bool_)
        self._capacity = _columns([instance_type.capacity for instance_type in self._types])

    def _read_offerings(self) -> None:
        self._available: dict[Requirements, int] = {}
        launchable: dict[Requirements, list[tuple[Offering, int]]] = defaultdict(list)
        for index, instance_type in enumerate(self._types):
            for row, group in zip(self._rows_of[index], instance_type.groups, strict=True):
                for offering in group.offerings:
                    available = self._available
                    available[offering.requirements] = available.get(offering.requirements, 0) | 1 << row
            for offering in instance_type.offerings:
                if offering.is_launchable:
                    launchable[offering.requirements].append((offering, index))
        self._offering_keys = tuple(
            sorted({requirement.key for requirements in self._available for requirement in requirements})
        )
        self._launchable: list[tuple[Offering, int, NDArray[np.int64], NDArray[np.float64]]] = []
        for entries in launchable.values():
            mask = 0
            for _, index in entries:
                mask |= 1 << index
            indices = np.array([index for _, index in entries], dtype=np.int64)
            prices = np.array([offering.price for offering, _ in entries], dtype=np.float64)
            self._launchable.append((entries[0][0], mask, indices, prices))


def _bits(mask: int, count: int) -> NDArray[np.bool_]:
    octets = np.frombuffer(mask.to_bytes((count + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(octets, count=count, bitorder="little").astype(np.bool_)


def _columns(rows: Sequence[Requests]) -> dict[str, NDArray[np.int64]]:
    names = {name for row in rows for name in row}
    return {name: np.array([_int64(row.get(name, 0)) for row in rows], dtype=np.int64) for name in names}


def _int64(amount: int) -> int:
    return max(INT64_MIN, min(amount, INT64_MAX))
