"""Who gets in: the endpoints over real HTTPS, with the sandbox's word on users and rights."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from podium.daemon.serving import CertificateError, DoorOptions, Health, ServingError, open_doors, self_signed, serve
from podium.kube.credentials import load
from podium.lib.clock import SystemClock
from podium.sandbox import Sandbox
from podium.telemetry import Metrics
from tests.integration.kube.certificates import Authority

pytestmark = pytest.mark.anyio

TOKEN = "sandbox-token"
PAIR = self_signed()
GUARDED = ("/metrics", "/configz", "/debug/queue", "/readyz/ping", "/nowhere")


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(token=TOKEN, kubelets=False) as running:
        yield running


@contextlib.asynccontextmanager
async def served(sandbox: Sandbox, tmp_path: Path, options: DoorOptions | None = None) -> AsyncIterator[int]:
    credentials = await load(str(sandbox.write_kubeconfig(tmp_path / "kubeconfig")), SystemClock())
    tls = PAIR.context()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with (
            open_doors(options or DoorOptions(), credentials, tls, SystemClock()) as doors,
            serve(
                "127.0.0.1", 0, tls, Health(), Metrics(), dict, middlewares=[doors.middleware], listener=listener
            ) as server,
        ):
            yield server.port


async def status(port: int, path: str, token: str | None = None, client: Any = None, method: str = "GET") -> int:
    tls = ssl.create_default_context(cadata=PAIR.certificate.decode())
    if client is not None:
        tls.load_cert_chain(*client)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session,
        session.request(method, f"https://127.0.0.1:{port}{path}", headers=headers) as answer,
    ):
        if answer.status in (401, 403):
            body = await answer.json()
            assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", answer.status)
        return answer.status


async def test_health_is_open_and_everything_else_is_for_those_with_rights(sandbox: Sandbox, tmp_path: Path) -> None:
    async with served(sandbox, tmp_path) as port:
        for path in ("/healthz", "/livez", "/readyz", "/readyz?verbose"):
            assert await status(port, path) == 200
        for path in GUARDED:
            assert await status(port, path) == 403
            assert await status(port, path, "wrong") == 401
        assert await status(port, "/metrics", method="DELETE") == 403
        assert [await status(port, path, TOKEN) for path in GUARDED] == [200, 200, 404, 200, 404]


async def test_health_answers_while_the_api_server_does_not(sandbox: Sandbox, tmp_path: Path) -> None:
    async with served(sandbox, tmp_path) as port:
        sandbox.faults.refuse_connections(60.0)
        assert await status(port, "/livez", TOKEN) == 200
        assert await status(port, "/metrics", TOKEN) == 401
        assert await status(port, "/metrics") == 500


async def test_a_client_certificate_of_the_given_authority_is_somebody(sandbox: Sandbox, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    options = DoorOptions(client_ca_file=str(authority.file))
    admin = authority.issue("admin", "system:masters")
    nobody = authority.issue("jane", "dev")
    async with served(sandbox, tmp_path, options) as port:
        assert await status(port, "/metrics", client=admin) == 200
        assert await status(port, "/metrics", client=nobody) == 403
        assert await status(port, "/metrics", TOKEN) == 200
        stranger = Authority(tmp_path, "other").issue("stranger", "system:masters")
        with pytest.raises(aiohttp.ClientError):
            await status(port, "/metrics", client=stranger)


async def test_a_lookup_that_must_not_fail_stops_the_start(sandbox: Sandbox, tmp_path: Path) -> None:
    strict = DoorOptions(authentication_tolerate_lookup_failure=False)
    with pytest.raises(ServingError, match="unable to load the authority of client certificates: 404"):
        async with served(sandbox, tmp_path, strict):
            pass
    skipping = DoorOptions(authentication_tolerate_lookup_failure=False, authentication_skip_lookup=True)
    async with served(sandbox, tmp_path, skipping) as port:
        assert await status(port, "/metrics", TOKEN) == 200


async def test_a_file_of_authorities_that_is_none_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path / "kubeconfig"):
        with pytest.raises(CertificateError, match=f"client authority {path}"):
            async with served(sandbox, tmp_path, DoorOptions(client_ca_file=str(path))):
                pass
