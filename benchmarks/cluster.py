"""Fills and empties the API server that schedulers are measured on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from benchmarks.nodes import Json, node
from benchmarks.pods import NAMESPACE
from benchmarks.workloads import Workload
from tests.control_plane.client import Client
from tests.control_plane.servers import ControlPlane

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODES = "/api/v1/nodes"
EVENTS = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"

_CONNECTIONS = 32


@asynccontextmanager
async def admin_of(plane: ControlPlane) -> AsyncIterator[Client]:
    """A client that may do anything."""
    async with Client(plane.url, token=plane.admin_token, tls=plane.ssl_context()) as client:
        yield client


async def create_nodes(plane: ControlPlane, count: int) -> None:
    """Nodes 0 to count - 1, ready at once: the API server keeps the status that a node is created with."""
    await _create(plane, NODES, count, node)


async def create_pods(plane: ControlPlane, workload: Workload, count: int) -> None:
    """Pods 0 to count - 1, waiting for their scheduler."""
    await _create(plane, PODS, count, workload.pod)


async def delete_pods(plane: ControlPlane) -> None:
    """Every pod, bound or not, and the Events about them."""
    async with admin_of(plane) as client:
        await client.delete(PODS)
        await client.delete(EVENTS)


async def count_events(plane: ControlPlane) -> int:
    """How many Event objects there are."""
    async with admin_of(plane) as client:
        page = await client.get(EVENTS, limit="1")
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))


async def _create(plane: ControlPlane, path: str, count: int, build: Callable[[int], Json]) -> None:
    numbers = iter(range(count))

    async def create_next(client: Client) -> None:
        for number in numbers:
            await client.create(path, build(number))

    async with admin_of(plane) as client, anyio.create_task_group() as tasks:
        for _ in range(_CONNECTIONS):
            tasks.start_soon(create_next, client)
