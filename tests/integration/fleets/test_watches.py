"""Pods that are kept without their uids, from an API server whose watches break off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random

import anyio
import pytest

from podium.client.credentials import load
from podium.client.informer_set import InformerSet
from podium.client.session import ApiSession
from podium.fleets.server.kinds import SHARED_PODS
from podium.lib.system_clock import SystemClock
from podium.objects.resource_types import PODS
from tests.integration.client.fault_server import FaultServer
from tests.integration.client.test_informer import QUICK, pod_item
from tests.integration.client.waiting import eventually

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server(anyio_backend: object) -> AsyncIterator[FaultServer]:
    fault_server = FaultServer(PODS.path, "Pod")
    listening = await fault_server.start()
    yield fault_server
    await fault_server.stop(listening)


async def test_a_watch_that_is_resumed_costs_two_reads_and_no_list(server: FaultServer) -> None:
    for name in ("a", "b", "c", "d"):
        server.put(pod_item(name, nodeName="n"))
    clock = SystemClock()
    credentials = await load(None, clock, master=f"http://127.0.0.1:{server.port}")
    async with ApiSession(credentials) as session, anyio.create_task_group() as group:
        informers = InformerSet(session, clock=clock, random=Random(0), settings=QUICK)
        pods = informers.informer(SHARED_PODS)
        group.start_soon(informers.run)
        await informers.wait_synced()
        await informers.wait_connected()
        server.drop_watches()
        await eventually(lambda: len(server.reads) == 2)
        server.put(pod_item("after"))
        await eventually(lambda: pods.get("default/after") is not None)
        assert {item.uid for item in pods.list()} == {"default/a", "default/b", "default/c", "default/d", "uid-after"}
        assert (len(server.reads), len(server.lists)) == (2, 1)
        group.cancel_scope.cancel()
