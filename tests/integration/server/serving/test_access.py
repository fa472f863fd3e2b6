"""Who gets in: the endpoints over real HTTPS, with the sandbox's word on users and rights."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
from structlog.testing import capture_logs

from podium.client.credentials import load
from podium.lib.system_clock import SystemClock
from podium.sandbox import Sandbox
from podium.server.access_options import AccessOptions
from podium.server.serving import (
    CertificateError,
    Health,
    ServingError,
    ServingTls,
    open_access,
    self_signed,
    serve,
    serving_tls,
)
from podium.server.serving import tls as tls_module
from podium.telemetry import Metrics
from tests.e2e.waiting import eventually
from tests.integration.client.certificates import Authority

pytestmark = pytest.mark.anyio

TOKEN = "sandbox-token"
PAIR = self_signed()
GUARDED = ("/metrics", "/configz", "/debug/queue", "/readyz/ping", "/nowhere")


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(token=TOKEN, kubelets=False) as running:
        yield running


@contextlib.asynccontextmanager
async def serve_pages(
    sandbox: Sandbox, tmp_path: Path, options: AccessOptions | None = None, tls: ServingTls | None = None
) -> AsyncIterator[int]:
    credentials = await load(str(sandbox.write_kubeconfig(tmp_path / "kubeconfig")), SystemClock())
    tls = tls or ServingTls(PAIR)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with (
            open_access(options or AccessOptions(), credentials, tls, SystemClock()) as access,
            serve(
                "127.0.0.1", 0, tls, Health(), Metrics(), dict, middlewares=[access.middleware], listener=listener
            ) as server,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(access.run)
            yield server.port
            tasks.cancel_scope.cancel()


def client_tls(client: Any = None) -> ssl.SSLContext:
    tls = ssl.create_default_context(cadata=PAIR.certificate.decode())
    if client is not None:
        tls.load_cert_chain(*client)
    return tls


async def status(port: int, path: str, token: str | None = None, client: Any = None, method: str = "GET") -> int:
    tls = client_tls(client)
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
    async with serve_pages(sandbox, tmp_path) as port:
        for path in ("/healthz", "/livez", "/readyz", "/readyz?verbose"):
            assert await status(port, path) == 200
        for path in GUARDED:
            assert await status(port, path) == 403
            assert await status(port, path, "wrong") == 401
        assert await status(port, "/metrics", method="DELETE") == 403
        assert [await status(port, path, TOKEN) for path in GUARDED] == [200, 200, 404, 200, 404]


async def test_health_answers_while_the_api_server_does_not(sandbox: Sandbox, tmp_path: Path) -> None:
    async with serve_pages(sandbox, tmp_path) as port:
        sandbox.faults.refuse_connections(60.0)
        assert await status(port, "/livez", TOKEN) == 200
        assert await status(port, "/metrics", TOKEN) == 401
        assert await status(port, "/metrics") == 500


async def test_a_client_certificate_of_the_given_authority_is_somebody(sandbox: Sandbox, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    options = AccessOptions(client_ca_file=str(authority.file))
    admin = authority.issue("admin", "system:masters")
    jane = authority.issue("jane", "dev")
    async with serve_pages(sandbox, tmp_path, options) as port:
        assert await status(port, "/metrics", client=admin) == 200
        assert await status(port, "/metrics", client=jane) == 403
        assert await status(port, "/metrics", TOKEN) == 200
        stranger = Authority(tmp_path, "other").issue("stranger", "system:masters")
        with pytest.raises(aiohttp.ClientError):
            await status(port, "/metrics", client=stranger)


async def test_a_lookup_that_must_not_fail_stops_the_start(sandbox: Sandbox, tmp_path: Path) -> None:
    strict = AccessOptions(authentication_tolerate_lookup_failure=False)
    with pytest.raises(ServingError, match="unable to load the client CA: 404"):
        async with serve_pages(sandbox, tmp_path, strict):
            pass
    skipping = AccessOptions(authentication_tolerate_lookup_failure=False, authentication_skip_lookup=True)
    async with serve_pages(sandbox, tmp_path, skipping) as port:
        assert await status(port, "/metrics", TOKEN) == 200


async def test_a_file_of_authorities_that_is_none_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path / "kubeconfig"):
        with pytest.raises(CertificateError, match=f"client authority {path}"):
            async with serve_pages(sandbox, tmp_path, AccessOptions(client_ca_file=str(path))):
                pass


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_module, "_LOOK_EVERY_S", 0.02)


def certificate_shown(port: int) -> bytes:
    return ssl.get_server_certificate(("127.0.0.1", port)).encode()


@pytest.mark.usefixtures("quick_looks")
async def test_a_new_certificate_in_the_files_is_shown(sandbox: Sandbox, tmp_path: Path) -> None:
    files = (tmp_path / "tls.crt", tmp_path / "tls.key")
    first, second = self_signed(), self_signed()
    files[0].write_bytes(first.certificate)
    files[1].write_bytes(first.key)
    async with serve_pages(sandbox, tmp_path, tls=serving_tls(*map(str, files))) as port:

        async def shows(certificate: bytes) -> bool:
            return await anyio.to_thread.run_sync(certificate_shown, port) == certificate

        assert await shows(first.certificate)
        # Half of the change is none.
        files[0].write_bytes(second.certificate)
        assert await shows(first.certificate)
        files[1].write_bytes(second.key)
        await eventually(lambda: shows(second.certificate))


@pytest.mark.usefixtures("quick_looks")
async def test_a_new_file_of_authorities_replaces_the_old_one(sandbox: Sandbox, tmp_path: Path) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    file = tmp_path / "clients.crt"
    file.write_bytes(old.file.read_bytes())
    old_client, new_client = old.issue("before", "system:masters"), new.issue("after", "system:masters")
    options = AccessOptions(client_ca_file=str(file))
    async with (
        serve_pages(sandbox, tmp_path, options) as port,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=client_tls(old_client))) as kept_open,
    ):

        async def status_on_open_connection() -> int:
            async with kept_open.get(f"https://127.0.0.1:{port}/metrics") as answer:
                return answer.status

        assert await status_on_open_connection() == 200
        with pytest.raises(aiohttp.ClientError):
            await status(port, "/metrics", client=new_client)
        file.write_text("")
        file.write_bytes(new.file.read_bytes())

        async def is_let_in() -> bool:
            return await status(port, "/metrics", client=new_client) == 200

        await eventually(is_let_in)
        assert await status_on_open_connection() == 401
        with pytest.raises(aiohttp.ClientError):
            await status(port, "/metrics", client=old_client)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_certificate_that_has_expired_meanwhile_is_not_let_in(
    sandbox: Sandbox, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    authority = Authority(tmp_path)
    tls = client_tls(authority.issue("admin", "system:masters", valid_s=5.0))
    tls.maximum_version = version
    async with serve_pages(sandbox, tmp_path, AccessOptions(client_ca_file=str(authority.file))) as port:
        url = f"https://127.0.0.1:{port}/metrics"
        connector = aiohttp.TCPConnector(ssl=tls)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def is_refused() -> bool:
                async with session.get(url) as answer:
                    assert answer.status in (200, 401)
                    return answer.status == 401

            assert not await is_refused()
            _, tls_session = await anyio.to_thread.run_sync(_status_and_session, port, tls, None)
            await eventually(is_refused)
        resumed, _ = await anyio.to_thread.run_sync(_status_and_session, port, tls, tls_session)
        assert resumed == 401


def _status_and_session(
    port: int, tls: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[int, ssl.SSLSession | None]:
    """The status of a request on a new connection, whose TLS session goes on from that one."""
    with (
        socket.create_connection(("127.0.0.1", port)) as raw,
        tls.wrap_socket(raw, server_hostname="localhost", session=session) as stream,
    ):
        assert stream.session_reused == (session is not None)
        stream.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return int(stream.recv(65536).split()[1]), stream.session


async def test_refused_tokens_do_not_fill_the_log(sandbox: Sandbox, tmp_path: Path) -> None:
    async with serve_pages(sandbox, tmp_path) as port:
        with capture_logs() as logs:
            for number in range(20):
                assert await status(port, "/metrics", f"wrong-{number}") == 401
    refusals = [entry for entry in logs if entry["event"] == "Unable to authenticate the request"]
    # One in ten seconds.
    assert 1 <= sum(entry["log_level"] == "info" for entry in refusals) < 5
