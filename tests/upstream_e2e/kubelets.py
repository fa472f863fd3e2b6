"""Stand-in kubelets for the real API server: pods that are bound run, those of Jobs succeed, and deleted pods go.

A deleted pod goes when its `preStop` hook has slept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import aiohttp

from tests import manifests
from tests.control_plane.client import ApiError, Client

Json = dict[str, Any]

COUNT: Final = 4
"""The number of nodes."""
_PODS: Final = "/api/v1/pods"
_NODES: Final = "/api/v1/nodes"
_READY: Final = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


async def join(admin: Client) -> None:
    """Create the nodes of those kubelets, with what specs look for: a disk, an address, two zones, and system pods."""
    for index in range(COUNT):
        name = f"node-{index}"
        node = manifests.node(name, labels={"topology.kubernetes.io/zone": f"zone-{index % 2}"})
        node["status"]["addresses"] = [{"type": "InternalIP", "address": f"10.64.1.{index}"}]
        for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
            amounts["ephemeral-storage"] = "100Gi"
        await admin.create(_NODES, node)
        # The suite looks a minute for these three names on each node before many specs, and would go on without them.
        pod_name = f"kube-proxy-fluentd-elasticsearch-node-problem-detector-{index}"
        spec = {"nodeSelector": {manifests.HOSTNAME: name}, "priorityClassName": "system-node-critical"}
        pod = manifests.pod(pod_name, cpu="0", memory="0", scheduler=None, **spec)
        pod["metadata"]["namespace"] = "kube-system"
        await admin.create("/api/v1/namespaces/kube-system/pods", pod)


async def run(admin: Client) -> None:
    """Stand in for the kubelets of all nodes until cancelled."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_follow(admin, _NODES, _allocate))
        tasks.create_task(_follow(admin, _PODS, partial(_act, tasks)))


async def _follow(admin: Client, path: str, react: Callable[[Client, Iterable[Json]], Awaitable[None]]) -> None:
    while True:
        # A watch ends after a while, and so does one whose past has been forgotten.
        with suppress(ApiError, aiohttp.ClientError, TimeoutError):
            object_list = await admin.get(path)
            await react(admin, object_list["items"])
            async for event in admin.watch(path, resourceVersion=object_list["metadata"]["resourceVersion"]):
                if event["type"] in ("ADDED", "MODIFIED"):
                    await react(admin, [event["object"]])
        await asyncio.sleep(0.1)


async def _allocate(admin: Client, node_list: Iterable[Json]) -> None:
    """Let pods have what extended resources a node's capacity says, as kubelets do."""
    for node in node_list:
        amounts, allocatable = (
            {name: amount for name, amount in node["status"][field].items() if "/" in name}
            for field in ("capacity", "allocatable")
        )
        if amounts != allocatable:
            changes = dict.fromkeys(allocatable) | amounts
            path = f"{_NODES}/{node['metadata']['name']}/status"
            with suppress(ApiError):
                await admin.patch(path, {"status": {"allocatable": changes}})


async def _act(tasks: asyncio.TaskGroup, admin: Client, pods: Iterable[Json]) -> None:
    for pod in pods:
        metadata = pod["metadata"]
        if not pod["spec"].get("nodeName"):
            continue
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if "deletionTimestamp" in metadata:
            tasks.create_task(_end(admin, path, metadata["uid"], _stop_s(pod)))
        elif next_status := _next_status(pod):
            # The uid keeps a late reaction away from another pod that was created under the same name meanwhile.
            changes = {"metadata": {"uid": metadata["uid"]}, "status": next_status}
            with suppress(ApiError):
                await admin.patch(f"{path}/status", changes, kind="strategic")


def _stop_s(pod: Json) -> float:
    """Return how long the pod takes to end: as long as its `preStop` hook sleeps within the grace period."""
    hooks = [container.get("lifecycle", {}).get("preStop", {}) for container in pod["spec"]["containers"]]
    sleep_s = max(hook.get("sleep", {}).get("seconds", 0) for hook in hooks)
    return float(min(sleep_s, pod["metadata"]["deletionGracePeriodSeconds"]))


async def _end(admin: Client, path: str, uid: str, after_s: float) -> None:
    await asyncio.sleep(after_s)
    with suppress(ApiError):
        await admin.delete(path, uid=uid)


def _next_status(pod: Json) -> Json | None:
    phase = pod["status"].get("phase")
    if phase == "Pending":
        return _running(pod)
    return _finished_status(pod) if phase == "Running" and _ends_by_itself(pod) else None


def _ends_by_itself(pod: Json) -> bool:
    """Return whether the pod is a Job's, and not of the image without a command that pauses for ever."""
    is_of_job = any(owner["kind"] == "Job" for owner in pod["metadata"].get("ownerReferences", ()))
    return is_of_job and all("command" in container for container in pod["spec"]["containers"])


def _running(pod: Json) -> Json:
    creation_time = pod["metadata"]["creationTimestamp"]
    return {
        "phase": "Running",
        "startTime": creation_time,
        "podIP": "10.64.0.1",
        "podIPs": [{"ip": "10.64.0.1"}],
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": creation_time} for kind in _READY],
        "containerStatuses": _containers(pod, {"running": {"startedAt": creation_time}}, is_ready=True),
    }


def _finished_status(pod: Json) -> Json:
    creation_time = pod["metadata"]["creationTimestamp"]
    state = {
        "terminated": {"exitCode": 0, "reason": "Completed", "startedAt": creation_time, "finishedAt": creation_time}
    }
    conditions = [{"type": kind, "status": "False", "reason": "PodCompleted"} for kind in ("ContainersReady", "Ready")]
    statuses = _containers(pod, state, is_ready=False)
    return {"phase": "Succeeded", "conditions": conditions, "containerStatuses": statuses}


def _containers(pod: Json, state: Json, *, is_ready: bool) -> list[Json]:
    status_fields = {"imageID": "", "ready": is_ready, "started": is_ready, "restartCount": 0, "state": state}
    return [
        {"name": container["name"], "image": container["image"], **status_fields}
        for container in pod["spec"]["containers"]
    ]
