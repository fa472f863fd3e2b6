"""The scoring strategies of NodeResourcesFit: least allocated, most allocated, and requested-to-capacity ratio.

A strategy scores one resource from 0 to MAX_NODE_SCORE, given the amount in use with the pod and the allocatable
amount. A node's score is the weighted mean over the resources that count there. All arithmetic is in truncating
integers.

Source: kubernetes v1.36.2, pkg/scheduler/framework/plugins/noderesources (least_allocated.go, most_allocated.go,
requested_to_capacity_ratio.go, resource_allocation.go).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.snapshot import BoolArray
from podium.config.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from podium.framework import contract as fwk
from podium.objects.requests import Requests
from podium.objects.resource_names import is_scalar_resource
from podium.plugins.shared.device_totals import DeviceTotals

MAX_UTILIZATION: Final = 100
_SHAPE_SCALE: Final = 10
"""The points of a shape have scores from 0 to 10."""


class CountedResources:
    """The resources that count for a pod's score, with its requests. The last answer is kept, for each changed node."""

    def __init__(self, resources: Sequence[ResourceSpec]) -> None:
        self._resources = resources
        self._requests: Requests = {}
        self._counted = self._count(self._requests)

    def of(self, requests: Requests) -> Sequence[tuple[ResourceSpec, int]]:
        """Return the resources and the requests; scalar resources count only if they are requested.

        Args: `requests` must not change afterwards.
        """
        if requests is not self._requests:
            self._requests, self._counted = requests, self._count(requests)
        return self._counted

    def _count(self, requests: Requests) -> Sequence[tuple[ResourceSpec, int]]:
        amounts = [(resource, requests.get(resource.name, 0)) for resource in self._resources]
        return [(resource, amount) for resource, amount in amounts if amount or not is_scalar_resource(resource.name)]


class Strategy(ABC):
    """The weighted mean of a score per resource. A resource that a node does not offer does not count there."""

    only_positive: ClassVar[bool] = False
    """If true, resources with a score of 0 are left out, and the mean is rounded instead of truncated."""

    def __init__(self, strategy: ScoringStrategy) -> None:
        self._counted = CountedResources(strategy.resources)

    @abstractmethod
    def resource_scores(self, in_use: IntArray, allocatable: IntArray) -> IntArray:
        """Return one resource's scores by row; no row of `allocatable` is 0.

        Shape: as `in_use` and `allocatable`, one entry per row. Units: the resource's own; scores are percentages.
        """

    @abstractmethod
    def resource_score(self, in_use: int, allocatable: int) -> int:
        """Return one resource's score on one node; allocatable is not 0."""

    def score_rows(
        self, requests: Requests, snapshot: Snapshot, rows: Rows, totals: DeviceTotals | None = None
    ) -> IntArray:
        """Return the score by row; 0 if no resource counts. Shape: one entry per row of `rows`."""
        total = np.zeros(len(rows), np.int64)
        weight: IntArray | int = 0
        classes = {} if totals is None else totals.classes(requests)
        for resource, amount in self._counted.of(requests):
            allocatable = snapshot.allocatable(resource.name).take(rows)
            in_use = snapshot.nonzero_requested(resource.name).take(rows)
            if totals is not None and resource.name in classes:
                totals.add_to(allocatable, in_use, classes[resource.name], snapshot, rows)
            in_use += amount
            counts: BoolArray | int = 1
            if np.count_nonzero(allocatable) == len(rows):
                scores = self.resource_scores(in_use, allocatable)
            else:
                counts = allocatable != 0
                scores = self.resource_scores(in_use, np.where(counts, allocatable, 1)) * counts
            if self.only_positive:
                counts = scores > 0
            total += scores * resource.weight
            weight = weight + counts * resource.weight
        if isinstance(weight, int):
            return total if weight == 0 else total // weight
        weight = np.maximum(weight, 1)
        return (2 * total + weight) // (2 * weight) if self.only_positive else total // weight

    def score(self, requests: Requests, node: NodeInfo, totals: DeviceTotals | None = None) -> int:
        """Return the score of one node; 0 if no resource counts."""
        total = weight = 0
        snapshot, row = node.snapshot, node.row
        classes = {} if totals is None else totals.classes(requests)
        for resource, amount in self._counted.of(requests):
            allocatable = snapshot.allocatable_on(row, resource.name)
            in_use = snapshot.nonzero_requested_on(row, resource.name)
            if totals is not None and allocatable == 0 and resource.name in classes:
                allocatable, in_use = totals.of(node, classes[resource.name])
            if allocatable == 0:
                continue
            score = self.resource_score(in_use + amount, allocatable)
            if score > 0 or not self.only_positive:
                total += score * resource.weight
                weight += resource.weight
        if weight == 0:
            return 0
        return math.floor(total / weight + 0.5) if self.only_positive else total // weight


