"""Proves that a purchase is the cheapest: tries every other purchase that could cost less, the cheapest first.

Owns which purchases need not be tried. podium places the pods in each that is tried.

A purchase is better if more pods have a node, those of higher priority first, and else if it costs less. So what is
tried ends with the price of the best one, once no pod that stays could have a node. A purchase is not tried if the sums
of its amounts have room for too few pods. Nodes that differ in no amount and no label that anything names are one kind.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeAlias

from podium.lib.time_limit import TimeLimit
from podium.objects.core import Pod
from podium.objects.requests import Requests
from podium.provisioner.apis.labels import HOSTNAME, ZONE
from podium.provisioner.planners.price_bound import Mixture, cheapest_mixture
from podium.provisioner.provisioning.candidate_nodes import CandidateNode
from podium.provisioner.provisioning.plan import Proof
from podium.provisioner.scheduling.amounts import less, total
from podium.provisioner.state.costs import sum_in_order

NODES_MAX: Final = 6
"""How many nodes a purchase has that is tried."""

_EPSILON: Final = 1e-9
"""Of prices: less is rounding."""

Counts: TypeAlias = tuple[int, ...]
"""How many pods have a node with each priority or a higher one, the highest first."""


@dataclass(frozen=True)
class Room:
    """Says how many pods could fit by sums of amounts alone.

    Attributes:
        pods: By priority, the highest first, the requests of all pods of this priority or a higher one: by resource in
            ascending order, added up.
        amounts_there: The amounts of the nodes that are there.
    """

    pods: Sequence[Mapping[str, Sequence[int]]]
    amounts_there: Requests

    @classmethod
    def of(cls, pods: Iterable[Pod], amounts_there: Requests, requests_of: Callable[[Pod], Requests]) -> Room:
        """Return the room for these pods, which are all that have or want a node; each counts once.

        Args:
            requests_of: returns the requests that a node itself must meet.
        """
        pods_in_order = sorted({pod.key: pod for pod in pods}.values(), key=lambda pod: -pod.priority)
        sums: list[Mapping[str, Sequence[int]]] = []
        for priority in sorted({pod.priority for pod in pods_in_order}, reverse=True):
            requests = [requests_of(pod) for pod in pods_in_order if pod.priority >= priority]
            names = {name for amounts in requests for name in amounts}
            sums.append({name: [*accumulate(sorted(amounts.get(name, 0) for amounts in requests))] for name in names})
        return cls(sums, amounts_there)

    def counts(self, nodes: Iterable[CandidateNode]) -> Counts:
        """Return how many pods of each priority or a higher one could fit at most with these nodes."""
        rooms = [less(node.allocatable, node.group.overhead) for node in nodes]
        amounts = total(self.amounts_there, *rooms)
        return tuple(
            min((bisect_right(sums, max(amounts.get(name, 0), 0)) for name, sums in by_name.items()), default=0)
            for by_name in self.pods
        )


def kinds_of(candidates: Iterable[CandidateNode], label_text: str) -> list[CandidateNode]:
    """Return the cheapest node of each kind, the cheapest first.

    Args:
        named: a text with the labels that pods and other objects name.
    """
    kinds: dict[object, CandidateNode] = {}
    for candidate in sorted(candidates, key=lambda node: (node.price, node.instance_type.name)):
        # A name would make each node a kind of its own.
        labels = candidate.labels("").items()
        # Zones also decide about the order of nodes.
        relevant = frozenset(
            (key, value) for key, value in labels if key == ZONE or (key in label_text and key not in (HOSTNAME,))
        )
        devices = candidate.instance_type.name if candidate.instance_type.devices else ""
        amounts = frozenset(candidate.allocatable.items()), frozenset(candidate.group.overhead.items())
        # Limits count the capacity.
        capacity = frozenset(candidate.instance_type.capacity.items())
        kinds.setdefault((candidate.template.name, relevant, devices, amounts, capacity), candidate)
    return list(kinds.values())


def mixture_of(kinds: Sequence[CandidateNode], demand: Requests) -> Mixture:
    """Return the cheapest nodes, in fractions, that have the amounts of the demand."""
    rooms = [less(kind.allocatable, kind.group.overhead) for kind in kinds]
    return cheapest_mixture([kind.price for kind in kinds], rooms, demand)


def whole_nodes(kinds: Sequence[CandidateNode], mixture: Mixture) -> Iterator[CandidateNode]:
    """Yield the nodes of the mixture, rounded up."""
    for index, amount in mixture.amounts.items():
        yield from (kinds[index] for _ in range(math.ceil(amount - _EPSILON)))


def purchases(
    kinds: Sequence[CandidateNode], is_within_limits: Callable[[Sequence[CandidateNode]], bool]
) -> Iterator[tuple[float, tuple[CandidateNode, ...]]]:
    """Yield every purchase of at most `NODES_MAX` nodes within the limits, the cheapest first, with its price.

    Args:
        kinds: the cheapest first.
    """
    yield 0.0, ()
    heap: list[tuple[float, tuple[int, ...]]] = []

    def push(indexes: tuple[int, ...]) -> None:
        # Added up anew each time, so that equal purchases have equal prices.
        heapq.heappush(heap, (sum_in_order(kinds[index].price for index in indexes), indexes))

    if kinds:
        push((0,))
    while heap:
        price, indexes = heapq.heappop(heap)
        last = indexes[-1]
        if last + 1 < len(kinds):
            push((*indexes[:-1], last + 1))
        nodes = tuple(kinds[index] for index in indexes)
        # More nodes would exceed the limits, too.
        if not is_within_limits(nodes):
            continue
        if len(indexes) < NODES_MAX:
            push((*indexes, last))
        yield price, nodes


def may_be_better(counts_max: Counts, counts: Counts, *, is_cheaper: bool) -> bool:
    """Return True if a purchase with at most these counts could be better than one with the other counts."""
    for count_max, count in zip(counts_max, counts, strict=True):
        if count_max != count:
            return count_max > count
    return is_cheaper


@dataclass(frozen=True)
class Tries:
    """What a search needs to try purchases.

    Attributes:
        counts_of: Places the pods with these nodes; returns the counts as in `Counts`.
        counts_max: More pods than these can never have a node.
        lower_bound: What every purchase costs at least that places as many pods as the one to begin with.
    """

    kinds: Sequence[CandidateNode]
    room: Room
    is_within_limits: Callable[[Sequence[CandidateNode]], bool]
    counts_of: Callable[[Sequence[CandidateNode]], Counts]
    counts_max: Counts
    lower_bound: float
    limit: TimeLimit

    def best(self, nodes: Sequence[CandidateNode], counts: Counts) -> tuple[Sequence[CandidateNode], Proof]:
        """Return the best purchase of at most `NODES_MAX` nodes, or this one if none is better, with its proof."""
        price = sum_in_order(node.price for node in nodes)
        if counts == self.counts_max and self.lower_bound >= price - _EPSILON:
            return nodes, Proof(price, price, is_cheapest=True)
        if len(nodes) > NODES_MAX:
            return nodes, Proof(price, self.lower_bound, is_cheapest=False)
        lower_bound = self.lower_bound
        for other_price, other_nodes in purchases(self.kinds, self.is_within_limits):
            is_cheaper = other_price < price - _EPSILON
            if not is_cheaper and counts == self.counts_max:
                # All others cost as much or more.
                break
            # Between two tries only: what was placed in part would look like a worse purchase.
            if self.limit.is_over():
                return nodes, Proof(
                    price, min(lower_bound, price), is_cheapest=False, nodes_max=NODES_MAX, seconds=self.limit.seconds
                )
            if may_be_better(self.room.counts(other_nodes), counts, is_cheaper=is_cheaper):
                other_counts = self.counts_of(other_nodes)
                if other_counts > counts or (other_counts == counts and is_cheaper):
                    # The bound was for the pods that had a node before.
                    lower_bound = lower_bound if other_counts == counts else 0.0
                    nodes, counts, price = other_nodes, other_counts, other_price
        # A purchase of more nodes costs that much more than the cheapest node at least.
        larger_price = (NODES_MAX + 1) * min((kind.price for kind in self.kinds), default=0.0)
        is_whole = counts == self.counts_max and larger_price >= price - _EPSILON
        return nodes, Proof(
            price, price if is_whole else min(lower_bound, price), is_cheapest=True, nodes_max=NODES_MAX
        )
