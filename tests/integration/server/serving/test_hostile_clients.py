"""Malformed requests and idle or slow clients, over real HTTPS and both event loops.

Anyone who reaches the port can send them, so they must neither block the server nor fill its log.
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
from anyio.streams.tls import TLSStream

from podium.lib import endpoints, inbound
from podium.server.serving import Health, ServingTls, self_signed, serve
from podium.telemetry import Metrics, set_verbosity
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.anyio

PAIR = self_signed()
SECRET = b"s3cr3t-of-somebody"
MALFORMED = {
    "not HTTP": SECRET,
    "a line that is not HTTP": SECRET + b"\r\n\r\n",
    "a header without a colon": b"GET / HTTP/1.1\r\nAuthorization Basic " + SECRET + b"\r\n\r\n",
    "a control character": b"GET / HTTP/1.1\r\nAuthorization: Bearer \x1b[31m" + SECRET + b"\r\n\r\n",
    "a header's name with a space": b"GET / HTTP/1.1\r\nAuthorization : Bearer " + SECRET + b"\r\n\r\n",
    "a long header": b"GET / HTTP/1.1\r\nCookie: " + SECRET * 2000 + b"\r\n\r\n",
    "a long line": b"GET /" + SECRET * 2000 + b" HTTP/1.1\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nX: " + SECRET + b"\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "a length that is not a number": b"POST / HTTP/1.1\r\nX: " + SECRET + b"\r\nContent-Length: x\r\n\r\n",
    "another version": b"GET / HTTP/9.9\r\nX: " + SECRET + b"\r\n\r\n",
    "bytes in the path": b"GET /\xff\xfe\x1b[2J HTTP/1.1\r\nHost: x\r\n\r\n",
    "bytes in the query": b"GET /healthz?exclude=%ff\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    "an invalid URL": b"GET http://[::1/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "an invalid chunk": b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + SECRET + b"\r\n",
    "an unknown encoding": b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc",
    "an upgrade": b"GET /healthz HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n" + SECRET,
}


@pytest.fixture(
    params=[("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"]
)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


@contextlib.asynccontextmanager
async def serving(metrics: Metrics | None = None, connections_max: int | None = None) -> AsyncIterator[int]:
    async with serve(
        "127.0.0.1",
        0,
        ServingTls(PAIR),
        Health(),
        metrics or Metrics(),
        dict,
        listener=socket.create_server(("127.0.0.1", 0)),
        connections_max=connections_max,
    ) as server:
        yield server.port


def client_tls() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=PAIR.certificate.decode())


async def connect(port: int) -> TLSStream:
    return await anyio.connect_tcp("127.0.0.1", port, ssl_context=client_tls(), tls_standard_compatible=False)


async def is_live(port: int) -> bool:
    connector = aiohttp.TCPConnector(ssl=client_tls(), force_close=True)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"https://127.0.0.1:{port}/livez", timeout=aiohttp.ClientTimeout(total=20)) as answer,
    ):
        return answer.status == 200


async def wait_closed(stream: anyio.abc.ByteStream) -> None:
    """Wait until the server has closed the stream."""
    with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while True:
            await stream.receive()


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED.keys())
async def test_malformed_requests_leave_no_bytes_in_the_log(content: bytes, json_log: io.BytesIO) -> None:
    set_verbosity(10)
    async with serving() as port:
        stream = await connect(port)
        await stream.send(content)
        assert await is_live(port)
        await stream.aclose()
    text = json_log.getvalue()
    assert SECRET not in text
    assert b"Traceback" not in text
    assert b"\\u001b[31m" not in text
    assert b'"level":"error"' not in text


async def test_malformed_requests_are_counted_and_not_logged(json_log: io.BytesIO) -> None:
    metrics = Metrics()
    async with serving(metrics) as port:
        log_start = json_log.tell()
        for _ in range(50):
            stream = await connect(port)
            await stream.send(b"s3cr3t-of-someb\n")
            await wait_closed(stream)
            await stream.aclose()
        assert json_log.getvalue()[log_start:] == b""
    assert metrics.value("podium_malformed_requests_total") == 50


async def test_idle_connections_above_the_limit_are_closed() -> None:
    metrics = Metrics()
    async with serving(metrics, connections_max=16) as port:
        sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
        streams = [await connect(port) for _ in range(40)]
        assert await is_live(port)

        async def are_within_limit() -> bool:
            # One more than the limit while the server is accepting the last connection.
            return _accepted_by(port) <= 17

        await eventually(are_within_limit)
        assert metrics.value("podium_dropped_connections_total", reason="full") >= 60
        for client_socket in sockets:
            client_socket.close()
        for stream in streams:
            await stream.aclose()


async def test_idle_connections_and_slow_headers_have_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "IDLE_S_MAX", 0.3)
    monkeypatch.setattr(inbound, "_LOOK_EVERY_S", 0.05)
    async with serving() as port, anyio.create_task_group() as tasks:
        silent = await anyio.connect_tcp("127.0.0.1", port)
        idle, slow = await connect(port), await connect(port)

        async def send_slowly() -> None:
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await slow.send(b"GET /livez HTTP/1.1\r\n")
                while True:
                    await slow.send(b"X-Slow: 1\r\n")
                    await anyio.sleep(0.05)

        tasks.start_soon(send_slowly)
        with anyio.fail_after(20):
            for stream in (silent, idle, slow):
                await wait_closed(stream)
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            for stream in (silent, idle, slow):
                await anyio.aclose_forcefully(stream)


async def test_stopping_closes_a_connection_whose_client_ignores_the_tls_close_even_without_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbound, "_LEAVE_S_MAX", 0.0)
    monkeypatch.setattr(inbound, "_HUNG_UP_S_MAX", 0.0)
    servers_connections: list[inbound.InboundConnections] = []

    class RecordedConnections(inbound.InboundConnections):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            servers_connections.append(self)

    monkeypatch.setattr(endpoints, "InboundConnections", RecordedConnections)
    async with serving() as port:
        idle = await connect(port)
    (connections,) = servers_connections
    assert not connections._open
    await anyio.aclose_forcefully(idle)


async def test_a_connection_with_a_running_request_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "IDLE_S_MAX", 0.1)
    monkeypatch.setattr(inbound, "_LOOK_EVERY_S", 0.02)

    async def slow() -> None:
        await anyio.sleep(0.5)

    async with serve(
        "127.0.0.1",
        0,
        ServingTls(PAIR),
        Health(livez={"slow": slow}),
        Metrics(),
        dict,
        listener=socket.create_server(("127.0.0.1", 0)),
    ) as server:
        assert await is_live(server.port)


def _accepted_by(port: int) -> int:
    """Count the connections that this process has accepted on that port."""
    count = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        address, state, inode = line.split()[1], line.split()[3], line.split()[9]
        count += int(address.rpartition(":")[2], 16) == port and state in ("01", "08") and inode != "0"
    return count


@pytest.mark.parametrize(
    "content", [b"", b"GET / HTTP/1.1\r\n\r\n", SECRET, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"]
)
async def test_a_failed_handshake_is_not_logged(
    content: bytes, json_log: io.BytesIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbound, "_HANDSHAKE_S_MAX", 0.3)
    async with serving() as port:
        log_start = json_log.tell()
        with anyio.fail_after(20):
            for _ in range(3):
                async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                    if content:
                        await stream.send(content)
                    await wait_closed(stream)
        assert await is_live(port)
        assert json_log.getvalue()[log_start:] == b""
