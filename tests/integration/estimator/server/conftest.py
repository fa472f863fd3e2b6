"""An estimator server in this process, asked over real gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import grpc
import grpc.aio
import pytest

from podium.estimator.server.app import EstimatorApp, Options
from podium.estimator.server.messages import CLASSES
from podium.estimator.server.service import SERVICE
from tests.patience import PATIENCE_S
from tests.unit.estimator.server.wire import replicas_request, sets_request, unschedulable_request

QUIET = Options(("127.0.0.1", 0), health_address=None, metrics_address=None)


class Asker:
    """Asks as Karmada's client does."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def replicas(
        self, cluster: str, requirements: Any = None, era: str = "bytes", of: str = "kind=Deployment, name=a/b"
    ) -> int:
        content = replicas_request(cluster, requirements, era)
        return int((await self.ask("MaxAvailableReplicas", content, of=of)).maxReplicas)

    async def sets(self, cluster: str, components: Any, era: str = "bytes") -> int:
        content = sets_request(cluster, components, era)
        return int((await self.ask("MaxAvailableComponentSets", content)).maxSets)

    async def unschedulable(self, cluster: str, workload: Any, threshold_s: float) -> int:
        content = unschedulable_request(cluster, workload, threshold_s)
        return int((await self.ask("GetUnschedulableReplicas", content)).unschedulableReplicas)

    async def ask(
        self, question: str, content: bytes, deadline_s: float = PATIENCE_S, of: str = "kind=Deployment, name=a/b"
    ) -> Any:
        call = self._channel.unary_unary(f"/{SERVICE}/{question}")
        answer = await call(content, timeout=deadline_s, metadata=(("object", of),))
        name = f"{question.removeprefix('Get')}Response"
        return CLASSES[name].FromString(answer)


@asynccontextmanager
async def serving(app: EstimatorApp) -> AsyncIterator[Asker]:
    """The app while the context is open."""
    async with running(app) as address, grpc.aio.insecure_channel(address) as channel:
        yield Asker(channel)


@asynccontextmanager
async def running(app: EstimatorApp) -> AsyncIterator[str]:
    """The address of the app while the context is open."""
    async with anyio.create_task_group() as group:
        ports: list[int] = []
        ready = anyio.Event()

        def note_port(port: int) -> None:
            ports.append(port)
            ready.set()

        group.start_soon(app.run, note_port)
        with anyio.fail_after(PATIENCE_S):
            await ready.wait()
        yield f"127.0.0.1:{ports[0]}"
        app.stop()


async def refusal(ask: Callable[[], Awaitable[Any]]) -> tuple[grpc.StatusCode, str]:
    """The status and text of a question that is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await ask()
    return error.value.code(), error.value.details() or ""


__all__ = ["QUIET", "Asker", "refusal", "replace", "running", "serving"]
