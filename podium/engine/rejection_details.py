"""Explains in amounts and names what keeps a pod off nodes as they are now; reasons only count nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster import Cache, IntArray, Snapshot
from podium.engine.explanation import Group
from podium.framework.cycle.details import details_text
from podium.framework.profile.runtime import Framework
from podium.objects.amounts import distinct_texts
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from podium.plugins.node_resources_fit import NodeResourcesFit


class RejectionDetails:
    """Says it of the nodes of a running podium.

    Args:
        frameworks: the profiles by scheduler name, as they are now.
    """

    def __init__(self, frameworks: Callable[[], Mapping[str, Framework]], cache: Cache) -> None:
        self._frameworks = frameworks
        self._cache = cache

    def on_group(self, pod: Pod, group: Group) -> str:
        """Return why the nodes of a group reject a pending pod; "" if unknown, or if they do not any more."""
        snapshot, framework = self._cache.snapshot(), self._frameworks().get(pod.spec.scheduler_name)
        rows = [snapshot.row_of[name] for name in group.nodes if name in snapshot.row_of]
        if framework is None or not rows:
            return ""
        if group.plugin == NodeResourcesFit.name:
            return asked_and_free(pod, snapshot, rows)
        return details_text(framework, group.plugin, pod, snapshot, np.asarray(rows))


@dataclass(frozen=True, slots=True, eq=False)
class FreeAmounts:
    """What a pod asks for, and what is free of it on some nodes at one time.

    Shape: `free`, `pod_counts` and `pods_max` have one entry for each of `names`.
    """

    names: Sequence[str]
    requests: Mapping[str, int]
    free: Mapping[str, IntArray]
    pod_counts: IntArray
    pods_max: IntArray

    @classmethod
    def of(cls, pod: Pod, snapshot: Snapshot, rows: Sequence[int], copy_counts: Sequence[int] = ()) -> FreeAmounts:
        """Take the amounts of the nodes of these rows.

        Args:
            copy_counts: how many copies of the pod each node is to have in addition; empty for none.
        """
        indexes, requests = np.asarray(rows, np.intp), filter_requests(pod.spec)
        counts = np.asarray(copy_counts, np.int64) if copy_counts else np.zeros(len(indexes), np.int64)
        free = {
            resource: snapshot.allocatable(resource)[indexes] - snapshot.requested(resource)[indexes] - amount * counts
            for resource, amount in requests.items()
        }
        names = [snapshot.name(row) for row in rows]
        return cls(names, requests, free, snapshot.pod_count[indexes] + counts, snapshot.allowed_pods[indexes])

    def shortages(self, positions: Sequence[int] | None = None) -> str:
        """Return the request for each resource that none of the nodes has enough of, and the most that is free on one.

        Args:
            positions: the positions of the nodes in `names`; None for all.

        Returns: "" for nodes that have enough, as pods nominated to them need it.
        """
        indexes = np.arange(len(self.names)) if positions is None else np.asarray(positions, np.intp)
        shortages = []
        for resource, amount in self.requests.items():
            free = self.free[resource][indexes]
            best = int(free.argmax())
            if amount > free[best]:
                request, remainder = distinct_texts(resource, amount, max(int(free[best]), 0))
                shortages.append((resource, request, f"at most {remainder} free ({self.names[indexes[best]]})"))
        has_names = len(shortages) > 1
        texts = [
            f"requests {request}{f' {resource}' if has_names else ''}, {remainder}"
            for resource, request, remainder in shortages
        ]
        pods_max = self.pods_max[indexes]
        if (self.pod_counts[indexes] >= pods_max).all():
            largest = int(pods_max.argmax())
            texts.append(f"takes at most {int(pods_max[largest])} pods ({self.names[indexes[largest]]})")
        return "; ".join(texts)


def asked_and_free(pod: Pod, snapshot: Snapshot, rows: Sequence[int]) -> str:
    """Return what the pod requests and the most that is free on the nodes of these rows, as `FreeAmounts` says it."""
    return FreeAmounts.of(pod, snapshot, rows).shortages()
