"""Scores nodes by the share of storage that a pod's claims would use there.

The share is that of the volumes chosen for the claims, by storage class. Only if no volume is chosen for any claim, it
is that of the capacity that volumes are provisioned from. A shape turns each share into a score; a node gets the mean.

Source: kubernetes pkg/scheduler/framework/plugins/volumebinding: volume_binding.go (Score), scorer.go, v1.37.2.
Differs: capacity that is not published, although the largest volume is, does not count; upstream panics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.config.args import UtilizationShapePoint
from podium.framework import contract as fwk
from podium.plugins.shared.allocation_strategies import MAX_UTILIZATION, scores_by_percentage
from podium.plugins.volumes.claims import class_of_claim
from podium.plugins.volumes.free_volumes import capacity_nano
from podium.plugins.volumes.matching import requested_nano
from podium.plugins.volumes.pod_claims import Plan, PodClaims
from podium.plugins.volumes.provisioning import UNKNOWN

_NANO = 10**9


class StorageScores:
    """Scores by the points of a shape."""

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        self._column = np.array(scores_by_percentage(shape), np.int64)

    def of_node(self, claims: PodClaims, node: NodeInfo) -> int:
        """Return the score of one node, from 0 to 100."""
        _, plan = claims.plan(node)
        if plan.bindings:
            return self._of_bindings(plan)
        demand: dict[str, int] = defaultdict(int)
        capacity: dict[str, int] = {}
        for waiting in claims.waiting:
            if (amount := waiting.capacity.amount_on(node.labels)) != UNKNOWN:
                name = class_of_claim(waiting.claim)
                # Claims of one class are provisioned from the same capacity.
                demand[name], capacity[name] = demand[name] + waiting.capacity.size, amount
        return self._mean([(demand[name], capacity[name]) for name in demand])

    def of_rows(self, claims: PodClaims, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the scores of many nodes. Shape: one entry per row of `rows`.

        Cost: a few passes over the rows per claim, and for several claims a plan for each row with a volume for one.
        """
        scores = self._of_provisioning(claims, snapshot, rows)
        if len(claims.waiting) == 1 and (choice := claims.waiting[0].choice) is not None:
            # No other claim takes a volume first, so the size of the volume is all that differs between nodes.
            for volume, has_volume in choice.by_size(snapshot, rows):
                scores[has_volume] = self._of_bindings(Plan(((volume, claims.waiting[0].claim),)))
            return scores
        for position in claims.has_volumes(snapshot, rows).nonzero()[0].tolist():
            _, plan = claims.plan(snapshot.node(int(rows[position])))
            scores[position] = self._of_bindings(plan)
        return scores

    def _of_bindings(self, plan: Plan) -> int:
        demand: dict[str, int] = defaultdict(int)
        capacity: dict[str, int] = defaultdict(int)
        for volume, claim in plan.bindings:
            demand[volume.spec.storage_class_name] += -(-requested_nano(claim) // _NANO)
            capacity[volume.spec.storage_class_name] += -(-(capacity_nano(volume) or 0) // _NANO)
        return self._mean([(demand[name], capacity[name]) for name in demand])

    def _mean(self, shares: Sequence[tuple[int, int]]) -> int:
        count = len(shares)
        percentages = [
            MAX_UTILIZATION if not capacity or demand > capacity else demand * MAX_UTILIZATION // capacity
            for demand, capacity in shares
        ]
        return (2 * int(self._column[percentages].sum()) + count) // (2 * count) if count else 0

    def _of_provisioning(self, claims: PodClaims, snapshot: Snapshot, rows: Rows) -> IntArray:
        by_class: dict[str, tuple[IntArray, IntArray]] = {}
        for waiting in claims.waiting:
            amounts = waiting.capacity.amounts(snapshot, rows)
            if amounts is None:
                continue
            demand, capacity = by_class.setdefault(
                class_of_claim(waiting.claim), (np.zeros(len(rows), np.int64), np.full(len(rows), UNKNOWN, np.int64))
            )
            is_known = amounts != UNKNOWN
            demand[is_known] += waiting.capacity.size
            capacity[is_known] = amounts[is_known]
        total, count = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        for demand, capacity in by_class.values():
            is_known = capacity != UNKNOWN
            percentages = np.where(
                demand > capacity, MAX_UTILIZATION, demand * MAX_UTILIZATION // np.maximum(capacity, 1)
            )
            percentages[capacity == 0] = MAX_UTILIZATION
            total += np.where(is_known, self._column.take(percentages), 0)
            count += is_known
        return (2 * total + count) // np.maximum(2 * count, 1)


def scored_claims(state: fwk.CycleState) -> PodClaims | None:
    """Return the pod's claims, if one of them waits for the pod's node; only then nodes differ."""
    claims = state.find(PodClaims)
    return claims if claims is not None and claims.waiting else None
