"""How well a pod fits into the NUMA nodes of a node, by the four scoring strategies.

Units: amounts in thousandths; scores from 0 to 100.
Source: sigs.k8s.io/scheduler-plugins pkg/noderesourcetopology (2026-08), gonum stat v0.12.0.
Differs: containers that request nothing are left out of the mean, and of a single resource the balance is perfect;
upstream divides by zero. In the balance, less than nothing is nothing. LeastNUMANodes takes amounts off the NUMA nodes
by their numbers, where upstream mistakes numbers for positions, never scores below 0, and looks at a limited number of
combinations.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from podium.framework.contract.score import MAX_NODE_SCORE
from podium.plugins.contrib.node_resource_topology_match.demands import Demands, is_numa_affine
from podium.plugins.contrib.node_resource_topology_match.topology import Amounts, Topology

ScoreOne: TypeAlias = Callable[[Amounts, Amounts, Mapping[str, int]], int]
"""(requests, available, weights) → the score of one NUMA node."""

_UNKNOWN_DISTANCE: Final = 255
_COMBINATIONS_MAX: Final = 1 << 14


def _whole(milli: int) -> int:
    return -(-milli // 1000)


def _weighted_mean(
    requests: Amounts, available: Amounts, weights: Mapping[str, int], numerator: Callable[[int, int], int]
) -> int:
    score = weight_sum = 0
    for name, amount in requests.items():
        weight = max(weights.get(name, 1), 1)
        free = available.get(name, 0)
        if free and amount <= free:
            score += numerator(_whole(amount), _whole(free)) * MAX_NODE_SCORE // _whole(free) * weight
        weight_sum += weight
    return score // weight_sum


def least_allocated(requests: Amounts, available: Amounts, weights: Mapping[str, int]) -> int:
    """Prefer NUMA nodes of which much is left."""
    return _weighted_mean(requests, available, weights, lambda amount, free: free - amount)


def most_allocated(requests: Amounts, available: Amounts, weights: Mapping[str, int]) -> int:
    """Prefer NUMA nodes of which little is left."""
    return _weighted_mean(requests, available, weights, lambda amount, free: amount)


def balanced_allocation(requests: Amounts, available: Amounts, weights: Mapping[str, int]) -> int:
    """Prefer NUMA nodes of whose resources the pod takes equal shares."""
    del weights
    fractions = []
    for name, amount in requests.items():
        free, request = _whole(available.get(name, 0)), _whole(amount)
        # A negative amount is none: its fraction would push the score below 0, which fails the attempt for all nodes.
        if request > free > 0:
            return 0
        fractions.append(request / free if free > 0 else 1.0)
    return int((1 - _sample_variance(fractions)) * float(MAX_NODE_SCORE))


def _sample_variance(values: Sequence[float]) -> float:
    count = len(values)
    if count < 2:
        return 0.0
    total = 0.0
    for value in values:
        total += value
    mean = total / count
    squares = compensation = 0.0
    for value in values:
        distance = value - mean
        squares += distance * distance
        compensation += distance
    return (squares - compensation * compensation / count) / (count - 1)


STRATEGIES: Final[Mapping[str, ScoreOne]] = {
    "LeastAllocated": least_allocated,
    "MostAllocated": most_allocated,
    "BalancedAllocation": balanced_allocation,
}
LEAST_NUMA_NODES: Final = "LeastNUMANodes"


def score_by(score_one: ScoreOne, demands: Demands, topology: Topology, weights: Mapping[str, int]) -> int:
    """Return the node's score: the lowest of its NUMA nodes' scores that is not 0, or the mean over the containers."""

    def lowest(requests: Amounts) -> int:
        scores = (score_one(requests, numa_node.available, weights) for numa_node in topology.numa_nodes)
        return min((score for score in scores if score), default=0)

    if topology.alignment.is_per_pod:
        return lowest(demands.pod) if demands.pod else 0
    scores = [lowest(demand.requests) for demand in demands.all_containers if demand.requests]
    return int(sum(map(float, scores)) / len(scores)) if scores else 0


# ---------------------------------------------------------------- LeastNUMANodes


class _Free:
    """The NUMA nodes by position, with what is left of them while containers are placed."""

    def __init__(self, topology: Topology) -> None:
        self.available = [dict(numa_node.available) for numa_node in topology.numa_nodes]
        ids = [numa_node.id for numa_node in topology.numa_nodes]
        self.order = sorted(range(len(ids)), key=ids.__getitem__)
        self.distances = [
            [numa_node.costs.get(target, _UNKNOWN_DISTANCE) for target in ids] for numa_node in topology.numa_nodes
        ]

    def lists_any(self, requests: Amounts) -> bool:
        """Return whether any NUMA node lists any of the resources."""
        return any(name in available for available in self.available for name in requests)

    def smallest_set(self, requests: Amounts, *, guaranteed: bool) -> tuple[tuple[int, ...], bool] | None:
        """Return the fewest NUMA nodes that have the requests, and whether none are closer; None if none have."""
        budget = _COMBINATIONS_MAX
        for size in range(1, len(self.available) + 1):
            combinations = list(itertools.islice(itertools.combinations(range(len(self.available)), size), budget))
            budget -= len(combinations)
            shortest = min([_UNKNOWN_DISTANCE, *map(self._distance, combinations)])
            usable = [
                combination
                for combination in combinations
                if self._suffice(combination, requests, guaranteed=guaranteed)
            ]
            if usable:
                best = min(usable, key=self._distance)
                return best, self._distance(best) == shortest
        return None

    def _distance(self, combination: Sequence[int]) -> float:
        total = sum(self.distances[a][b] for a in combination for b in combination)
        return float(np.float32(total) / np.float32(len(combination) ** 2))

    def _suffice(self, combination: Iterable[int], requests: Amounts, *, guaranteed: bool) -> bool:
        parts = [self.available[position] for position in combination]
        if not all(name in part for part in parts for name in requests):
            return False
        return all(
            not amount or (not guaranteed and is_numa_affine(name)) or sum(part[name] for part in parts) >= amount
            for name, amount in requests.items()
        )

    def take(self, requests: Amounts, combination: Sequence[int]) -> None:
        """Take the requests off these NUMA nodes, as much as possible off the one with the lowest number."""
        for name, amount in requests.items():
            missing = amount
            for position in self.order:
                if position in combination and (free := self.available[position].get(name)) is not None:
                    part = min(missing, free)
                    self.available[position][name] = free - part
                    missing -= part


def score_by_count(demands: Demands, topology: Topology) -> int:
    """Return the node's score: higher the fewer NUMA nodes the pod, or the most demanding container, needs."""
    free = _Free(topology)
    if topology.alignment.is_per_pod:
        request_lists = [demands.pod] if free.lists_any(demands.pod) else []
    else:
        request_lists = [demand.requests for demand in demands.all_containers if free.lists_any(demand.requests)]
    count, are_closest = 0, True
    for requests in request_lists:
        choice = free.smallest_set(requests, guaranteed=True)
        if choice is None:
            return 0
        combination, is_closest = choice
        count, are_closest = max(count, len(combination)), are_closest and is_closest
        free.take(requests, combination)
    if not count:
        return MAX_NODE_SCORE
    unit = MAX_NODE_SCORE // topology.alignment.numa_nodes_max
    score = MAX_NODE_SCORE - count * unit + (unit // 2 if are_closest else 0)
    return max(score, 0)
