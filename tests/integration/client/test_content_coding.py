"""Answers that a proxy has compressed unasked, over real connections."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable

import anyio
import pytest

from podium.client.credentials import load
from podium.client.session import ApiSession
from podium.lib.system_clock import SystemClock
from podium.objects import api_errors
from podium.objects.api_errors import ConnectionLost, Malformed, OutcomeUnknown
from podium.objects.resource_types import PODS
from tests.integration.client.fault_server import Fault, FaultServer, Request

pytestmark = pytest.mark.anyio

BINDING = "/api/v1/namespaces/default/pods/a/binding"


@pytest.fixture
async def session(server: FaultServer) -> AsyncIterator[ApiSession]:
    credentials = await load(None, SystemClock(), master=f"http://127.0.0.1:{server.port}")
    async with ApiSession(credentials) as api_session:
        yield api_session


def compressed_answer(body: bytes, coding: str, code: int = 200) -> Fault:
    """A proxy that compresses unasked."""

    async def answer(request: Request) -> None:
        assert request.headers["accept-encoding"] == "identity"
        await request.connection.answer(code, body, [("Content-Encoding", coding)])

    return answer


def raw_deflate(body: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(body) + stream.flush()


COMPRESSORS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "two members": ("x-gzip, identity", lambda body: gzip.compress(body[:9]) + gzip.compress(body[9:]) + b"\0" * 9),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("Deflate", raw_deflate),
}


@pytest.mark.parametrize("name", COMPRESSORS)
async def test_bodies_that_a_proxy_has_compressed_unasked_are_read(
    server: FaultServer, session: ApiSession, name: str
) -> None:
    coding, compress = COMPRESSORS[name]
    body = json.dumps({"kind": "PodList", "items": [{}] * 100_000}).encode()
    server.list_faults.append(compressed_answer(compress(body), coding))
    assert await session.request("GET", PODS.path) == body
    server.watch_faults.append(compressed_answer(compress(body), coding))
    assert await read_stream(session) == body
    refusal = json.dumps({"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}).encode()
    server.list_faults.append(compressed_answer(compress(refusal), coding, 410))
    with pytest.raises(api_errors.Expired):
        await session.request("GET", PODS.path)
    server.watch_faults.append(compressed_answer(compress(refusal), coding, 410))
    with pytest.raises(api_errors.Expired):
        await session.stream(f"{PODS.path}?watch=1", deadline_s=30.0, idle_s_max=30.0)


async def test_each_event_of_a_compressed_watch_is_read_as_soon_as_it_is_there(
    server: FaultServer, session: ApiSession
) -> None:
    compressing, is_read = zlib.compressobj(wbits=31), anyio.Event()

    async def watch(request: Request) -> None:
        await request.connection.send(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        await request.connection.chunk(compressing.compress(b"a\n") + compressing.flush(zlib.Z_SYNC_FLUSH))
        await is_read.wait()
        for byte in compressing.compress(b"b\nc") + compressing.flush():
            await request.connection.chunk(bytes([byte]))
        await request.connection.end_chunks()

    server.watch_faults.append(watch)
    stream = await session.stream(f"{PODS.path}?watch=1", deadline_s=30.0, idle_s_max=30.0)
    assert await stream.read_lines() == [b"a"]
    is_read.set()
    assert await stream.read_lines() == [b"b"]
    assert await stream.read_lines() == []


async def test_compressed_bodies_have_limits_too(server: FaultServer, session: ApiSession) -> None:
    bomb = gzip.compress(b" " * 100_000_000)
    server.list_faults.append(compressed_answer(bomb, "gzip"))
    with pytest.raises(ConnectionLost, match="more than"):
        await session.request("GET", PODS.path)
    server.write_faults.append(compressed_answer(bomb, "gzip"))
    with pytest.raises(OutcomeUnknown, match="more than"):
        await session.post(BINDING, b"{}")
    server.write_faults.append(compressed_answer(bomb, "gzip", 409))
    with pytest.raises(api_errors.Conflict):
        await session.post(BINDING, b"{}")
    server.watch_faults.append(compressed_answer(bomb, "gzip"))
    with pytest.raises(Malformed, match="grows"):
        await read_stream(session)


@pytest.mark.parametrize(
    ("body", "coding", "words"),
    [
        (b"{}", "br", "Content-Encoding 'br': only gzip and deflate"),
        (b"{}", "gzip, gzip", "only gzip and deflate"),
        (b"{}", "gzip", "cannot be decompressed"),
        (gzip.compress(b"{}") + b"{}", "gzip", "cannot be decompressed"),
        (zlib.compress(b"{}") + b"{}", "deflate", "goes on after its end"),
    ],
)
async def test_a_coding_that_is_not_read_is_named_and_a_refusal_counts_by_its_code(
    server: FaultServer, session: ApiSession, body: bytes, coding: str, words: str
) -> None:
    server.list_faults.append(compressed_answer(body, coding))
    with pytest.raises(Malformed, match=words):
        await session.request("GET", PODS.path)
    server.watch_faults.append(compressed_answer(body, coding))
    with pytest.raises(Malformed, match=words):
        await read_stream(session)
    server.write_faults.append(compressed_answer(body, coding))
    with pytest.raises(Malformed) as malformed:
        await session.post(BINDING, b"{}")
    assert malformed.value.may_have_happened
    server.list_faults.append(compressed_answer(body, coding, 404))
    with pytest.raises(api_errors.NotFound):
        await session.request("GET", PODS.path)


async def read_stream(session: ApiSession) -> bytes:
    stream = await session.stream(f"{PODS.path}?watch=1", deadline_s=30.0, idle_s_max=30.0)
    content = bytearray()
    while chunk := await stream.read():
        content += chunk
    return bytes(content)
