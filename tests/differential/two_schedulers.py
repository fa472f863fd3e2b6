"""One pod, two schedulers: each is asked in turn, from the same state of the same cluster."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import anyio

from tests.control_plane.client import Client

Json = dict[str, Any]

VERDICT_S_MAX = 20.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The node that a pod was bound to, or else what its condition PodScheduled says."""

    node: str = ""
    message: str = ""


def pods_path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"


def verdict(pod: Json) -> Verdict | None:
    """What has become of the pod; None while nobody has looked at it."""
    if node := pod["spec"].get("nodeName"):
        return Verdict(node=node)
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return Verdict(message=f"{condition['reason']}: {condition['message']}")
    return None


async def ask(admin: Client, scheduler: str, pod: Json) -> Verdict:
    """Posts the pod for that scheduler, and waits for what it makes of it. Raises: TimeoutError."""
    path = pods_path(pod)
    posted = await admin.create(path, {**pod, "spec": {**pod["spec"], "schedulerName": scheduler}})
    meta = posted["metadata"]
    changes = admin.watch(path, fieldSelector=f"metadata.name={meta['name']}", resourceVersion=meta["resourceVersion"])
    with anyio.fail_after(VERDICT_S_MAX):
        async with aclosing(changes):
            async for change in changes:
                if (answer := verdict(change["object"])) is not None:
                    return answer
    raise AssertionError(f"the watch of {meta['name']} ended")


async def take_away(admin: Client, pod: Json) -> None:
    """Deletes the pod. Watches tell of it before they tell of anything that is posted afterwards."""
    await admin.delete(f"{pods_path(pod)}/{pod['metadata']['name']}")
