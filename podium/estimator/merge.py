"""What Karmada's scheduler makes of several estimators' answers.

Source: karmada pkg/scheduler/core/util.go, v1.18.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from podium.estimator.requirements import MAX_INT32

NO_ANSWER: Final = -1
"""What stands for a cluster that an estimator could not ask."""


def merged(clusters: Iterable[str], answers: Iterable[Mapping[str, int] | None], replicas: int) -> dict[str, int]:
    """For each cluster the least that an estimator says, all `replicas` of the workload where none bounds it.

    Args:
        answers: those of one estimator each, by cluster; None for one that failed for any cluster, which voids it.
    """
    least = dict.fromkeys(clusters, MAX_INT32)
    for answer in answers:
        for cluster, count in (answer or {}).items():
            if cluster in least and count != NO_ANSWER:
                least[cluster] = min(least[cluster], count)
    return {cluster: replicas if count == MAX_INT32 else count for cluster, count in least.items()}
