"""NodeResourcesBalancedAllocation: prefers nodes where the pod makes the use of resources more balanced.

Runs at: PreScore, Score.
Verdict: none.
Requeue: none.
Cost: two gathers per configured resource.
Source: kubernetes pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go, v1.36.2 and v1.35.4; KEP 5232.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.config.args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from podium.framework import contract as fwk
from podium.objects.core import Pod, PodSpec
from podium.objects.errors import FieldError
from podium.objects.requests import Requests, pod_requests, pod_requests_with_status
from podium.plugins.shared.allocation_strategies import CountedResources
from podium.plugins.shared.cluster_devices import ClusterDevices
from podium.plugins.shared.device_totals import DeviceTotals

_HALF: Final = fwk.MAX_NODE_SCORE // 2
_NO_GAIN: Final = _HALF + _HALF // 2


class NodeResourcesBalancedAllocation(fwk.PreScorePlugin, fwk.TableScorePlugin, fwk.ScorePlugin):
    """Scores by how much adding the pod lowers the standard deviation of the resources' used fractions.

    As Kubernetes 1.35, by how low it is with the pod.

    Floating point operations are in upstream's order, so that truncation gives the same integers.
    """

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: fwk.Handle) -> None:
        self._by_container = not handle.release.sums_resized_pods
        self._scores_gain = handle.release.scores_balance_gain
        self._resources = args.resources
        self._totals = DeviceTotals.of_resources(handle.shared(ClusterDevices), args.resources)
        self._counted_resources = CountedResources(args.resources)

    def _requests_of(self, pod: Pod) -> Requests:
        return pod_requests_with_status(pod, by_container=self._by_container)

    def pre_score(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> fwk.Status | None:
        """Return Skip if the pod requests none of the resources, Error if a request cannot be parsed."""
        try:
            requests = self._requests_of(pod)
        except FieldError as error:
            return fwk.error_status(error)
        return None if any(requests.get(resource.name, 0) for resource in self._resources) else fwk.SKIP

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Score from half of MAX_NODE_SCORE, if the pod only worsens the balance, to MAX_NODE_SCORE.

        As Kubernetes 1.35, from half of it if only one of the resources is used up.
        """
        columns = [
            _Column(
                snapshot.requested(resource.name).take(rows), amount, snapshot.allocatable(resource.name).take(rows)
            )
            for resource, amount in self._amounts(pod)
        ]
        if self._totals is not None:
            classes = self._totals.classes(self._requests_of(pod))
            for (resource, _), column in zip(self._amounts(pod), columns, strict=True):
                if resource.name in classes:
                    device_class = classes[resource.name]
                    self._totals.add_to(column.allocatable, column.in_use, device_class, snapshot, rows)
        if all(np.count_nonzero(column.allocatable) == len(rows) for column in columns):
            return self._scores_of(columns, len(rows))
        scores = np.empty(len(rows), np.int64)
        has_resource = np.array([column.allocatable != 0 for column in columns])
        # Rows that offer the same resources are scored together.
        for pattern in np.unique(has_resource, axis=1).T:
            alike = np.flatnonzero((has_resource == pattern[:, None]).all(axis=0))
            subset = [column.take(alike) for column, is_there in zip(columns, pattern, strict=True) if is_there]
            scores[alike] = self._scores_of(subset, len(alike))
        return scores

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Score as `score_rows`, for one node."""
        fractions_without_pod: list[float] = []
        fractions_with_pod: list[float] = []
        snapshot, row = node.snapshot, node.row
        classes = {} if self._totals is None else self._totals.classes(self._requests_of(pod))
        for resource, amount in self._amounts(pod):
            allocatable = snapshot.allocatable_on(row, resource.name)
            in_use = snapshot.requested_on(row, resource.name)
            if self._totals is not None and not allocatable and resource.name in classes:
                allocatable, in_use = self._totals.of(node, classes[resource.name])
            if allocatable:
                # Written out: each attempt scores the node of the one before.
                capacity = float(allocatable)
                without_pod, with_pod = float(in_use) / capacity, float(in_use + amount) / capacity
                fractions_without_pod.append(without_pod if without_pod < 1.0 else 1.0)
                fractions_with_pod.append(with_pod if with_pod < 1.0 else 1.0)
        evenness = _evenness(fractions_with_pod)
        return _HALF + (_HALF + evenness - _evenness(fractions_without_pod)) // 2 if self._scores_gain else evenness

    def score_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return USAGE: the score depends on what the pods on the node request together; CLUSTER if devices count."""
        has_devices = self._totals is not None and self._totals.classes(pod_requests(spec))
        return fwk.Scope.CLUSTER if has_devices else fwk.Scope.USAGE

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: the plugin rejects no node."""
        return ()

    def _scores_of(self, columns: Sequence[_Column], size: int) -> IntArray:
        """Return the score by row; no row of `allocatable` is 0."""
        if len(columns) < 2:
            return np.full(size, _NO_GAIN if self._scores_gain else fwk.MAX_NODE_SCORE, np.int64)
        without_pod, with_pod = _evenness_by_row([column.fractions() for column in columns])
        scores: IntArray = _HALF + (_HALF + with_pod - without_pod) // 2 if self._scores_gain else with_pod
        return scores

    def _amounts(self, pod: Pod) -> Sequence[tuple[ResourceSpec, int]]:
        return self._counted_resources.of(self._requests_of(pod))


class _Column(NamedTuple):
    """One resource by row: in use, requested by the pod, allocatable."""

    in_use: IntArray
    amount: int
    allocatable: IntArray

    def take(self, places: NDArray[np.intp]) -> _Column:
        """Return the column of the rows at these positions."""
        return _Column(self.in_use[places], self.amount, self.allocatable[places])

    def fractions(self) -> NDArray[np.float64]:
        """Return the fraction in use, at most 1: first without the pod, then with it."""
        fractions = np.empty((2, len(self.in_use)))
        fractions[0] = self.in_use
        fractions[1] = self.in_use + self.amount
        fractions /= self.allocatable.astype(np.float64)
        np.minimum(fractions, 1.0, out=fractions)
        return fractions


def _evenness_by_row(fractions: Sequence[NDArray[np.float64]]) -> IntArray:
    """Return `_evenness` of two or more resources, in the shape of the fractions."""
    count = len(fractions)
    if count == 2:
        deviation = np.abs(fractions[0] - fractions[1])
        deviation /= 2
    else:
        mean = sum(fractions[1:], start=fractions[0]) / count
        squares = [(fraction - mean) * (fraction - mean) for fraction in fractions]
        deviation = np.sqrt(sum(squares[1:], start=squares[0]) / count)
    evenness: IntArray = ((1 - deviation) * fwk.MAX_NODE_SCORE).astype(np.int64)
    return evenness


def _evenness(fractions: Sequence[float]) -> int:
    """Return MAX_NODE_SCORE if all fractions are equal, less the further apart they are."""
    count = len(fractions)
    if count == 2:
        deviation = abs(fractions[0] - fractions[1]) / 2
    elif count < 2:
        deviation = 0.0
    else:
        mean = _total(fractions) / count
        deviation = math.sqrt(_total([(fraction - mean) * (fraction - mean) for fraction in fractions]) / count)
    return int((1 - deviation) * fwk.MAX_NODE_SCORE)


def _total(terms: Sequence[float]) -> float:
    """Return the plain running sum; Python's own `sum` corrects rounding errors from 3.12 on."""
    total = 0.0
    for term in terms:
        total += term
    return total
