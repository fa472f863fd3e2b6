"""Nodes, there or planned, as columns: which of them a pod need not be tried on.

Owns what each place has left at most, and how many pods of a topology group are on its host. A place that is ruled out
here would refuse the pod; one that is not may still do so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.objects.quantity import INT64_MAX, INT64_MIN
from podium.objects.requests import Requests
from podium.provisioner.provisioning.topology_groups import TopologyGroup
from podium.provisioner.scheduling.requirements import Requirement, Requirements

_Column = NDArray[np.int64]
_SORTED_FROM = 4
"""After this many refusals the places that are left are sorted at once."""
_DOMAINS_MAX = 62
"""How many domains of a label are told apart; a label with more rules out no place."""
_ALL_BITS = (1 << _DOMAINS_MAX) - 1


@dataclass(frozen=True, slots=True)
class Limits:
    """The demands of rules about other pods on the place that takes a pod.

    Attributes:
        hosts: The most pods of a group that the place's host may have.
        domains: By label, the domains of which the place must have one.
    """

    hosts: Sequence[tuple[TopologyGroup, int]] = ()
    domains: Sequence[tuple[str, Iterable[str]]] = ()


class _Domains:
    """The values of one label that each place may have, as bits."""

    def __init__(self, capacity: int) -> None:
        # Bits of int64, which one vectorised AND compares for all places; the sign bit stays out of it.
        self.column: _Column = np.zeros(capacity, dtype=np.int64)
        self.values: dict[str, int] = {}
        self._known: dict[Requirement, int] = {}

    def bits_of(self, requirement: Requirement) -> int:
        """Return the values that the requirement allows, among those that have been asked for."""
        bits = self._known.get(requirement)
        if bits is None:
            bits = sum(bit for value, bit in self.values.items() if requirement.has(value))
            # A label with more values than an integer has bits is not asked about.
            self._known[requirement] = bits = bits & _ALL_BITS
        return bits

    def add(self, values: Iterable[str]) -> bool:
        """Tell these values apart. Returns: whether any is new."""
        fresh = [value for value in values if value not in self.values]
        for requirement in fresh:
            self.values[requirement] = 1 << len(self.values)
        if fresh:
            self._known.clear()
        return bool(fresh)


class NodeIndex:
    """The places in the order in which they were added."""

    def __init__(self) -> None:
        self._hostnames: list[str] = []
        self._left: dict[str, _Column] = {}
        self._counts: dict[TopologyGroup, _Column] = {}
        self._requirements: list[Requirements] = []
        self._domains: dict[str, _Domains] = {}
        self._capacity = 64

    def __len__(self) -> int:
        """Return the number of places."""
        return len(self._hostnames)

    def add(self, hostname: str, free: Requests, requirements: Requirements) -> None:
        """Take another place.

        Args:
            free: what it has left at most.
            requirements: what labels it may have.
        """
        index = len(self._hostnames)
        self._hostnames.append(hostname)
        self._requirements.append(requirements)
        if index == self._capacity:
            self._capacity *= 2
            self._left = {name: _grown(column) for name, column in self._left.items()}
            self._counts = {group: _grown(column) for group, column in self._counts.items()}
            for domain in self._domains.values():
                domain.column = _grown(domain.column)
        self.narrow(index, free, requirements)
        for group, counts in self._counts.items():
            counts[index] = group.counts.get(hostname, 0)

    def narrow(self, index: int, free: Requests, requirements: Requirements) -> None:
        """Note what the place has left at most, and what labels it may have. It has nothing of other resources."""
        self._requirements[index] = requirements
        for key, domains in self._domains.items():
            domains.column[index] = domains.bits_of(requirements.get(key))
        for name in free.keys() - self._left.keys():
            self._left[name] = np.zeros(self._capacity, dtype=np.int64)
        # Amounts of bytes can exceed int64 where a file says so; cut off, they still compare right against what pods
        # request.
        for name, column in self._left.items():
            column[index] = max(INT64_MIN, min(free.get(name, 0), INT64_MAX))

    def count_again(self, index: int, groups: Iterable[TopologyGroup]) -> None:
        """Note how many pods of these groups are on the place's host."""
        hostname = self._hostnames[index]
        for group in groups:
            counts = self._counts.get(group)
            if counts is not None:
                counts[index] = group.counts.get(hostname, 0)

    def open_to(self, requests: Requests, limits: Limits) -> NDArray[np.bool_]:
        """Return the places that may have room for a pod.

        Shape: one value for each place.
        """
        count = len(self._hostnames)
        mask = np.ones(count, dtype=np.bool_)
        for name, amount in requests.items():
            column = self._left.get(name)
            if column is not None:
                mask &= column[:count] >= min(amount, INT64_MAX)
            elif amount > 0:
                return np.zeros(count, dtype=np.bool_)
        for group, limit in limits.hosts:
            mask &= self._counts_of(group)[:count] <= limit
        for key, values in limits.domains:
            bits = self._bits_of(key, values)
            if bits is not None:
                mask &= (self._domains[key].column[:count] & bits) != 0
        return mask

    def _bits_of(self, key: str, values: Iterable[str]) -> int | None:
        domains = self._domains.get(key)
        if domains is None:
            domains = self._domains[key] = _Domains(self._capacity)
        values = list(values)
        # New values get new bits, so every place's bits are computed again. It happens once per value in a plan.
        if domains.add(values):
            for index, requirements in enumerate(self._requirements):
                domains.column[index] = domains.bits_of(requirements.get(key))
        return None if len(domains.values) > _DOMAINS_MAX else sum(domains.values[value] for value in values)

    def _counts_of(self, group: TopologyGroup) -> _Column:
        counts = self._counts.get(group)
        if counts is None:
            counts = self._counts[group] = np.zeros(self._capacity, dtype=np.int64)
            for index, hostname in enumerate(self._hostnames):
                counts[index] = group.counts.get(hostname, 0)
        return counts


class OrderedNodeIndex(NodeIndex):
    """The places by their number of pods.

    Those with equally many are in the order that a stable sort before each pod would leave: a new place comes last, and
    one that took a pod comes before all that have as many already.
    """

    def __init__(self) -> None:
        super().__init__()
        self._order = np.zeros(self._capacity, dtype=np.int64)
        self._moves = 0

    def add(self, hostname: str, free: Requests, requirements: Requirements) -> None:
        """Take another place, with its first pod."""
        index = len(self)
        if index == len(self._order):
            self._order = _grown(self._order)
        super().add(hostname, free, requirements)
        # Pods above, order of arrival below: one integer per place sorts as upstream's stable sort by number of pods
        # does.
        self._order[index] = (1 << 32) + index

    def move(self, index: int, pods: int) -> None:
        """Note that the place took a pod, and has so many now."""
        self._moves += 1
        # A moved place goes before those that have as many pods already, since upstream's insertion sort starts from
        # the old order.
        self._order[index] = (pods << 32) - self._moves

    def in_order(self, mask: NDArray[np.bool_]) -> Iterator[int]:
        """Yield the chosen places in their order."""
        indices = np.flatnonzero(mask)
        keys = self._order[indices]
        # The first few places mostly take the pod, so a sort of all of them would be wasted.
        for _ in range(min(_SORTED_FROM, len(indices))):
            index = int(keys.argmin())
            yield int(indices[index])
            keys[index] = INT64_MAX
        if len(indices) > _SORTED_FROM:
            yield from indices[keys.argsort()][: len(indices) - _SORTED_FROM].tolist()


def _grown(column: _Column) -> _Column:
    return np.concatenate((column, np.zeros_like(column)))
