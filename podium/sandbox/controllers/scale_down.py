"""Chooses the pods that a controller deletes when it has too many.

Source: ActivePods and ActivePodsWithRanks in kubernetes pkg/controller/controller_utils.go (v1.36); KEP-2185 (ages
count by their logarithm), KEP-2255 (deletion cost).
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from podium.sandbox.controllers.pods import is_active, is_ready, phase_of
from podium.sandbox.fields import items_at, mapping_at
from podium.sandbox.journal import Record

Json = dict[str, Any]

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1}
_RUNNING = 2
_NANO_PER_S = 1e9


def replica_set_victims(
    pods: Sequence[Record], related_pods: Iterable[Record], count: int, time: datetime
) -> list[Record]:
    """Return the pods that a ReplicaSet deletes.

    Args:
        related_pods: the pods of all ReplicaSets of its Deployment; none if it has no Deployment. A node with several
            of them is given up first.
    """
    on_node = Counter(_node_of(pod) for pod in related_pods if is_active(pod.obj))
    return _Ranking(time, on_node).first(pods, count)


def job_victims(pods: Sequence[Record], count: int) -> list[Record]:
    """Return the pods that a Job deletes: it ignores nodes and deletion costs, and compares ages exactly."""
    return _Ranking(None, Counter()).first(pods, count)


class _Ranking:
    """The order in which pods are deleted; of pods that nothing tells apart the newest goes first."""

    def __init__(self, time: datetime | None, on_node: Counter[str]) -> None:
        self._now = time
        self._on_node = on_node

    def first(self, pods: Sequence[Record], count: int) -> list[Record]:
        newest_first = sorted(pods, key=lambda pod: -pod.revision)
        return sorted(newest_first, key=functools.cmp_to_key(self._compare))[:count]

    def _compare(self, pod: Record, other_pod: Record) -> int:
        """Return a negative number if the first pod is deleted before the second."""
        for rank, other_rank in zip(self._static_rank(pod), self._static_rank(other_pod), strict=True):
            if rank != other_rank:
                return -1 if rank < other_rank else 1
        if is_ready(pod.obj) and (order := self._by_age(pod, other_pod, _ready_since(pod), _ready_since(other_pod))):
            return order
        restarts, other_restarts = _restarts(pod), _restarts(other_pod)
        if restarts != other_restarts:
            return -1 if restarts > other_restarts else 1
        return self._by_age(
            pod, other_pod, *(candidate.obj["metadata"].get("creationTimestamp") for candidate in (pod, other_pod))
        )

    def _static_rank(self, record: Record) -> tuple[bool, int, bool, int, int]:
        pod, node = record.obj, _node_of(record)
        phase = _PHASES.get(phase_of(pod), _RUNNING)
        if self._now is None:
            return bool(node), phase, is_ready(pod), 0, 0
        return bool(node), phase, is_ready(pod), _deletion_cost(pod), -self._on_node[node]

    def _by_age(self, pod: Record, other_pod: Record, start_time: Any, other_since: Any) -> int:
        if start_time == other_since:
            return 0
        if not start_time or not other_since:
            return -1 if not start_time else 1
        if self._now is None:
            return -1 if start_time > other_since else 1
        age, other_age = self._log_age(start_time), self._log_age(other_since)
        if age != other_age:
            return -1 if age < other_age else 1
        return -1 if pod.obj["metadata"]["uid"] < other_pod.obj["metadata"]["uid"] else 1

    def _log_age(self, start_time: str) -> int:
        assert self._now is not None
        try:
            age_s = (self._now - datetime.fromisoformat(start_time)).total_seconds()
        except (TypeError, ValueError):
            return -1
        return int(math.log2(age_s * _NANO_PER_S)) if age_s > 0 else -1


def _node_of(record: Record) -> str:
    return str(mapping_at(record.obj, "spec").get("nodeName") or "")


def _ready_since(record: Record) -> str | None:
    conditions = items_at(record.obj, "status", "conditions")
    return next(
        (condition.get("lastTransitionTime") for condition in conditions if condition.get("type") == "Ready"), None
    )


def _restarts(record: Record) -> tuple[int, int]:
    """Return the most restarts of a container, and of a sidecar."""
    sidecars = {
        container.get("name")
        for container in items_at(record.obj, "spec", "initContainers")
        if container.get("restartPolicy") == "Always"
    }
    statuses = items_at(record.obj, "status", "containerStatuses")
    initial = [
        status for status in items_at(record.obj, "status", "initContainerStatuses") if status.get("name") in sidecars
    ]
    restarts, most_of_sidecars = (
        max((status.get("restartCount", 0) for status in entries), default=0) for entries in (statuses, initial)
    )
    return restarts, most_of_sidecars


def _deletion_cost(pod: Json) -> int:
    try:
        return int(mapping_at(pod, "metadata", "annotations").get(_DELETION_COST, "0"))
    except (TypeError, ValueError):
        return 0
