"""A watched copy of some collections of an API server, and when it last changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import aiohttp

from tests.control_plane.client import ApiError, Client, Json

PODS, CLAIMS = "/api/v1/pods", "/api/v1/persistentvolumeclaims"
JOBS = "/apis/batch/v1/jobs"
WORKLOADS = (
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/daemonsets",
    "/api/v1/replicationcontrollers",
    JOBS,
)
WATCHED = (
    PODS,
    CLAIMS,
    *WORKLOADS,
    "/api/v1/persistentvolumes",
    "/api/v1/resourcequotas",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/resource.k8s.io/v1/resourceclaims",
)


class Mirror:
    """The objects of the collections, by UID.

    Attributes:
        changed_s: when a watch last reported something, by the monotonic clock.
        preempted: pods that the scheduler has chosen as victims, by UID, each as it was then.
    """

    def __init__(self, client: Client, collections: Sequence[str] = WATCHED) -> None:
        self._client = client
        self._items: dict[str, dict[str, Json]] = {collection: {} for collection in collections}
        self._changed = asyncio.Event()
        self.changed_s = time.monotonic()
        self.preempted: dict[str, Json] = {}

    def items(self, collection: str) -> list[Json]:
        """The objects as they are now."""
        return list(self._items[collection].values())

    async def wait_changed(self) -> None:
        """Return as soon as something has changed since the last call."""
        await self._changed.wait()
        self._changed.clear()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for collection in self._items:
                group.create_task(self._watch(collection))

    async def _watch(self, collection: str) -> None:
        while True:
            page = await self._client.get(collection)
            self._items[collection] = {item["metadata"]["uid"]: item for item in page["items"]}
            self._note_change()
            try:
                version = page["metadata"]["resourceVersion"]
                async for event in self._client.watch(collection, resourceVersion=version):
                    if event["type"] == "ERROR":
                        break
                    self._note(collection, event)
            except (TimeoutError, aiohttp.ClientError, ApiError):
                # A watch that was silent for a minute, or whose version is gone: list anew.
                continue

    def _note(self, collection: str, event: Json) -> None:
        item = event["object"]
        uid = item["metadata"]["uid"]
        if event["type"] == "DELETED":
            self._items[collection].pop(uid, None)
        else:
            self._items[collection][uid] = item
            if collection == PODS and _is_preempted(item):
                self.preempted[uid] = item
        self._note_change()

    def _note_change(self) -> None:
        self.changed_s = time.monotonic()
        self._changed.set()


def _is_preempted(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(condition.get("reason") == "PreemptionByScheduler" for condition in conditions)
