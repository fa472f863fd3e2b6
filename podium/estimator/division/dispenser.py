"""Divides replicas by weights: Webster's method, which is also Sainte-Laguë's.

Replicas go one by one to the cluster with the greatest weight / (2 * replicas + 1). Of equal ones the cluster with
fewer replicas comes first, then by name: ascending or descending, as the hash of the workload's UID says.

Cost: logarithmic in the number of replicas. Most are given out at once, by a threshold on that quotient.
Source: karmada pkg/util/helper/webstermethod.go and binding.go, v1.18; A. Sainte-Laguë, 1910.
Differs: beyond 2**30 replicas upstream's divisor wraps around.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Final

_FNV_OFFSET: Final = 2166136261
_FNV_PRIME: Final = 16777619
_BISECTIONS: Final = 200


def divide_by_weights(replicas: int, weights: Mapping[str, int], uid: str) -> dict[str, int]:
    """Return the replicas of each cluster, by name; nothing if the weights sum up to 0, or none is positive.

    Args:
        weights: one that is negative gets nothing while there are others.
        uid: of the workload; it decides between equal quotients.
    """
    if not sum(weights.values()) or max(weights.values()) <= 0:
        return {}
    sign = -1 if _fnv1a_32(uid) & 1 and uid else 1
    rank_of = {name: sign * rank for rank, name in enumerate(sorted(weights))}
    seats = _safe_start(replicas, weights)

    def entry(name: str) -> tuple[float, int, int, str]:
        return -float(weights[name]) / (2 * seats[name] + 1), seats[name], rank_of[name], name

    queue = [entry(name) for name in weights]
    heapq.heapify(queue)
    for _ in range(replicas - sum(seats.values())):
        name = queue[0][-1]
        seats[name] += 1
        heapq.heapreplace(queue, entry(name))
    return {name: seats[name] for name in sorted(weights)}


def _safe_start(replicas: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Return replicas that each cluster certainly gets, nearly all of them."""
    if replicas <= 4 * len(weights):
        return dict.fromkeys(weights, 0)
    total = float(sum(max(0, weight) for weight in weights.values()))
    # Every quotient above the threshold wins if there are at most as many of them as replicas.
    low, high = total / (2 * replicas + 2 * len(weights)) / 2, total
    for _ in range(_BISECTIONS):
        threshold = (low + high) / 2
        if sum(_count_above(weight, threshold) for weight in weights.values()) > replicas:
            low = threshold
        else:
            high = threshold
        if high - low <= high * 1e-12:
            break
    # One less, since the count is rounded.
    return {name: max(0, _count_above(weight, high) - 1) for name, weight in weights.items()}


def _count_above(weight: int, threshold: float) -> int:
    """Return how many replicas have a quotient above the threshold."""
    return max(0, int((weight / threshold + 1) / 2))


def _fnv1a_32(text: str) -> int:
    hash_value = _FNV_OFFSET
    for byte in text.encode("utf-8", "surrogatepass"):
        hash_value = (hash_value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return hash_value
