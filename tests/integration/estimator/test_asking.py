"""Estimator servers that are asked by podium's own client over real gRPC."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import grpc
import grpc.aio
import pytest
from msgspec import convert

from podium.estimator.client.asking import ClientTls, ask_servers
from podium.estimator.division.bindings import BindingSpec
from podium.estimator.server.app import EstimatorApp
from podium.estimator.server.messages import replicas_response
from podium.estimator.server.service import SERVICE
from podium.server.serving import self_signed
from tests.builders import node
from tests.integration.estimator.server.conftest import QUIET
from tests.patience import PATIENCE_S
from tests.unit.cli.commands import write_objects
from tests.unit.cli.test_divide import DEPLOYMENT, POLICY, cluster_object
from tests.unit.estimator.members import member

pytestmark = pytest.mark.anyio

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


@asynccontextmanager
async def _server(
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


async def _hang(content: bytes, context: Any) -> bytes:
    await anyio.sleep(3600)
    return b""


def _reply(content: bytes) -> Callable[[bytes, Any], Awaitable[bytes]]:
    async def answer(request: bytes, context: Any) -> bytes:
        return content

    return answer


async def test_one_bad_member_never_spoils_the_rest(anyio_backend: object) -> None:
    async with AsyncExitStack() as stack:
        addresses = {
            "good": await stack.enter_async_context(_server(_reply(replicas_response(7)))),
            "full": await stack.enter_async_context(_server(_reply(replicas_response(0)))),
            "hangs": await stack.enter_async_context(_server(_hang)),
            "negative": await stack.enter_async_context(_server(_reply(replicas_response(-5)))),
            "garbage": await stack.enter_async_context(_server(_reply(b"\xff\xff"))),
            "dead": "127.0.0.1:1",
        }
        answers = await ask_servers(addresses, SPEC, None, 2.0)
    assert answers.replicas == {"good": 7, "full": 0, "hangs": -1, "negative": -1, "garbage": -1, "dead": -1}
    assert answers.errors.keys() == {"hangs", "negative", "garbage", "dead"}
    assert answers.errors["negative"] == "the answer cannot be read: -5 replicas"
    assert answers.errors["dead"].startswith("UNAVAILABLE")


async def test_requests_are_understood_by_the_server(anyio_backend: object) -> None:
    labels = {"disk": "ssd", "gen": "3"}
    nodes = [
        node("fits", cpu="4", labels=labels, taints=[{"key": "spot", "effect": "NoSchedule"}]),
        node("old", cpu="4", labels={**labels, "gen": "1"}),
        node("hdd", cpu="4", labels={"gen": "3"}),
    ]
    app = EstimatorApp(QUIET, still={"m1": member(*nodes)})
    async with anyio.create_task_group() as group:
        ports: list[int] = []
        start_event = anyio.Event()

        def note_port(port: int) -> None:
            ports.append(port)
            start_event.set()

        group.start_soon(app.run, note_port)
        with anyio.fail_after(PATIENCE_S):
            await start_event.wait()
        address = f"127.0.0.1:{ports[0]}"
        answers = await ask_servers({"m1": address, "m2": address}, SPEC, None, PATIENCE_S)
        sets = await ask_servers({"m1": address}, SPEC, None, PATIENCE_S, in_sets=True)
        app.stop()
    assert answers.replicas == {"m1": 4, "m2": -1}
    assert answers.errors["m2"].startswith("UNKNOWN: cluster name does not match")
    assert sets.replicas == {"m1": 2**31 - 1}


async def test_both_sides_prove_their_identity(anyio_backend: object) -> None:
    pair, stranger = self_signed(), self_signed()
    credentials = grpc.ssl_server_credentials([(pair.key, pair.certificate)], pair.certificate, True)
    async with _server(_reply(replicas_response(7)), credentials) as address:
        trusted = await ask_servers({"m": address}, SPEC, ClientTls(pair.certificate, pair.certificate, pair.key), 5.0)
        assert trusted.replicas == {"m": 7}
        for tls in (ClientTls(stranger.certificate), ClientTls(pair.certificate), None):
            answers = await ask_servers({"m": address}, SPEC, tls, 5.0)
            assert answers.replicas == {"m": -1}
            assert answers.errors["m"].startswith("UNAVAILABLE")


async def test_command_asks_servers_and_names_those_that_fail(anyio_backend: object, tmp_path: Path) -> None:
    binding = write_objects(tmp_path / "web.yaml", DEPLOYMENT, POLICY)
    clusters = write_objects(tmp_path / "clusters.yaml", *(cluster_object(name, "99") for name in ("a", "b", "c")))
    async with _server(_reply(replicas_response(2))) as address:
        command = [sys.executable, "-m", "podium", "divide", "-f", binding, "--clusters", clusters, "-o", "json"]
        options = ["--estimator", f"a={address}", "--estimator", "b=127.0.0.1:1"]
        result = await anyio.run_process([*map(str, command), *options])
    answer = json.loads(result.stdout)
    assert answer["estimated"]["scheduler-estimator"] == {"a": 2, "b": -1, "c": -1}
    assert answer["available"] == {"a": 2, "b": 99, "c": 99}
    assert b"warning: without the estimator server of b: UNAVAILABLE" in result.stderr
