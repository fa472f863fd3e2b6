"""Connections to members that die, hang, return, present wrong certificates, and come and go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import grpc.aio
import pytest

from podium.estimator.client.asking import ServerAnswers, ask_members
from podium.estimator.client.channels import ClientTls, failure_of
from podium.estimator.client.connections import Connections, open_connections
from podium.estimator.server.messages import replicas_response
from podium.estimator.server.tls import TlsFiles
from tests.builders import node
from tests.control_plane.processes import free_ports
from tests.integration.client.certificates import Authority
from tests.integration.estimator.servers import DEAD, SPEC, answering, estimator, hang, open_channels, reply
from tests.patience import PATIENCE_S
from tests.unit.estimator.members import member

pytestmark = pytest.mark.anyio

FITS = {"m": member(node("n", cpu="4", labels={"disk": "ssd", "gen": "3"}))}
"""Four replicas of the workload fit."""


@pytest.fixture(autouse=True)
async def no_leak(anyio_backend: object) -> AsyncIterator[None]:
    count = open_channels()
    yield
    assert open_channels() == count


async def _ask_until(connections: Connections, is_right: Callable[[ServerAnswers], bool], *names: str) -> ServerAnswers:
    """Ask until the answers are right. Meanwhile every answer must be 4 or -1."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            answers = await ask_members(connections, names, SPEC, PATIENCE_S)
            assert set(answers.replicas.values()) <= {4, -1}
            if is_right(answers):
                return answers
            await anyio.sleep(0.02)


async def test_killed_member_is_connected_again_when_it_returns(anyio_backend: object) -> None:
    (port,) = free_ports(1)
    async with open_connections(None) as connections:
        for _ in range(3):
            async with estimator(FITS, port) as address:
                connections.follow({"m": [address]})
                await _ask_until(connections, lambda answers: answers.replicas == {"m": 4}, "m")
            answers = await _ask_until(connections, lambda answers: "dial" in answers.errors.get("m", ""), "m")
            assert answers.replicas == {"m": -1}


async def test_member_that_hangs_leaves_time_to_the_others(anyio_backend: object) -> None:
    async with AsyncExitStack() as stack:
        silent = await stack.enter_async_context(_silent_listener())
        hanging = await stack.enter_async_context(answering(hang))
        good = await stack.enter_async_context(estimator(FITS))
        connections = await stack.enter_async_context(open_connections(None))
        connections.follow({"silent": [silent], "hangs": [hanging], "m": [good], "dead": [DEAD]})
        await _ask_until(connections, lambda answers: answers.replicas == {"m": 4}, "m")
        answers = await ask_members(connections, ["silent", "hangs", "m", "dead", "unknown"], SPEC, 3.0)
    assert answers.replicas == {"silent": -1, "hangs": -1, "m": 4, "dead": -1, "unknown": -1}
    assert answers.errors.keys() == {"silent", "hangs", "dead", "unknown"}
    assert answers.errors["unknown"] == "cluster unknown does not exist in estimator cache"


async def test_member_without_an_answer_to_the_handshake_is_given_up(anyio_backend: object) -> None:
    async with _silent_listener() as silent, open_connections(None, dial_s=0.05) as connections:
        connections.follow({"m": [silent]})
        answers = await ask_members(connections, ["m"], SPEC, PATIENCE_S)
    assert answers.errors == {"m": f"dial {silent} error: no connection within 0.05 s"}


async def test_asking_for_the_reason_of_a_failure_can_be_cancelled(anyio_backend: object) -> None:
    async with _silent_listener() as silent, grpc.aio.insecure_channel(silent) as channel:
        with anyio.move_on_after(0.05) as scope:
            await failure_of(channel)
    assert scope.cancelled_caught


