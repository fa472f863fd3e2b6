"""Stand-in kubelets for the real API server: pods that are bound run, those of Jobs succeed, and deleted pods go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import aiohttp

from tests.control_plane.client import ApiError, Client

Json = dict[str, Any]

_PODS: Final = "/api/v1/pods"
_READY: Final = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


async def run(admin: Client) -> None:
    """Stand in for the kubelets of all nodes until cancelled."""
    while True:
        # A watch ends after a while, and so does one whose past has been forgotten.
        with suppress(ApiError, aiohttp.ClientError, TimeoutError):
            pod_list = await admin.get(_PODS)
            await _act(admin, pod_list["items"])
            async for event in admin.watch(_PODS, resourceVersion=pod_list["metadata"]["resourceVersion"]):
                if event["type"] in ("ADDED", "MODIFIED"):
                    await _act(admin, [event["object"]])
        await asyncio.sleep(0.1)


async def _act(admin: Client, pods: Iterable[Json]) -> None:
    for pod in pods:
        metadata, status = pod["metadata"], pod["status"]
        if not pod["spec"].get("nodeName"):
            continue
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        with suppress(ApiError):
            if "deletionTimestamp" in metadata:
                await admin.delete(path)
            elif status.get("phase") == "Pending":
                await admin.patch(f"{path}/status", {"status": _running(pod)}, kind="strategic")
            elif status.get("phase") == "Running" and _is_of_job(pod):
                await admin.patch(f"{path}/status", {"status": _finished_status(pod)}, kind="strategic")


def _is_of_job(pod: Json) -> bool:
    return any(owner["kind"] == "Job" for owner in pod["metadata"].get("ownerReferences", ()))


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
