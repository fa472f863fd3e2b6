"""Estimator servers on loopback: podium's own, and ones with a fixed answer."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import grpc
import grpc.aio
from msgspec import convert

from podium.estimator.division.bindings import BindingSpec
from podium.estimator.member import MemberCluster
from podium.estimator.server.app import EstimatorApp
from podium.estimator.server.service import SERVICE
from podium.estimator.server.tls import TlsFiles
from tests.integration.estimator.server.conftest import QUIET, running

DEAD = "127.0.0.1:1"
SPEC = convert(
    {
        "resource": {"kind": "Deployment", "namespace": "shop", "name": "web"},
        "replicas": 9,
        "replicaRequirements": {
            "resourceRequest": {"cpu": "1000m"},
            "nodeClaim": {
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "spot", "operator": "Exists"}],
                "hardNodeAffinity": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["2"]}]}]
                },
            },
        },
    },
    BindingSpec,
)


def estimator(
    members: Mapping[str, MemberCluster], port: int = 0, tls: TlsFiles | None = None
) -> AbstractAsyncContextManager[str]:
    """podium's own server; yields its address."""
    return running(EstimatorApp(replace(QUIET, address=("127.0.0.1", port), tls=tls), still=members))


@asynccontextmanager
async def answering(
    answer: Callable[[bytes, Any], Awaitable[bytes]], credentials: grpc.ServerCredentials | None = None
) -> AsyncIterator[str]:
    """A server with one answer, and its address."""
    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(answer)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"MaxAvailableReplicas": handler}),))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


async def hang(content: bytes, context: Any) -> bytes:
    await anyio.sleep(3600)
    return b""


def reply(content: bytes) -> Callable[[bytes, Any], Awaitable[bytes]]:
    async def answer(request: bytes, context: Any) -> bytes:
        return content

    return answer


def open_channels() -> int:
    """Return how many channels of this process are not closed."""
    gc.collect()
    channels = [item for item in gc.get_objects() if isinstance(item, grpc.aio.Channel)]
    return sum(item.get_state() is not grpc.ChannelConnectivity.SHUTDOWN for item in channels)