async def test_member_with_a_wrong_certificate_is_connected_once_it_has_the_right_one(
    anyio_backend: object, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    for name in ("right", "wrong"):
        (tmp_path / name).mkdir()
    right, wrong = Authority(tmp_path / "right"), Authority(tmp_path / "wrong")
    tls = ClientTls(right.file.read_bytes())
    async with open_connections(tls) as connections:
        for authority, replicas in ((wrong, -1), (right, 4)):
            files = TlsFiles(*map(str, authority.issue("server", ip="127.0.0.1")))
            async with estimator(FITS, port, files) as address:
                connections.follow({"m": [address]})
                answers = await _ask_until(connections, _answers(replicas), "m")
                assert bool(answers.errors) is (replicas == -1)


@pytest.mark.parametrize("names", [{"ip": "127.0.0.1"}, {"dns": "*.karmada-system.svc"}, {}], ids=str)
async def test_certificates_of_any_authority_and_name_are_trusted_without_verification(
    anyio_backend: object, tmp_path: Path, names: dict[str, str]
) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("client")
    files = TlsFiles(*map(str, authority.issue("server", **names)), client_ca=str(authority.file))
    async with (
        estimator(FITS, tls=files) as address,
        open_connections(ClientTls(None, certificate.read_bytes(), key.read_bytes())) as connections,
    ):
        connections.follow({"m": [address]})
        await _ask_until(connections, _answers(4), "m")


async def test_servers_without_tls_are_refused_without_verification_too(anyio_backend: object) -> None:
    async with estimator(FITS) as address, open_connections(ClientTls(None)) as connections:
        connections.follow({"m": [address], "dead": [DEAD], "no port": ["localhost"]})
        answers = await ask_members(connections, ["m", "dead", "no port"], SPEC, PATIENCE_S)
    assert set(answers.replicas.values()) == {-1}
    assert "dial localhost error: ValueError: " in answers.errors["no port"]
    assert all(text.startswith("dial ") for text in answers.errors.values())


async def test_member_that_is_removed_while_it_is_asked_spoils_no_other(anyio_backend: object) -> None:
    requests = anyio.Event()

    async def hang_once(content: bytes, context: Any) -> bytes:
        requests.set()
        return await hang(content, context)

    async with (
        answering(hang_once) as hanging,
        answering(reply(replicas_response(4))) as good,
        open_connections(None) as connections,
        anyio.create_task_group() as group,
    ):
        connections.follow({"gone": [hanging], "m": [good]})
        reports: list[ServerAnswers] = []

        async def ask() -> None:
            reports.append(await ask_members(connections, ["gone", "m"], SPEC, PATIENCE_S))

        group.start_soon(ask)
        with anyio.fail_after(PATIENCE_S):
            await requests.wait()
        connections.follow({"m": [good]})
    assert reports[0].replicas == {"gone": -1, "m": 4}
    assert reports[0].errors.keys() == {"gone"}


async def test_member_that_comes_and_goes_keeps_no_channel(anyio_backend: object) -> None:
    async with estimator(FITS) as address, open_connections(None) as connections:
        for turn in range(50):
            connections.follow({"m": [address]} if turn % 2 else {"m": [DEAD, address], "stays": [DEAD]})
            if turn % 5 == 0:
                await _ask_until(connections, _answers(4), "m")
        connections.follow({})
        await _settle()
        assert open_channels() == 0
        answers = await ask_members(connections, ["m"], SPEC, PATIENCE_S)
        assert answers.errors == {"m": "cluster m does not exist in estimator cache"}


async def test_member_whose_addresses_are_the_same_keeps_its_channel_and_shares_it(anyio_backend: object) -> None:
    async with estimator(FITS) as address, open_connections(None) as connections:
        connections.follow({"m": [address]})
        async with connections.channel("m") as channel:
            connections.follow({"m": [address], "other": [DEAD], "beside": [address]})
            for name in ("m", "beside"):
                async with connections.channel(name) as later:
                    assert later is channel


async def test_all_of_thousands_of_members_of_one_server_are_answered(anyio_backend: object) -> None:
    names = [f"m{number}" for number in range(2500)]
    async with answering(reply(replicas_response(4))) as address, open_connections(None) as connections:
        connections.follow({name: [address] for name in names})
        answers = await ask_members(connections, names, SPEC, PATIENCE_S)
    assert answers.replicas == dict.fromkeys(names, 4)


def _answers(replicas: int) -> Callable[[ServerAnswers], bool]:
    return lambda answers: answers.replicas == {"m": replicas}


async def _settle() -> None:
    """Wait until the closed channels are gone."""
    with anyio.fail_after(PATIENCE_S):
        while open_channels():  # noqa: ASYNC110 - a closed channel has no event
            await anyio.sleep(0.02)


@asynccontextmanager
async def _silent_listener() -> AsyncIterator[str]:
    """A port whose connections are never answered."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener:
        yield "127.0.0.1:{1}".format(*listener.extra(anyio.abc.SocketAttribute.local_address))
