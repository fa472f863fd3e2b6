"""Computes how many pods each ReplicaSet of a Deployment should have while a new template replaces an old one.

Source: kubernetes pkg/controller/deployment/rolling.go and util/deployment_util.go (v1.36).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Replicas:
    """The replicas that one ReplicaSet specifies, and how many of its pods are available."""

    wanted: int
    available: int


def share(amount: Any, total: int, *, up: bool) -> int:
    """Resolve a number, or a percentage of the total, rounded up or down."""
    if isinstance(amount, str) and amount.endswith("%") and amount[:-1].isdecimal():
        exact = total * int(amount[:-1]) / 100
        return math.ceil(exact) if up else math.floor(exact)
    return int(amount) if str(amount).isdecimal() else 0


def bounds(spec: Json) -> tuple[int, int]:
    """Return the maximum total number of pods during a rolling update, and the minimum number of available ones."""
    replicas = spec.get("replicas", 1)
    limits = (spec.get("strategy") or {}).get("rollingUpdate") or {}
    surge = share(limits.get("maxSurge", "25%"), replicas, up=True)
    unavailable = share(limits.get("maxUnavailable", "25%"), replicas, up=False)
    if not surge and not unavailable:
        unavailable = 1
    return replicas + surge, replicas - min(unavailable, replicas)


def next_step(
    replicas: int, replicas_max: int, least: int, new: Replicas, old: Sequence[Replicas]
) -> tuple[int, list[int]]:
    """Return the next step of a rolling update: replicas of the new ReplicaSet and each old one, oldest first."""
    total = new.wanted + sum(replica_set.wanted for replica_set in old)
    if new.wanted != replicas:
        grown = min(replicas, max(new.wanted, new.wanted + replicas_max - total))
        if grown != new.wanted:
            return grown, [replica_set.wanted for replica_set in old]
    spare = max(0, total - least - max(0, new.wanted - new.available))
    counts = []
    for replica_set in old:
        unhealthy = min(spare, max(0, replica_set.wanted - replica_set.available))
        spare -= unhealthy
        counts.append(replica_set.wanted - unhealthy)
    available = new.available + sum(
        min(replica_set.available, count) for replica_set, count in zip(old, counts, strict=True)
    )
    spare = min(spare, max(0, available - least))
    for index, count in enumerate(counts):
        cut = min(spare, count)
        spare -= cut
        counts[index] -= cut
    return new.wanted, counts
