"""Pods that can be victims, and pods that can have some."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.e2e.cluster import Cluster, Json
from tests.e2e.objects import pod

PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PRIORITIES = {"low": 5, "middle": 50, "high": 1000}


async def create_priorities(cluster: Cluster, **fields: Any) -> None:
    """Creates the priority classes; the fields are for "high"."""
    for name, value in PRIORITIES.items():
        body = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        await cluster.admin.create(PRIORITY_CLASSES, body | (fields if name == "high" else {}))


def running(name: str, on: str, *, cpu: str = "4", priority: str = "low", grace_s: int = 0, **labels: str) -> Json:
    """A pod that is bound already. Without grace it is gone as soon as it is deleted, as no kubelet has to agree."""
    item = pod(name, cpu=cpu, nodeName=on, priorityClassName=priority, terminationGracePeriodSeconds=grace_s)
    item["metadata"]["labels"] = labels
    return item


def high(name: str, cpu: str = "4") -> Json:
    """A pod that may preempt all others."""
    return pod(name, cpu=cpu, priorityClassName="high")


async def missing(cluster: Cluster, names: Iterable[str]) -> set[str]:
    """Which of these pods are gone."""
    return set(names) - (await cluster.pods()).keys()
