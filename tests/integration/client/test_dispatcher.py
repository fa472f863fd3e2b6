"""The dispatcher in front of a real session."""

from __future__ import annotations

import time

import anyio
import pytest

from podium.client.credentials import load
from podium.client.dispatcher import Dispatcher, Priority
from podium.client.session import ApiSession
from podium.lib.system_clock import SystemClock
from tests.integration.client.fault_server import FaultServer, status

pytestmark = pytest.mark.anyio


async def test_writes_that_were_refused_with_429_are_all_made_after_the_pause(server: FaultServer) -> None:
    clock = SystemClock()
    server.write_faults.extend([None] * 10 + [status(429, "TooManyRequests", retry_after="1")] * 5)
    credentials = await load(None, clock, master=f"http://127.0.0.1:{server.port}")
    start_s = time.monotonic()
    async with ApiSession(credentials) as session:
        dispatcher = Dispatcher(session, clock, in_flight_max=8)
        async with anyio.create_task_group() as group:
            for index in range(40):
                group.start_soon(dispatcher.send, Priority.BINDING, "POST", f"/pods/{index}/binding", b"{}")
    assert time.monotonic() - start_s >= 1.0
    assert len(server.requests) == 45
    assert {request.path for request in server.requests} == {f"/pods/{index}/binding" for index in range(40)}
    assert dispatcher.statistics().throttled_total == 5
