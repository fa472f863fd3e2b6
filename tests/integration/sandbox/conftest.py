"""A sandbox of each test's own, and a plain HTTP client for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import count

import aiohttp
import orjson
import pytest

from podium.sandbox import Sandbox
from podium.sandbox.controllers.daemon_nodes import target_node
from podium.sandbox.fill import varied_nodes
from podium.sandbox.pods import bind
from tests.integration.sandbox.kubectl import Kubectl
from tests.patience import PATIENCE_S

TYPES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


class WatchReader:
    """The events of one watch, one at a time."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self):
        """The next event, or None when the watch has ended."""
        async with asyncio.timeout(PATIENCE_S):
            line = await self.response.content.readline()
        return orjson.loads(line) if line else None

    async def next_names(self, count):
        """Type and object name of the next `count` events."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


class Rest:
    """JSON in, (status, JSON) out."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session
        self._watched: list[aiohttp.ClientResponse] = []

    def close(self):
        """Leave the watches that a test has opened."""
        for response in self._watched:
            response.close()

    async def call(self, method, path, body=None, *, content_type="application/json", **headers):
        data = None if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers["Content-Type"] = content_type
        async with self.session.request(method, path, data=data, headers=headers) as response:
            text = await response.read()
            if "json" not in response.content_type:
                return response.status, text
            return response.status, orjson.loads(text)

    async def get(self, path, **headers):
        return await self.call("GET", path, **headers)

    async def post(self, path, body):
        return await self.call("POST", path, body)

    async def put(self, path, body):
        return await self.call("PUT", path, body)

    async def delete(self, path, body=None):
        return await self.call("DELETE", path, body)

    async def patch(self, path, body, how="merge"):
        return await self.call("PATCH", path, body, content_type=TYPES[how])

    async def watch(self, path):
        response = await self.session.get(path)
        assert response.status == 200, await response.text()
        self._watched.append(response)
        return WatchReader(response)


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(kubelets=False, bookmark_interval_s=0.05) as running:
        yield running


@pytest.fixture
async def rest_api(sandbox: Sandbox) -> AsyncIterator[Rest]:
    async with aiohttp.ClientSession(sandbox.url) as session:
        client = Rest(session)
        yield client
        client.close()


@pytest.fixture
async def cluster(tmp_path) -> AsyncIterator[Sandbox]:
    async with Sandbox(kubelet_delay_s=0.01, job_s=0.01, controllers=True) as sandbox:
        for node in varied_nodes(2):
            sandbox.store.create(node)
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        yield sandbox


@pytest.fixture
def kubectl(control_plane_binaries, cluster, tmp_path) -> Kubectl:
    return Kubectl(control_plane_binaries["kubectl"], tmp_path)


@pytest.fixture
async def scheduled_cluster(cluster: Sandbox) -> AsyncIterator[Sandbox]:
    """The cluster with a scheduler: whatever is pending goes to nodes that are not cordoned, in turn."""

    async def schedule() -> None:
        for turn in count():
            await asyncio.sleep(0.005)
            nodes = [node for node in cluster.store.list("nodes") if not node["spec"].get("unschedulable")]
            pending = cluster.store.list("pods", field_selector="spec.nodeName=")
            for pod in pending if nodes else ():
                # A daemon is meant for one node, cordoned or not.
                target = {"name": target_node(pod) or nodes[turn % len(nodes)]["metadata"]["name"]}
                bind(cluster.store, pod["metadata"]["namespace"], pod["metadata"]["name"], {"target": target})

    scheduling = asyncio.create_task(schedule())
    yield cluster
    scheduling.cancel()
    with suppress(asyncio.CancelledError):
        await scheduling
