"""Priority classes, pods that can be victims, and pods that can have some."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.control_plane.client import ApiError, Client
from tests.e2e.cluster import PODS, Cluster, Json
from tests.e2e.waiting import eventually
from tests.manifests import pod

PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PRIORITIES = {"low": 5, "middle": 50, "high": 1000}


async def create_priorities(cluster: Cluster, **fields: Any) -> None:
    """Creates the priority classes; the fields are for "high"."""
    for name, value in PRIORITIES.items():
        await create_priority_class(cluster.admin, name, value, **(fields if name == "high" else {}))


async def create_priority_class(admin: Client, name: str, value: int, **fields: Any) -> None:
    """Creates a class, and waits until pods can have it.

    The API server fills in priorities from a cache of its own, which may not know yet what was created just now, or may
    still know a class of that name from before.
    """
    priority_class = await admin.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value, **fields})
    expected_fields = (priority_class["value"], priority_class["preemptionPolicy"])

    async def is_given() -> bool:
        try:
            dry_run_pod = await admin.request(
                "POST", PODS, pod(f"tries-{name}", priorityClassName=name), params={"dryRun": "All"}
            )
        except ApiError as error:
            raise AssertionError(str(error)) from error
        return (dry_run_pod["spec"]["priority"], dry_run_pod["spec"]["preemptionPolicy"]) == expected_fields

    await eventually(is_given)


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
