"""Combine the answers of several estimators as Karmada's scheduler does.

Source: karmada pkg/scheduler/core/util.go, v1.18.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from podium.estimator.requirements import MAX_INT32

NO_ANSWER: Final = -1
"""The answer for a cluster that an estimator could not query."""


def merge_answers(
    clusters: Iterable[str], answers: Iterable[Mapping[str, int] | None], replicas: int
) -> dict[str, int]:
    """For each cluster the smallest answer of the estimators, or the workload's `replicas` if none limits it.

    Args:
        answers: one mapping of clusters to answers per estimator. None if an estimator failed for any cluster: Karmada
            then ignores all its answers.
    """
    least = dict.fromkeys(clusters, MAX_INT32)
    for answer in answers:
        for cluster, count in (answer or {}).items():
            if cluster in least and count != NO_ANSWER:
                least[cluster] = min(least[cluster], count)
    return {cluster: replicas if count == MAX_INT32 else count for cluster, count in least.items()}
