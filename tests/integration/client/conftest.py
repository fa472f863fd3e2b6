from collections.abc import AsyncIterator

import pytest

from podium.objects.resource_types import PODS
from tests.integration.client.fault_server import FaultServer


@pytest.fixture(
    params=[("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"]
)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.fixture
async def server(anyio_backend: object) -> AsyncIterator[FaultServer]:
    fault_server = FaultServer(PODS.path, "Pod")
    listening = await fault_server.start()
    yield fault_server
    await fault_server.stop(listening)
