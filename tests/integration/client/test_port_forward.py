"""Requests over a port of a pod that an API server forwards."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from podium.client.credentials import load
from podium.client.port_forward import ForwardedPort, over_forwarded_port
from podium.client.session import ApiSession
from podium.lib.system_clock import SystemClock
from podium.objects.api_errors import ApiError, ConnectionLost, Forbidden, NotFound, Unreachable
from podium.server.serving import self_signed
from tests.integration.client.certificates import Authority
from tests.patience import PATIENCE_S
from tests.port_forward import forward

pytestmark = pytest.mark.anyio

LARGE = b"x" * 300_000
BYTES_MAX = 8 * 1024 * 1024


@dataclass
class Pod:
    """The server in a pod, and what becomes of its port: a code of HTTP below 1000 refuses to forward it."""

    port: int
    kubeconfig: Path
    requests: list[tuple[str, str]]

    async def get(self, *paths: str, answer_bytes_max: int = BYTES_MAX) -> list[bytes]:
        credentials = await load(str(self.kubeconfig), SystemClock())

        async def ask(link: ForwardedPort) -> list[bytes]:
            header = await credentials.authorization()
            limits = {"deadline_s": PATIENCE_S, "answer_bytes_max": answer_bytes_max}
            return [await link.get(path, header, **limits) for path in paths]

        async with ApiSession(credentials) as session:
            tls = credentials.unverified_tls()
            return await over_forwarded_port(session, ("shop", "web"), 443, tls, ask, deadline_s=PATIENCE_S)


def pair_of(directory: Path) -> ssl.SSLContext:
    pair = self_signed()
    (directory / "crt").write_bytes(pair.certificate)
    (directory / "key").write_bytes(pair.key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(directory / "crt", directory / "key")
    return tls


@asynccontextmanager
async def listening(app: web.Application, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    try:
        await web.SockSite(runner, listener, ssl_context=tls).start()
        yield listener.getsockname()[1]
    finally:
        await runner.cleanup()


def write_kubeconfig(path: Path, port: int, user: Mapping[str, str]) -> None:
    cluster = {"name": "a", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    users = [{"name": "a", "user": dict(user)}]
    config = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "a"}
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **config}))


@pytest.fixture
async def pod(anyio_backend: object, tmp_path: Path) -> AsyncIterator[Pod]:
    forwarded_pod = Pod(0, tmp_path / "kubeconfig", [])

    async def answer(request: web.Request) -> web.StreamResponse:
        forwarded_pod.requests.append((request.path_qs, request.headers.get("Authorization", "")))
        if request.path == "/gone":
            raise web.HTTPNotFound(text="no such page")
        if request.path == "/dies":
            assert request.transport is not None
            request.transport.abort()
        return web.Response(body=LARGE if request.path == "/large" else b"small")

    async def forwarding(request: web.Request) -> web.StreamResponse:
        assert (request.query["ports"], request.headers["Authorization"]) == ("443", "Bearer secret")
        return (
            web.Response(status=forwarded_pod.port)
            if forwarded_pod.port < 1000
            else await forward(request, forwarded_pod.port)
        )

    inside, outside = web.Application(), web.Application()
    inside.router.add_get("/{path:.*}", answer)
    outside.router.add_get("/api/v1/namespaces/shop/pods/web/portforward", forwarding)
    async with listening(inside, pair_of(tmp_path)) as forwarded_pod.port, listening(outside) as port:
        write_kubeconfig(forwarded_pod.kubeconfig, port, {"token": "secret"})
        yield forwarded_pod


async def test_requests_reach_the_pod_with_the_users_own_credentials(pod: Pod) -> None:
    assert await pod.get("/a?b=c", "/large") == [b"small", LARGE]
    assert pod.requests == [("/a?b=c", "Bearer secret"), ("/large", "Bearer secret")]


async def test_a_client_certificate_reaches_the_pod_as_well(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        (subject,) = request.transport.get_extra_info("peercert")["subject"][-1]
        return web.Response(text=subject[1])

    async def forwarding(request: web.Request) -> web.StreamResponse:
        return await forward(request, forwarded_pod.port)

    forwarded_pod = Pod(0, tmp_path / "kubeconfig", [])
    inside, outside = web.Application(), web.Application()
    inside.router.add_get("/who", answer)
    outside.router.add_get("/api/v1/namespaces/shop/pods/web/portforward", forwarding)
    demanding = authority.server_context(dns="elsewhere", clients=True)
    async with listening(inside, demanding) as forwarded_pod.port, listening(outside) as port:
        certificate, key = authority.issue("operator")
        user = {"client-certificate": str(certificate), "client-key": str(key)}
        write_kubeconfig(forwarded_pod.kubeconfig, port, user)
        assert await forwarded_pod.get("/who") == [b"operator"]


async def test_a_refusal_of_the_pod_is_an_api_error(pod: Pod) -> None:
    with pytest.raises(NotFound, match="no such page"):
        await pod.get("/gone")


@pytest.mark.parametrize(("port", "error"), [(403, Forbidden), (404, NotFound), (503, ApiError)])
async def test_an_api_server_that_does_not_forward_is_an_api_error(pod: Pod, port: int, error: type[ApiError]) -> None:
    pod.port = port
    with pytest.raises(error):
        await pod.get("/a")
    assert pod.requests == []


async def test_a_port_on_which_nothing_listens_is_told_in_the_kubelets_words(pod: Pod) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pod.port = listener.getsockname()[1]
    with pytest.raises(Unreachable, match=f"error forwarding port {pod.port}"):
        await pod.get("/a")


async def test_a_connection_that_breaks_is_lost(pod: Pod) -> None:
    with pytest.raises(ConnectionLost):
        await pod.get("/dies")


async def test_an_answer_that_is_too_long_is_refused(pod: Pod) -> None:
    with pytest.raises(ConnectionLost, match="more than 1000 bytes"):
        await pod.get("/large", answer_bytes_max=1000)
