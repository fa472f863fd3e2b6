"""What servers do to connections, byte by byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import anyio
import pytest

from podium.client.connections import ConnectionPool
from podium.client.http_connection import Answer
from podium.objects.api_errors import ConnectionLost, NoResponse, Unreachable
from podium.objects.resource_types import PODS
from tests.integration.client.fault_server import Fault, FaultServer, Request, Silence, reset, silence
from tests.integration.client.waiting import eventually

pytestmark = pytest.mark.anyio

PATH = "/api/v1/namespaces/default/pods/a/binding"
GOOD = b'{"kind":"Status","status":"Success"}'
HEAD = b"HTTP/1.1 200 OK\r\n"
ANSWER_BYTES_MAX = 1024 * 1024
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


def raw(content: bytes, ending: str = "go on") -> Fault:
    """Answer with exactly these bytes, then `go on`, `reset` the connection, `close` it or keep `silence`."""

    async def fault(request: Request) -> None:
        await request.connection.send(content)
        if ending == "close":
            request.connection.close()
        elif ending == "reset":
            request.connection.reset()
        elif ending == "silence":
            raise Silence

    return fault


def pool_of(server: FaultServer, **options: Any) -> ConnectionPool:
    settings = {"server_name": None, "connections_max": 4, "headers": {"User-Agent": "test"}, **options}
    return ConnectionPool(f"http://127.0.0.1:{server.port}", None, **settings)


@pytest.fixture
async def pool(server: FaultServer) -> AsyncIterator[ConnectionPool]:
    connection_pool = pool_of(server)
    yield connection_pool
    await connection_pool.close()


async def post(pool: ConnectionPool, *, deadline_s: float = 5.0) -> Answer:
    return await pool.request(
        "POST",
        PATH,
        b"{}",
        content_type="application/json",
        authorization=None,
        deadline_s=deadline_s,
        answer_bytes_max=ANSWER_BYTES_MAX,
    )


async def get(pool: ConnectionPool) -> Answer:
    return await pool.request(
        "GET",
        PODS.path,
        None,
        content_type=None,
        authorization=None,
        deadline_s=5.0,
        answer_bytes_max=ANSWER_BYTES_MAX,
    )


def connections_used(server: FaultServer) -> int:
    return len({id(request.connection) for request in server.requests})


async def test_requests_one_after_the_other_share_a_connection(server: FaultServer, pool: ConnectionPool) -> None:
    for _ in range(3):
        assert await post(pool) == Answer(201, GOOD, None)
    assert connections_used(server) == 1


async def test_requests_at_the_same_time_have_connections_of_their_own_up_to_the_limit(
    server: FaultServer, pool: ConnectionPool
) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(post, pool)
    assert len(server.requests) == 12
    assert connections_used(server) == 4


@pytest.mark.parametrize(
    ("content", "body"),
    [
        (HEAD + b"Content-Length: 5\r\n\r\nhello", b"hello"),
        (HEAD + b"Content-Length: 0\r\n\r\n", b""),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", b"hello"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"content-length: 5\r\n\r\nhello", b"hello"),
    ],
    ids=["length", "empty", "chunks", "no content", "informational"],
)
async def test_an_answer_ends_where_it_says_and_the_connection_goes_on(
    server: FaultServer, pool: ConnectionPool, content: bytes, body: bytes
) -> None:
    server.write_faults.append(raw(content))
    assert (await post(pool)).body == body
    assert (await post(pool)).body == GOOD
    assert connections_used(server) == 1


@pytest.mark.parametrize(
    "content",
    [
        HEAD + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello",
        HEAD + b"Connection: close\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    ],
    ids=["said", "without a length", "old without a length", "old"],
)
async def test_a_connection_that_the_server_closes_is_not_used_again(
    server: FaultServer, pool: ConnectionPool, content: bytes
) -> None:
    server.write_faults.append(raw(content, "close"))
    assert (await post(pool)).body == b"hello"
    assert (await post(pool)).body == GOOD
    assert connections_used(server) == 2


@pytest.mark.parametrize("ending", ["reset", "close"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"HTTP/1.1 20",
        HEAD + b"Content-Le",
        HEAD + b"Content-Length: 5\r\n\r\nhel",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n",
    ],
    ids=["nothing", "first line", "headers", "body", "chunks"],
)
async def test_an_answer_that_is_torn_is_no_answer(
    server: FaultServer, pool: ConnectionPool, content: bytes, ending: str
) -> None:
    server.write_faults.append(raw(content, ending))
    with pytest.raises(ConnectionLost):
        await post(pool)
    assert (await post(pool)).body == GOOD
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello",
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ids=["another protocol", "upgrade", "two ends"],
)
async def test_what_is_not_http_is_no_answer(server: FaultServer, pool: ConnectionPool, content: bytes) -> None:
    server.write_faults.append(raw(content, "silence"))
    with pytest.raises(ConnectionLost):
        await post(pool)
    assert (await post(pool)).body == GOOD


async def test_an_answer_that_nobody_asked_for_meets_no_request(server: FaultServer, pool: ConnectionPool) -> None:
    twice = HEAD + b"Content-Length: 5\r\n\r\nfirst" + HEAD + b"Content-Length: 6\r\n\r\nsecond"
    server.write_faults.append(raw(twice))
    assert (await post(pool)).body == b"first"
    assert (await post(pool)).body == GOOD
    assert connections_used(server) == 2


async def test_the_deadline_holds_wherever_the_answer_stops(server: FaultServer, pool: ConnectionPool) -> None:
    for content in (b"", HEAD, HEAD + b"Content-Length: 5\r\n\r\nhel"):
        server.write_faults.append(raw(content, "silence"))
        with pytest.raises(ConnectionLost, match="no answer in time"):
            await post(pool, deadline_s=0.3)
    assert (await post(pool)).body == GOOD


X = b"x" * 65536


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"Content-Length: 1500000000\r\n\r\n", X),
        (b"\r\n", X),
        (CHUNKED, b"10000\r\n" + X + b"\r\n"),
        (CHUNKED, b"1\r\nx\r\n" * 10_000),
        (CHUNKED + b"0\r\n", b"A: b\r\n" * 10_000),
        (CHUNKED + b"1;", X),
        (b"", b"A: b\r\n" * 10_000),
        (b"A: ", X),
    ],
    ids=["length", "no length", "chunks", "chunks of a byte", "trailers", "chunk extension", "headers", "header"],
)
@pytest.mark.parametrize("code", [b"201 Created", b"409 Conflict"])
async def test_an_answer_without_end_is_given_up_soon_and_fills_no_memory(
    server: FaultServer, pool: ConnectionPool, code: bytes, head: bytes, piece: bytes
) -> None:
    sent_bytes = 0

    async def endless(request: Request) -> None:
        nonlocal sent_bytes
        await request.connection.send(b"HTTP/1.1 " + code + b"\r\n" + head)
        while True:
            sent_bytes += len(piece)
            await request.connection.send(piece)

    server.write_faults.append(endless)
    if code.startswith(b"409") and b"\r\n\r\n" in b"\r\n" + head:
        # A refusal is one, however long it goes on about it.
        answer = await post(pool, deadline_s=60.0)
        assert answer.status == 409
        assert len(answer.body) <= ANSWER_BYTES_MAX
    else:
        with pytest.raises(ConnectionLost, match="more than 1048576 bytes"):
            await post(pool, deadline_s=60.0)
    # What the kernel holds on the way comes on top.
    assert sent_bytes < 32 * ANSWER_BYTES_MAX
    assert (await post(pool)).body == GOOD


async def test_informational_answers_without_end_are_given_up(server: FaultServer, pool: ConnectionPool) -> None:
    async def endless(request: Request) -> None:
        while True:
            await request.connection.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

    server.write_faults.append(endless)
    with pytest.raises(ConnectionLost):
        await post(pool, deadline_s=60.0)
    assert (await post(pool)).body == GOOD


async def test_an_answer_in_many_pieces_is_put_together(server: FaultServer, pool: ConnectionPool) -> None:
    content = bytes(range(256)) * 100
    chunked = b"".join(b"1\r\n%c\r\n" % byte for byte in content)
    server.write_faults.append(raw(HEAD + CHUNKED + chunked + b"0\r\n\r\n"))
    assert (await post(pool)).body == content


async def test_a_write_without_an_answer_is_left_to_the_server_and_its_connection_to_nobody(
    server: FaultServer, pool: ConnectionPool
) -> None:
    """Closing the connection would make the server give up what it may be about to do."""
    is_over, end = anyio.Event(), anyio.Event()

    async def slow(request: Request) -> None:
        await is_over.wait()
        await request.connection.answer(201, b"late")
        with suppress(asyncio.IncompleteReadError, OSError):
            await request.connection.read_request()
        end.set()

    server.write_faults.append(slow)
    with pytest.raises(NoResponse):
        await post(pool, deadline_s=0.2)
    assert (await post(pool)).body == GOOD
    assert not end.is_set()
    is_over.set()
    # An answer that nobody waits for closes it.
    with anyio.fail_after(20):
        await end.wait()
    assert connections_used(server) == 2


async def test_connections_that_linger_are_closed_with_the_pool_and_are_not_too_many(server: FaultServer) -> None:
    pool = pool_of(server, connections_max=2)
    server.write_faults.extend([silence] * 5)
    for _ in range(5):
        with pytest.raises(NoResponse):
            await post(pool, deadline_s=0.05)
    assert len(pool._lingering) == 2
    await pool.close()
    assert not any(connection.is_lingering for connection in pool._lingering)


async def test_a_request_without_an_answer_makes_idle_connections_suspect_and_not_those_used_since(
    server: FaultServer, pool: ConnectionPool
) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(post, pool)
    assert pool.idle == 3
    server.write_faults.append(silence)
    async with anyio.create_task_group() as tasks:

        async def post_in_vain() -> None:
            with pytest.raises(NoResponse):
                await post(pool, deadline_s=2.0)

        tasks.start_soon(post_in_vain)
        await eventually(lambda: len(server.requests) == 4)
        await get(pool)
    assert pool.idle == 1


async def test_a_request_that_finds_no_connection_in_time_was_not_sent(server: FaultServer) -> None:
    pool = pool_of(server, connections_max=1)
    server.write_faults.append(silence)
    async with anyio.create_task_group() as tasks:

        async def post_in_vain() -> None:
            with pytest.raises(ConnectionLost):
                await post(pool, deadline_s=1.0)

        tasks.start_soon(post_in_vain)
        await eventually(lambda: server.requests)
        with pytest.raises(Unreachable, match="no connection became free in time"):
            await post(pool, deadline_s=0.1)
    assert len(server.requests) == 1
    assert (await post(pool)).body == GOOD
    await pool.close()


async def test_a_cancelled_request_takes_its_connection_with_it(server: FaultServer, pool: ConnectionPool) -> None:
    cancelled = anyio.Event()

    async def late(request: Request) -> None:
        await cancelled.wait()
        await request.connection.answer(200, b"late")

    server.write_faults.append(late)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(post, pool)
        await eventually(lambda: server.requests)
        tasks.cancel_scope.cancel()
    cancelled.set()
    assert (await post(pool)).body == GOOD


async def test_a_read_that_meets_a_connection_about_to_close_is_made_again(
    server: FaultServer, pool: ConnectionPool
) -> None:
    await get(pool)
    server.list_faults.append(reset)
    assert (await get(pool)).status == 200
    assert len(server.requests) == 3


async def test_a_read_that_breaks_on_a_new_connection_is_not_made_again(
    server: FaultServer, pool: ConnectionPool
) -> None:
    server.list_faults.append(reset)
    with pytest.raises(ConnectionLost):
        await get(pool)
    assert len(server.requests) == 1


async def test_a_write_is_never_made_again(server: FaultServer, pool: ConnectionPool) -> None:
    await post(pool)
    server.write_faults.append(reset)
    with pytest.raises(ConnectionLost):
        await post(pool)
    assert len(server.requests) == 2


async def test_a_connection_that_went_away_while_idle_is_noticed(server: FaultServer, pool: ConnectionPool) -> None:
    await post(pool)
    server.requests[0].connection.close()
    await eventually(lambda: not pool.idle)
    assert (await post(pool)).body == GOOD
    assert connections_used(server) == 2


async def test_a_retired_pool_ends_what_is_under_way_and_keeps_nothing(
    server: FaultServer, pool: ConnectionPool
) -> None:
    answers: list[Answer] = []

    async def ask() -> None:
        answers.append(await post(pool))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await eventually(lambda: server.requests)
        pool.retire()
    assert answers == [Answer(201, GOOD, None)]
    assert not pool.idle


async def test_closing_ends_a_request_under_way(server: FaultServer, pool: ConnectionPool) -> None:
    server.write_faults.append(silence)
    async with anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(ConnectionLost):
                await post(pool)

        tasks.start_soon(ask)
        await eventually(lambda: server.requests)
        await pool.close()


async def test_requests_say_host_path_and_who_asks(server: FaultServer) -> None:
    pool = ConnectionPool(
        f"http://127.0.0.1:{server.port}/clusters/a/",
        None,
        server_name=None,
        connections_max=1,
        headers={"User-Agent": "test"},
    )
    await pool.request(
        "PATCH",
        "/x?y=1",
        b"[]",
        content_type="a/b",
        authorization="Bearer z",
        deadline_s=5.0,
        answer_bytes_max=ANSWER_BYTES_MAX,
    )
    await pool.close()
    (request,) = server.requests
    assert (request.method, request.path, request.query) == ("PATCH", "/clusters/a/x", {"y": "1"})
    assert request.body == b"[]"
    assert request.headers == {
        "host": f"127.0.0.1:{server.port}",
        "user-agent": "test",
        "content-type": "a/b",
        "authorization": "Bearer z",
        "content-length": "2",
    }


async def test_a_header_cannot_smuggle_another(pool: ConnectionPool) -> None:
    with pytest.raises(ValueError, match="Authorization"):
        await pool.request(
            "GET",
            "/",
            None,
            content_type=None,
            authorization="a\r\nX: y",
            deadline_s=5.0,
            answer_bytes_max=ANSWER_BYTES_MAX,
        )
