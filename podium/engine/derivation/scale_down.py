"""Chooses the pods that a controller deletes when it has too many: the least valuable ones first.

Source: v1.36.2, ActivePods and ActivePodsWithRanks in kubernetes pkg/controller/controller_utils.go, getPodsToDelete
in pkg/controller/replicaset/replica_set.go; KEP-2185 (random rotation by logarithmic age), KEP-2255 (deletion cost).
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from podium.objects.core import Pod
from podium.objects.times import time_or_none

_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_RANKS: Final = {"Pending": 0, "Unknown": 1}
_RUNNING_RANK: Final = 2
_NANO_PER_S: Final = 1e9

Restarts: TypeAlias = Callable[[Pod], tuple[int, int]]
"""Returns the highest number of restarts among a pod's containers, and among its sidecars."""


def is_ready(pod: Pod) -> bool:
    """Return whether the pod counts as running and ready. A bound pod that has no Ready condition counts as ready."""
    if not pod.node_name or pod.is_terminating or pod.status.phase in ("Succeeded", "Failed"):
        return False
    condition = next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)
    return condition is None or condition.status == "True"


def replica_set_victims(
    pods: Sequence[Pod], sibling_pods: Iterable[Pod], count: int, now_s: float, restarts: Restarts
) -> list[Pod]:
    """Return the pods that a ReplicaSet deletes.

    Args:
        sibling_pods: the pods of all ReplicaSets of the same Deployment. Pods on nodes with several of them are
            deleted first. Empty for a ReplicaSet without a Deployment: nodes then do not matter.
        count: how many pods to delete.
        now_s: the present time. Ages are compared by their logarithm.
    """
    count_by_node = Counter(pod.node_name for pod in sibling_pods if not pod.has_ended and not pod.is_terminating)
    ranking = _Ranking(now_s, restarts, count_by_node)
    return ranking.first(pods, count)


def youngest_victims(pods: Sequence[Pod], count: int, restarts: Restarts) -> list[Pod]:
    """Return the pods that a Job deletes. It ignores nodes and deletion costs, and compares ages exactly."""
    return _Ranking(None, restarts).first(pods, count)


@dataclass(frozen=True)
class _Ranking:
    """The order in which pods are deleted.

    Attributes:
        now_s: the present time; None to compare ages exactly, and to ignore deletion costs and nodes.
    """

    now_s: float | None
    restarts: Restarts
    count_by_node: Counter[str] = field(default_factory=Counter)

    def first(self, pods: Sequence[Pod], count: int) -> list[Pod]:
        """Return the pods that are deleted first; among equal pods, the one whose name sorts last."""
        by_name = sorted(pods, key=lambda pod: pod.key, reverse=True)
        return sorted(by_name, key=functools.cmp_to_key(self.compare))[:count]

    def compare(self, first: Pod, second: Pod) -> int:
        """Return a negative number if the first pod is deleted before the second."""
        for rank, second_rank in zip(self._static_rank(first), self._static_rank(second), strict=True):
            if rank != second_rank:
                return -1 if rank < second_rank else 1
        if (
            is_ready(first)
            and is_ready(second)
            and (order := self._compare_ages(first, second, _ready_time(first), _ready_time(second)))
        ):
            return order
        restarts, second_restarts = self.restarts(first), self.restarts(second)
        if restarts != second_restarts:
            return -1 if restarts > second_restarts else 1
        return self._compare_ages(first, second, first.metadata.creation_timestamp, second.metadata.creation_timestamp)

    def _static_rank(self, pod: Pod) -> tuple[bool, int, bool, int, int]:
        is_bound = bool(pod.node_name)
        phase = _PHASE_RANKS.get(pod.status.phase, _RUNNING_RANK) if pod.status.phase or is_bound else 0
        if self.now_s is None:
            return is_bound, phase, is_ready(pod), 0, 0
        return is_bound, phase, is_ready(pod), _deletion_cost(pod), -self.count_by_node[pod.node_name]

    def _compare_ages(self, first: Pod, second: Pod, time: str | None, second_time: str | None) -> int:
        """Compare by the times, the later one first; a missing time comes before all others."""
        if time == second_time:
            return 0
        if not time or not second_time:
            return -1 if not time else 1
        since_s, second_since_s = time_or_none(time) or 0.0, time_or_none(second_time) or 0.0
        if self.now_s is None:
            return -1 if since_s > second_since_s else 1
        rank, second_rank = _age_rank(self.now_s - since_s), _age_rank(self.now_s - second_since_s)
        if rank != second_rank:
            return -1 if rank < second_rank else 1
        return -1 if first.uid < second.uid else 1


def _age_rank(age_s: float) -> int:
    return int(math.log2(age_s * _NANO_PER_S)) if age_s > 0 else -1


def _ready_time(pod: Pod) -> str | None:
    """Return the time at which the pod became ready; for a pod without a Ready condition, its creation time."""
    condition = next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)
    return pod.metadata.creation_timestamp if condition is None else condition.last_transition_time


def _deletion_cost(pod: Pod) -> int:
    text = pod.metadata.annotations.get(_DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0