class LeastAllocated(Strategy):
    """The share that stays free: spreads pods out."""

    def resource_scores(self, in_use: IntArray, allocatable: IntArray) -> IntArray:
        """Return the percentage left free; 0 if the pod does not fit."""
        scores: IntArray = np.maximum(allocatable - in_use, 0) * fwk.MAX_NODE_SCORE // allocatable
        return scores

    def resource_score(self, in_use: int, allocatable: int) -> int:
        """Return the percentage left free; 0 if the pod does not fit."""
        return 0 if in_use > allocatable else (allocatable - in_use) * fwk.MAX_NODE_SCORE // allocatable


class MostAllocated(Strategy):
    """The share that is in use: packs pods together."""

    def resource_scores(self, in_use: IntArray, allocatable: IntArray) -> IntArray:
        """Return the percentage in use, at most 100."""
        scores: IntArray = np.minimum(in_use, allocatable) * fwk.MAX_NODE_SCORE // allocatable
        return scores

    def resource_score(self, in_use: int, allocatable: int) -> int:
        """Return the percentage in use, at most 100."""
        return min(in_use, allocatable) * fwk.MAX_NODE_SCORE // allocatable

    def score_together(self, requests: Requests, snapshot: Snapshot, rows: Rows) -> int:
        """Return the score of these rows as if they were one node; 0 if no resource counts."""
        total = weight = 0
        for resource, amount in self._counted.of(requests):
            allocatable = snapshot.allocatable(resource.name).take(rows)
            total_allocatable = int(allocatable.sum())
            if total_allocatable:
                in_use = snapshot.nonzero_requested(resource.name).take(rows)[allocatable != 0]
                total += self.resource_score(int(in_use.sum()) + amount, total_allocatable) * resource.weight
                weight += resource.weight
        return total // weight if weight else 0


class RequestedToCapacityRatio(Strategy):
    """A function of the share that is in use, given by the points of its graph."""

    only_positive = True

    def __init__(self, strategy: ScoringStrategy) -> None:
        super().__init__(strategy)
        ratio = strategy.requested_to_capacity_ratio
        assert ratio is not None, "the configuration requires the shape with this strategy"
        self._by_utilization = scores_by_percentage(ratio.shape)
        self._column = np.array(self._by_utilization, np.int64)

    def resource_scores(self, in_use: IntArray, allocatable: IntArray) -> IntArray:
        """Return the function's value at the percentage in use; at 100 if the pod does not fit."""
        return self._column.take(np.minimum(in_use, allocatable) * MAX_UTILIZATION // allocatable)

    def resource_score(self, in_use: int, allocatable: int) -> int:
        """Return the function's value at the percentage in use; at 100 if the pod does not fit."""
        percent = MAX_UTILIZATION if in_use > allocatable else in_use * MAX_UTILIZATION // allocatable
        return self._by_utilization[percent]


def scores_by_percentage(points: Sequence[UtilizationShapePoint]) -> list[int]:
    """Return the score at each utilization from 0 to 100, as the points of a graph say."""
    return [_on_graph(points, percent) for percent in range(MAX_UTILIZATION + 1)]


def _on_graph(points: Sequence[UtilizationShapePoint], percent: int) -> int:
    """Return the score at a utilization: level before the first and after the last point, straight lines in between."""
    right_index = next((index for index, point in enumerate(points) if percent <= point.utilization), None)
    if right_index is None:
        return points[-1].score * _SHAPE_SCALE
    right = points[right_index]
    if right_index == 0:
        return right.score * _SHAPE_SCALE
    left_point = points[right_index - 1]
    rise = (right.score - left_point.score) * _SHAPE_SCALE * (percent - left_point.utilization)
    run = right.utilization - left_point.utilization
    # Truncate towards zero, as Go does, also if the line falls.
    return left_point.score * _SHAPE_SCALE + (rise // run if rise >= 0 else -(-rise // run))


_STRATEGIES: Final[Mapping[str, type[Strategy]]] = {
    LEAST_ALLOCATED: LeastAllocated,
    MOST_ALLOCATED: MostAllocated,
    REQUESTED_TO_CAPACITY_RATIO: RequestedToCapacityRatio,
}


def strategy_of(strategy: ScoringStrategy) -> Strategy:
    """Return the strategy that the configuration asks for."""
    return _STRATEGIES[strategy.type](strategy)
