"""Who acts on the real cluster: users, operators, and the controller that binds volumes, which does not run there."""

from __future__ import annotations

import time
from random import Random
from typing import Any, Final

import aiohttp
import anyio

from benchmarks.pods import SCHEDULER_NAME
from tests.control_plane.client import ApiError, Client
from tests.manifests import HOSTNAME, pod

Json = dict[str, Any]

SCHEDULER: Final = SCHEDULER_NAME
_CORE, _STORAGE = "/api/v1", "/apis/storage.k8s.io/v1"
_PODS = f"{_CORE}/namespaces/default/pods"
_CLAIMS = f"{_CORE}/namespaces/default/persistentvolumeclaims"
_VOLUMES = f"{_CORE}/persistentvolumes"
_HIGH: Final = "high"
_ROUND_S: Final = 1.0
_FULL: Final = 1.1
"""So many times the pods that the nodes have room for are there at most: some must wait, or preempt."""
_PODS_PER_NODE: Final = 3


class Actors:
    """They create so many pods in all, evenly over the time, and delete as many as do not fit any more.

    Attributes:
        created, deleted: how many pods.
        refused: how many requests failed, as when the API server restarts.
    """

    def __init__(self, admin: Client, random: Random, nodes: int) -> None:
        self._admin, self._random, self._nodes = admin, random, nodes
        self._present: list[str] = []
        self.created = self.deleted = self.refused = 0

    async def furnish(self) -> None:
        """What is there at the start."""
        await self._admin.create(
            "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": _HIGH}, "value": 1000}
        )
        await self._admin.create(
            f"{_STORAGE}/storageclasses",
            {
                "metadata": {"name": "local"},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        )

    async def run(self, pods: int, seconds: float) -> None:
        """Act for that long."""
        began_s = time.monotonic()
        while (passed_s := time.monotonic() - began_s) < seconds:
            due = int(pods * passed_s / seconds) - self.created
            for _ in range(due):
                await self._attempt(self._create())
            surplus = len(self._present) - int(self._nodes * _PODS_PER_NODE * _FULL)
            for _ in range(max(surplus, due // 4)):
                await self._attempt(self._delete())
            await self._attempt(self._cordon())
            await self._attempt(self._bind_claims())
            await anyio.sleep(_ROUND_S)

    async def _attempt(self, action: Any) -> None:
        try:
            await action
        except (ApiError, aiohttp.ClientError, TimeoutError):
            self.refused += 1

    async def _create(self) -> None:
        self.created += 1
        name, kind = f"pod-{self.created:06}", self._random.random()
        more: Json = {"terminationGracePeriodSeconds": 0}
        labels = {"app": self._random.choice("abc")}
        if kind < 0.1:
            more["priorityClassName"] = _HIGH
        elif kind < 0.2:
            labels["pair"] = "yes"
        elif kind < 0.3:
            more["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
            await self._create_volume(name)
        await self._admin.create(
            _PODS, pod(name, self._random.choice(("1", "1500m", "500m")), labels=labels, scheduler=SCHEDULER, **more)
        )
        self._present.append(name)

    async def _create_volume(self, name: str) -> None:
        on = f"node-{self._random.randrange(self._nodes):05}"
        here = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [on]}]}
        common = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
        volume = {
            **common,
            "capacity": {"storage": "1Gi"},
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}},
        }
        await self._admin.create(_VOLUMES, {"metadata": {"name": name}, "spec": volume})
        # As the volume controller says once it has seen the volume; before, nobody may bind it.
        await self._admin.patch(f"{_VOLUMES}/{name}/status", {"status": {"phase": "Available"}})
        claim = {**common, "resources": {"requests": {"storage": "1Gi"}}}
        await self._admin.create(_CLAIMS, {"metadata": {"name": name}, "spec": claim})

    async def _delete(self) -> None:
        if self._present:
            name = self._present.pop(self._random.randrange(len(self._present)))
            await self._admin.delete(f"{_PODS}/{name}")
            self.deleted += 1

    async def _cordon(self) -> None:
        name = f"node-{self._random.randrange(self._nodes):05}"
        await self._admin.patch(f"{_CORE}/nodes/{name}", {"spec": {"unschedulable": self._random.random() < 0.3}})

    async def _bind_claims(self) -> None:
        """As the volume controller does for volumes that the scheduler has kept for a claim."""
        for volume in await self._admin.list(_VOLUMES):
            kept_for = volume["spec"].get("claimRef", {}).get("name")
            if kept_for is None or volume.get("status", {}).get("phase") == "Bound":
                continue
            annotations = {"pv.kubernetes.io/bind-completed": "yes"}
            bound = {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume["metadata"]["name"]}}
            await self._admin.patch(f"{_CLAIMS}/{kept_for}", bound)
            await self._admin.patch(f"{_CLAIMS}/{kept_for}/status", {"status": {"phase": "Bound"}})
            await self._admin.patch(f"{_VOLUMES}/{volume['metadata']['name']}/status", {"status": {"phase": "Bound"}})
