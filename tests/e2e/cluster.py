"""A cluster to test against: embedded or real, seen through an admin's client that is not podium's."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from podium.sandbox import Sandbox
from tests.control_plane.client import ApiError, Client
from tests.control_plane.servers import ControlPlane
from tests.e2e.waiting import eventually
from tests.patience import PATIENCE_S, pause_s

Json = dict[str, Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Cluster:
    """An API server, a kubeconfig for it, and what tests ask of it."""

    admin: Client
    kubeconfig: Path

    # ------------------------------------------------------------ writing

    async def create(self, *items: Json) -> list[Json]:
        """Posts nodes and pods, and returns them as the server stored them."""
        limiter = asyncio.Semaphore(_AT_ONCE)

        async def post(item: Json) -> Json:
            async with limiter:
                return await self.admin.create(NODES if item["kind"] == "Node" else PODS, item)

        return list(await asyncio.gather(*[post(item) for item in items]))

    async def patch_pod(self, name: str, patch: Json) -> Json:
        return await self.admin.patch(f"{PODS}/{name}", patch)

    async def patch_node(self, name: str, patch: Json) -> Json:
        return await self.admin.patch(f"{NODES}/{name}", patch)

    async def bind(self, name: str, node: str) -> None:
        """Binds a pod, as a scheduler does."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self.admin.create(f"{PODS}/{name}/binding", binding)

    async def delete_pod(self, name: str) -> None:
        await self.admin.delete(f"{PODS}/{name}")

    async def delete_node(self, name: str) -> None:
        await self.admin.delete(f"{NODES}/{name}")

    # ------------------------------------------------------------ reading

    async def pod(self, name: str) -> Json:
        return await self.admin.get(f"{PODS}/{name}")

    async def pods(self) -> dict[str, Json]:
        """All pods by name."""
        return {item["metadata"]["name"]: item for item in await self.admin.list(PODS)}

    async def placements(self) -> dict[str, str]:
        """The node of each bound pod."""
        pods = await self.pods()
        return {name: item["spec"]["nodeName"] for name, item in pods.items() if item["spec"].get("nodeName")}

    async def events(self, reason: str, **fields: str) -> list[Json]:
        """The Events with that reason, those about one pod with `name="web-1"`."""
        events = [event for event in await self.admin.list(EVENTS) if event["reason"] == reason]
        return [event for event in events if fields.items() <= event["regarding"].items()]

    async def events_by_pod(self, reason: str) -> Counter[str]:
        """Return the number of Events with that reason about each pod, repetitions counted."""
        counts: Counter[str] = Counter()
        for event in await self.events(reason):
            counts[event["regarding"]["name"]] += event.get("series", {}).get("count", 1)
        return counts

    # ------------------------------------------------------------ waiting

    async def wait_bound(self, names: Iterable[str], within_s: float = PATIENCE_S) -> dict[str, str]:
        """Until all these pods have nodes; returns the nodes of all bound pods. No more may be bound for `within_s`."""
        missing, placements = set(names), dict[str, str]()

        async def some_more() -> bool:
            nonlocal placements
            placements = await self.placements()
            unbound = missing - placements.keys()
            assert not unbound or len(unbound) < len(missing), f"{len(unbound)} not bound: {sorted(unbound)[:5]}"
            missing.intersection_update(unbound)
            return True

        while missing:
            asked_s = time.monotonic()
            await eventually(some_more, within_s)
            if missing:
                await anyio.sleep(pause_s(asked_s))
        return placements

    async def wait_condition(self, name: str, reason: str = "Unschedulable", within_s: float = PATIENCE_S) -> Json:
        """Until PodScheduled of the pod is False for that reason; returns the condition."""

        async def read_condition() -> Json:
            conditions = (await self.pod(name)).get("status", {}).get("conditions", ())
            conditions_of_reason = [
                condition
                for condition in conditions
                if condition["type"] == "PodScheduled" and condition.get("reason") == reason
            ]
            return conditions_of_reason[0] if conditions_of_reason else {}

        return await eventually(read_condition, within_s)

    async def wait_events(self, reason: str, count: int, within_s: float = PATIENCE_S) -> Counter[str]:
        """Until there are Events with that reason about so many pods; returns how many about each."""

        async def count_events() -> Counter[str]:
            counts = await self.events_by_pod(reason)
            assert len(counts) >= count, f"{reason} Events about {len(counts)} of {count} pods"
            return counts

        return await eventually(count_events, within_s)


@dataclass(frozen=True, slots=True)
class SandboxCluster(Cluster):
    """The embedded one, with its faults and its store."""

    sandbox: Sandbox

    def put(self, *items: Json) -> None:
        """Stores objects while the server may be unreachable."""
        for item in items:
            self.sandbox.store.create(item)


@dataclass(frozen=True, slots=True)
class RealCluster(Cluster):
    """The real one, with its processes."""

    plane: ControlPlane

    async def define(self, group: str, kind: str, scope: str = "Namespaced", version: str = "v1") -> str:
        """Have a kind served by a CustomResourceDefinition that takes anything. Returns the definition's path."""
        plural = f"{kind.lower()}s"
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        versions = [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
        names = {"kind": kind, "plural": plural}
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": scope, "names": names, "versions": versions},
        }
        await self.admin.create(DEFINITIONS, definition)

        async def is_served() -> bool:
            try:
                await self.admin.list(f"/apis/{group}/{version}/{plural}")
            except ApiError:
                return False
            return True

        await eventually(is_served)
        return f"{DEFINITIONS}/{plural}.{group}"


__all__ = ["ApiError", "Cluster", "RealCluster", "SandboxCluster"]
