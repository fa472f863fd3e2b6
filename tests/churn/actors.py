"""Who acts on the real cluster: users, operators, and the controllers of volumes, which do not run there.

The cluster is an ordinary one: nearly full, a few nodes under maintenance, and a disk on every second node, which is
used again. If volumes were left on full nodes, most attempts would be at the few hundred pods that wait for them.
"""

from __future__ import annotations

import time
from collections import deque
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
_FULL: Final = 0.92
"""The share of all CPU that pods request at most. Some nodes are cordoned, so a few pods must wait, or preempt."""
_CPU_PER_NODE: Final = 4
"""A pod requests one on average."""
_CORDONED_MAX: Final = 30
_NODES_PER_DISK: Final = 2
_DISK: Final[Json] = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
"""What volumes and claims have in common."""


class Actors:
    """They create so many pods in all, evenly over the time, and delete as many as do not fit any more.

    Attributes:
        created, deleted: how many pods.
        refused: how many requests failed, as when the API server restarts.
    """

    def __init__(self, admin: Client, random: Random, nodes: int) -> None:
        self._admin, self._random, self._nodes = admin, random, nodes
        self._present: list[str] = []
        self._claims: set[str] = set()
        self._cordoned: deque[str] = deque()
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
        for number in range(0, self._nodes, _NODES_PER_DISK):
            await self._create_volume(f"node-{number:05}")

    async def run(self, pods: int, seconds: float) -> None:
        """Act for that long."""
        began_s = time.monotonic()
        while (passed_s := time.monotonic() - began_s) < seconds:
            due = int(pods * passed_s / seconds) - self.created
            for _ in range(due):
                await self._attempt(self._create())
            surplus = len(self._present) - int(self._nodes * _CPU_PER_NODE * _FULL)
            for _ in range(max(surplus, due // 4)):
                await self._attempt(self._delete())
            await self._attempt(self._cordon())
            await self._attempt(self._tend_volumes())
            await anyio.sleep(_ROUND_S)

    async def _attempt(self, action: Any) -> None:
        try:
            await action
        except (ApiError, aiohttp.ClientError, TimeoutError):
            self.refused += 1

    async def _create(self) -> None:
        self.created += 1
        name, kind = f"pod-{self.created:06}", self._random.random()
        spec: Json = {"terminationGracePeriodSeconds": 0}
        labels = {"app": self._random.choice("abc")}
        if kind < 0.1:
            spec["priorityClassName"] = _HIGH
        elif kind < 0.2:
            labels["pair"] = "yes"
        elif kind < 0.3:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
            await self._create_claim(name)
        await self._admin.create(
            _PODS, pod(name, self._random.choice(("1", "1500m", "500m")), labels=labels, scheduler=SCHEDULER, **spec)
        )
        self._present.append(name)

    async def _create_volume(self, on: str) -> None:
        node_term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [on]}]}
        volume = {
            **_DISK,
            "capacity": {"storage": "1Gi"},
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [node_term]}},
        }
        await self._admin.create(_VOLUMES, {"metadata": {"name": f"disk-of-{on}"}, "spec": volume})
        # As the volume controller says once it has seen the volume; before, nobody may bind it.
        await self._admin.patch(f"{_VOLUMES}/disk-of-{on}/status", {"status": {"phase": "Available"}})

    async def _create_claim(self, name: str) -> None:
        claim = {**_DISK, "resources": {"requests": {"storage": "1Gi"}}}
        await self._admin.create(_CLAIMS, {"metadata": {"name": name}, "spec": claim})
        self._claims.add(name)

    async def _delete(self) -> None:
        if not self._present:
            return
        name = self._present.pop(self._random.randrange(len(self._present)))
        self.deleted += 1
        await self._attempt(self._admin.delete(f"{_PODS}/{name}"))
        if name in self._claims:
            self._claims.remove(name)
            # As its controller does once no pod uses the claim.
            await self._admin.patch(f"{_CLAIMS}/{name}", {"metadata": {"finalizers": None}})
            await self._admin.delete(f"{_CLAIMS}/{name}")

    async def _cordon(self) -> None:
        """Begin the maintenance of a node, and end the longest one if there are too many."""
        name = f"node-{self._random.randrange(self._nodes):05}"
        self._cordoned.append(name)
        await self._admin.patch(f"{_CORE}/nodes/{name}", {"spec": {"unschedulable": True}})
        if len(self._cordoned) > _CORDONED_MAX:
            await self._admin.patch(f"{_CORE}/nodes/{self._cordoned.popleft()}", {"spec": {"unschedulable": None}})

    async def _tend_volumes(self) -> None:
        """As the controllers do for volumes: bind claims that the scheduler has chosen one for, and clean used ones."""
        for volume in await self._admin.list(_VOLUMES):
            name, kept_for = volume["metadata"]["name"], volume["spec"].get("claimRef", {}).get("name")
            if kept_for is None:
                continue
            if kept_for not in self._claims:
                await self._admin.patch(f"{_VOLUMES}/{name}", {"spec": {"claimRef": None}})
                await self._admin.patch(f"{_VOLUMES}/{name}/status", {"status": {"phase": "Available"}})
            elif volume.get("status", {}).get("phase") != "Bound":
                annotations = {"pv.kubernetes.io/bind-completed": "yes"}
                binding = {"metadata": {"annotations": annotations}, "spec": {"volumeName": name}}
                await self._admin.patch(f"{_CLAIMS}/{kept_for}", binding)
                await self._admin.patch(f"{_CLAIMS}/{kept_for}/status", {"status": {"phase": "Bound"}})
                await self._admin.patch(f"{_VOLUMES}/{name}/status", {"status": {"phase": "Bound"}})
