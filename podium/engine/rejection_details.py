"""Explains in amounts and names what keeps a pod off nodes as they are now; reasons only count nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from podium.cluster import Cache, Snapshot
from podium.engine.explanation import Group
from podium.framework.cycle.details import details_on
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
        details = details_on(framework, group.plugin, pod, snapshot, np.asarray(rows))
        if len(details) == 1 and len(rows) == sum(details.values()):
            return next(iter(details))
        return ", ".join(f"{text} on {count} node(s)" for text, count in details.items())


def asked_and_free(pod: Pod, snapshot: Snapshot, rows: Sequence[int]) -> str:
    """Return the request for each resource that no node has enough of, and the most that is free on one of them.

    Returns: "" for nodes that have enough, as pods nominated to them need it.
    """
    at = np.asarray(rows)
    shortages = []
    for resource, amount in filter_requests(pod.spec).items():
        free = snapshot.allocatable(resource)[at] - snapshot.requested(resource)[at]
        best = int(free.argmax())
        if amount > free[best]:
            request, remainder = distinct_texts(resource, amount, max(int(free[best]), 0))
            shortages.append((resource, request, f"{remainder} free at most ({snapshot.name(rows[best])})"))
    names = len(shortages) > 1
    texts = [
        f"asks for {request}{f' {resource}' if names else ''}, {remainder}"
        for resource, request, remainder in shortages
    ]
    if (snapshot.pod_count[at] >= snapshot.allowed_pods[at]).all():
        pods_max = int(snapshot.allowed_pods[at].max())
        texts.append(f"takes {pods_max} pods at most ({snapshot.name(rows[int(snapshot.allowed_pods[at].argmax())])})")
    return "; ".join(texts)
