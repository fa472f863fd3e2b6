"""A fleet's server in this process, asked over HTTP and gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anyio
import grpc.aio
import orjson

from podium.fleets.server.app import FleetApp, FleetOptions
from podium.fleets.server.messages import CLASSES, METHOD, SERVICE
from tests.patience import PATIENCE_S

QUIET = FleetOptions(("127.0.0.1", 0), ("127.0.0.1", 0), health_address=None, metrics_address=None)


class FleetAsker:
    """Asks as a launcher does."""

    def __init__(self, session: aiohttp.ClientSession, url: str, channel: grpc.aio.Channel) -> None:
        self.url = url
        self._session = session
        self._channel = channel

    async def fit(self, workload: Any, **options: Any) -> dict[str, Any]:
        status, answer = await self.post(orjson.dumps(workload), **options)
        assert status == 200, answer
        return answer

    async def post(self, content: bytes, **options: Any) -> tuple[int, dict[str, Any]]:
        query = {name: str(value) for name, value in options.items()}
        async with self._session.post(f"{self.url}/fit", data=content, params=query) as response:
            return response.status, orjson.loads(await response.read())

    async def clusters(self) -> Mapping[str, dict[str, Any]]:
        async with self._session.get(f"{self.url}/clusters") as response:
            return {cluster["cluster"]: cluster for cluster in orjson.loads(await response.read())["clusters"]}

    async def fit_by_grpc(self, workload: Any, timeout_s: float = PATIENCE_S, **fields: Any) -> Any:
        request = CLASSES["FitRequest"](workload=orjson.dumps(workload), **fields).SerializeToString()
        call = self._channel.unary_unary(f"/{SERVICE}/{METHOD}")
        return CLASSES["FitResponse"].FromString(await call(request, timeout=timeout_s))

    async def until(self, is_right: Callable[[Any], bool], ask: Callable[[], Awaitable[Any]]) -> Any:
        """Ask until the answer is right, and return it."""
        with anyio.fail_after(PATIENCE_S):
            while True:
                if is_right(answer := await ask()):
                    return answer
                await anyio.sleep(0.02)

    async def wait_for(
        self, workload: Any, *, best: str | None, without: set[str] = frozenset(), **options: Any
    ) -> Any:
        """Ask until the answer is of these clusters."""
        answer: dict[str, Any] = {}
        with anyio.move_on_after(PATIENCE_S):
            while answer.get("best", "") != best or set(answer["without"]) != without:
                answer = await self.fit(workload, **options)
                await anyio.sleep(0.02)
        assert (answer["best"], set(answer["without"])) == (best, without), answer
        return answer


@asynccontextmanager
async def serving(app: FleetApp) -> AsyncIterator[FleetAsker]:
    """The app while the context is open."""
    async with anyio.create_task_group() as group:
        ports: list[tuple[int, int]] = []
        ready = anyio.Event()

        def note_ports(http: int, grpc_port: int) -> None:
            ports.append((http, grpc_port))
            ready.set()

        group.start_soon(app.run, note_ports)
        with anyio.fail_after(PATIENCE_S):
            await ready.wait()
        ((http, grpc_port),) = ports
        async with (
            aiohttp.ClientSession() as session,
            grpc.aio.insecure_channel(f"127.0.0.1:{grpc_port}") as channel,
        ):
            yield FleetAsker(session, f"http://127.0.0.1:{http}", channel)
        app.stop()
