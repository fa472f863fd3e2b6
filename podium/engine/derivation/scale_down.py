"""Chooses the pods that a controller deletes when it has too many: the least valuable ones first.

Source: ActivePods and ActivePodsWithRanks in kubernetes pkg/controller/controller_utils.go, getPodsToDelete in
pkg/controller/replicaset/replica_set.go, v1.36.2; KEP-2185 (random rotation by logarithmic age), KEP-2255 (deletion
cost).
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from podium.objects.core import Pod
from podium.objects.times import parse_time

_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1}
_RUNNING: Final = 2
_NANO_PER_S: Final = 1e9

Restarts: TypeAlias = Callable[[Pod], tuple[int, int]]
"""Returns the highest number of restarts among a pod's containers, and among its sidecars."""


def is_ready(pod: Pod) -> bool:
    """Return whether the pod counts as running and ready. A pod on a node without a Ready condition does."""
    if not pod.node_name or pod.is_terminating or pod.status.phase in ("Succeeded", "Failed"):
        return False
    condition = next((item for item in pod.status.conditions if item.type == "Ready"), None)
    return condition is None or condition.status == "True"


def replica_set_victims(
    pods: Sequence[Pod], sibling_pods: Iterable[Pod], count: int, now_s: float, restarts: Restarts
) -> list[Pod]:
    """Return the pods that a ReplicaSet deletes.

    Args:
        sibling_pods: the pods of all ReplicaSets of the same Deployment. Pods on nodes with several of them are
            deleted first. For a ReplicaSet without a Deployment it is empty, so that nodes do not matter.
        count: how many pods to delete.
        now_s: the time from which ages are measured, which are compared by their logarithm.
    """
    on_node = Counter(pod.node_name for pod in sibling_pods if not pod.has_ended and not pod.is_terminating)
    ranking = _Ranking(now_s, restarts, on_node)
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
    on_node: Counter[str] = field(default_factory=Counter)

    def first(self, pods: Sequence[Pod], count: int) -> list[Pod]:
        """Return the pods that are deleted first; among equal pods, the one whose name sorts last."""
        by_name = sorted(pods, key=lambda pod: pod.key, reverse=True)
        return sorted(by_name, key=functools.cmp_to_key(self.compare))[:count]

    def compare(self, pod: Pod, second: Pod) -> int:
        """Return a negative number if the first pod is deleted before the second."""
        for first_rank, two in zip(self._static_rank(pod), self._static_rank(second), strict=True):
            if first_rank != two:
                return -1 if first_rank < two else 1
        if (
            is_ready(pod)
            and is_ready(second)
            and (order := self._by_age(pod, second, _ready_time(pod), _ready_time(second)))
        ):
            return order
        restarts, other_restarts = self.restarts(pod), self.restarts(second)
        if restarts != other_restarts:
            return -1 if restarts > other_restarts else 1
        return self._by_age(pod, second, pod.metadata.creation_timestamp, second.metadata.creation_timestamp)

    def _static_rank(self, pod: Pod) -> tuple[bool, int, bool, int, int]:
        is_bound = bool(pod.node_name)
        phase = _PHASES.get(pod.status.phase, _RUNNING) if pod.status.phase or is_bound else 0
        if self.now_s is None:
            return is_bound, phase, is_ready(pod), 0, 0
        return is_bound, phase, is_ready(pod), _deletion_cost(pod), -self.on_node[pod.node_name]

    def _by_age(self, pod: Pod, second: Pod, time: str | None, other_time: str | None) -> int:
        if time == other_time:
            return 0
        if not time or not other_time:
            return -1 if not time else 1
        since, other_since = _seconds(time), _seconds(other_time)
        if self.now_s is None:
            return -1 if since > other_since else 1
        rank, other_rank = _log_age(self.now_s - since), _log_age(self.now_s - other_since)
        if rank != other_rank:
            return -1 if rank < other_rank else 1
        return -1 if pod.uid < second.uid else 1


def _log_age(age_s: float) -> int:
    return int(math.log2(age_s * _NANO_PER_S)) if age_s > 0 else -1


def _ready_time(pod: Pod) -> str | None:
    """Return the time since when the pod is ready; for a pod placed in the question, that of its creation."""
    condition = next((item for item in pod.status.conditions if item.type == "Ready"), None)
    return pod.metadata.creation_timestamp if condition is None else condition.last_transition_time


def _deletion_cost(pod: Pod) -> int:
    text = pod.metadata.annotations.get(_DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def _seconds(time: str) -> float:
    try:
        return parse_time(time)
    except ValueError:
        return 0.0
