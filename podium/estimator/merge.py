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
    """Return for each cluster the smallest of the estimators' answers, or the workload's `replicas` if none limits it.

    Args:
        answers: one mapping of clusters to answers per estimator; None for an estimator that failed for any cluster,
            because Karmada then ignores all its answers.
    """
    lowest_counts = dict.fromkeys(clusters, MAX_INT32)
    for answer_by_cluster in answers:
        for cluster, count in (answer_by_cluster or {}).items():
            if cluster in lowest_counts and count != NO_ANSWER:
                lowest_counts[cluster] = min(lowest_counts[cluster], count)
    return {cluster: replicas if count == MAX_INT32 else count for cluster, count in lowest_counts.items()}
