"""Estimator servers that are asked by podium's own client over real gRPC."""

from __future__ import annotations

import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import grpc
import grpc.aio
import pytest

from podium.estimator.client.asking import ask_servers
from podium.estimator.client.channels import ClientTls
from podium.estimator.server.messages import replicas_response
from podium.estimator.server.tls import TlsFiles
from podium.server.serving import self_signed
from tests.builders import node
from tests.integration.client.certificates import Authority
from tests.integration.estimator.servers import DEAD, SPEC, answering, estimator, hang, reply
from tests.patience import PATIENCE_S
from tests.unit.cli.commands import write_objects
from tests.unit.cli.test_divide import DEPLOYMENT, POLICY, cluster_object
from tests.unit.estimator.members import member

pytestmark = pytest.mark.anyio


async def test_one_bad_member_never_spoils_the_rest(anyio_backend: object) -> None:
    async with AsyncExitStack() as stack:
        addresses = {
            "good": [DEAD, await stack.enter_async_context(answering(reply(replicas_response(7))))],
            "full": [await stack.enter_async_context(answering(reply(replicas_response(0))))],
            "hangs": [await stack.enter_async_context(answering(hang))],
            "negative": [await stack.enter_async_context(answering(reply(replicas_response(-5))))],
            "garbage": [await stack.enter_async_context(answering(reply(b"\xff\xff")))],
            "dead": [DEAD],
        }
        answers = await ask_servers(addresses, SPEC, None, 2.0)
    assert answers.replicas == {"good": 7, "full": 0, "hangs": -1, "negative": -1, "garbage": -1, "dead": -1}
    assert answers.errors.keys() == {"hangs", "negative", "garbage", "dead"}
    assert answers.errors["hangs"] == "no answer within 2 s"
    assert answers.errors["negative"] == "the answer cannot be read: -5 replicas"
    assert answers.errors["dead"].startswith(f"dial {DEAD} error: UNAVAILABLE: ")


async def test_requests_are_understood_by_the_server(anyio_backend: object) -> None:
    labels = {"disk": "ssd", "gen": "3"}
    nodes = [
        node("fits", cpu="4", labels=labels, taints=[{"key": "spot", "effect": "NoSchedule"}]),
        node("old", cpu="4", labels={**labels, "gen": "1"}),
        node("hdd", cpu="4", labels={"gen": "3"}),
    ]
    async with estimator({"m1": member(*nodes)}) as address:
        answers = await ask_servers({"m1": [address], "m2": [address]}, SPEC, None, PATIENCE_S)
        sets = await ask_servers({"m1": [address]}, SPEC, None, PATIENCE_S, in_sets=True)
    assert answers.replicas == {"m1": 4, "m2": -1}
    assert answers.errors["m2"].startswith("UNKNOWN: cluster name does not match")
    assert sets.replicas == {"m1": 2**31 - 1}


async def test_both_sides_prove_their_identity(anyio_backend: object) -> None:
    pair, stranger = self_signed(), self_signed()
    credentials = grpc.ssl_server_credentials([(pair.key, pair.certificate)], pair.certificate, True)
    async with answering(reply(replicas_response(7)), credentials) as address:
        trusted = await ask_servers(
            {"m": [address]}, SPEC, ClientTls(pair.certificate, pair.certificate, pair.key), 5.0
        )
        assert trusted.replicas == {"m": 7}
        for tls in (ClientTls(stranger.certificate), ClientTls(pair.certificate), None):
            answers = await ask_servers({"m": [address]}, SPEC, tls, 5.0)
            assert answers.replicas == {"m": -1}
            assert answers.errors["m"].startswith(f"dial {address} error: UNAVAILABLE: ")


async def test_command_asks_servers_and_names_those_that_fail(anyio_backend: object, tmp_path: Path) -> None:
    binding = write_objects(tmp_path / "web.yaml", DEPLOYMENT, POLICY)
    clusters = write_objects(tmp_path / "clusters.yaml", *(cluster_object(name, "99") for name in ("a", "b", "c")))
    async with answering(reply(replicas_response(2))) as address:
        command = [sys.executable, "-m", "podium", "divide", "-f", binding, "--clusters", clusters, "-o", "json"]
        options = ["--estimator", f"a={address}", "--estimator", "b=127.0.0.1:1"]
        result = await anyio.run_process([*map(str, command), *options])
    answer = json.loads(result.stdout)
    assert answer["estimated"]["scheduler-estimator"] == {"a": 2, "b": -1, "c": -1}
    assert answer["available"] == {"a": 2, "b": 99, "c": 99}
    assert b"warning: without the estimator server of b: dial 127.0.0.1:1 error: UNAVAILABLE" in result.stderr


async def test_command_finds_servers_by_their_services(anyio_backend: object, tmp_path: Path) -> None:
    binding = write_objects(tmp_path / "web.yaml", DEPLOYMENT, POLICY)
    pulling = cluster_object("pulls", "99")
    pulling["spec"]["syncMode"] = "Pull"
    clusters = [*(cluster_object(name, "99") for name in ("a", "b", "given")), pulling]
    files = TlsFiles(*map(str, Authority(tmp_path).issue("server", dns="estimator.example")))
    async with estimator({"a": member(node("n", cpu="2"))}, tls=files) as address:
        port = int(address.rpartition(":")[2])
        objects = write_objects(
            tmp_path / "karmada.yaml",
            *clusters,
            _service("est-a", {"type": "ExternalName", "externalName": "localhost"}, port),
            _service("est-b", {"type": "ClusterIP"}, port),
        )
        command = [sys.executable, "-m", "podium", "divide", "-f", binding, "--clusters", objects, "-o", "json"]
        options = ["--enable-scheduler-estimator", "--disable-scheduler-estimator-in-pull-mode"]
        options += ["--insecure-skip-estimator-verify", "--scheduler-estimator-port=7000", "--available=given=5"]
        options += ["--scheduler-estimator-service-prefix=est", "--scheduler-estimator-service-namespace=fleet"]
        options += [f"--scheduler-estimator-timeout={PATIENCE_S:g}s"]
        result = await anyio.run_process([*map(str, command), *options])
    answer = json.loads(result.stdout)
    assert answer["estimated"]["scheduler-estimator"] == {"a": 2, "b": -1, "given": 5, "pulls": -1}
    assert result.stderr.splitlines() == [
        b'warning: without the estimator server of b: unsupported service type "ClusterIP"'
    ]


def _service(name: str, spec: dict[str, Any], target_port: int) -> dict[str, Any]:
    ports = [{"port": 7000, "targetPort": target_port}]
    metadata = {"namespace": "fleet", "name": name}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {**spec, "ports": ports}}
