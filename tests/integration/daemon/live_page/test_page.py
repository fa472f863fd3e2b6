"""The stream over real HTTP: readers that are slow, many, half open or without rights."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import orjson
import pytest

from podium.client.credentials import load
from podium.cluster import Cache
from podium.daemon.live_page import Contents, LivePage
from podium.daemon.live_page import page as page_module
from podium.engine.flight_recorder import FlightRecorder
from podium.lib.system_clock import SystemClock
from podium.sandbox import Sandbox
from podium.server.access_options import AccessOptions
from podium.server.serving import Health, ServingTls, open_access, self_signed, serve
from podium.server.serving.plain import serve_plain
from podium.telemetry import Metrics
from tests.builders import ZONE_LABEL, cache_of, node, pod
from tests.e2e.waiting import eventually
from tests.unit.engine.flight_recorder.recording import Cluster, place
from tests.unit.queues.builders import QueueBench

pytestmark = pytest.mark.anyio


class Served:
    """A page over parts of a scheduler that tests change."""

    def __init__(self, **options: Any) -> None:
        self.bench, self.recorder = QueueBench(), FlightRecorder(2 << 20)
        self.cache: Cache = cache_of(node("n0"), node("n1"))
        self.contents = Contents(self.cache, self.bench.queue.listing, self.recorder, SystemClock(), lambda: None)
        self.page = LivePage(self.contents, SystemClock(), {"schedulers": ["podium"], "recorder": True}, **options)
        self.url = ""

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[aiohttp.ClientSession]:
        pages = {**self.page.pages, **self.page.open_pages}
        async with (
            aiohttp.ClientSession() as session,
            anyio.create_task_group() as tasks,
            serve_plain("127.0.0.1", 0, pages) as port,
        ):
            self.url = f"http://127.0.0.1:{port}"
            tasks.start_soon(self.page.run)
            yield session
            tasks.cancel_scope.cancel()

    async def wait_watchers(self, count: int) -> None:
        async def is_reached() -> bool:
            assert self.page.watchers == count
            return True

        await eventually(is_reached)


async def event(answer: aiohttp.ClientResponse) -> Any:
    """The next event of the stream."""
    line = await answer.content.readuntil(b"\n\n")
    assert line.startswith(b"data: ")
    return orjson.loads(line.removeprefix(b"data: "))


async def event_with(answer: aiohttp.ClientResponse, table: str) -> Any:
    """The next change of that table."""
    while True:
        if table in (event_read := await event(answer)):
            return event_read[table]


async def test_the_first_event_has_everything_and_the_next_one_what_has_changed() -> None:
    page_server = Served()
    page_server.bench.add(pod("web"))
    async with page_server() as session, session.get(f"{page_server.url}/ui/events") as answer:
        first = await event(answer)
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        assert first["about"].items() >= {"schedulers": ["podium"], "recorder": True}.items()
        assert [row["name"] for row in first["queue"]["put"]] == ["web"]
        assert {row["key"] for row in first["nodes"]["put"]} == {"n0", "n1"}

        place(page_server.recorder, Cluster("n0"), pod("web"))
        assert [row["name"] for row in (await event_with(answer, "decisions"))["put"]] == ["web"]
        page_server.cache.add_pod(pod("web", node="n1", cpu="1"))
        assert [(row["key"], row["cpu"]) for row in (await event_with(answer, "nodes"))["put"]] == [("n1", 1000)]


async def test_a_stream_ends_so_that_access_is_reviewed_again() -> None:
    page_server = Served(stream_s_max=0.3)
    async with page_server() as session, session.get(f"{page_server.url}/ui/events") as answer:
        assert (await answer.content.read()).count(b"data: ") >= 1
        await page_server.wait_watchers(0)


async def test_more_than_so_many_readers_are_told_to_come_later() -> None:
    page_server = Served()
    async with page_server() as session:
        streams = [await session.get(f"{page_server.url}/ui/events") for _ in range(page_module.WATCHERS_MAX)]
        async with session.get(f"{page_server.url}/ui/events") as refusal:
            assert (refusal.status, refusal.headers["Retry-After"]) == (503, "10")
        streams.pop().close()

        async def is_answered() -> bool:
            async with session.get(f"{page_server.url}/ui/events") as answer:
                return answer.status == 200

        await eventually(is_answered)
        for stream in streams:
            stream.close()
        await page_server.wait_watchers(0)


async def test_a_reader_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "_WRITE_S_MAX", 0.2)
    page_server = Served()
    async with page_server():
        port = int(page_server.url.rpartition(":")[2])
        with socket.socket() as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            silent.connect(("127.0.0.1", port))
            silent.sendall(b"GET /ui/events HTTP/1.1\r\nHost: x\r\n\r\n")
            await page_server.wait_watchers(1)
            number = 0
            while page_server.page.watchers:
                # Every event is larger than what the kernel takes for a reader.
                number += 1
                page_server.cache.put_node(node("n0", cpu=str(number), labels={ZONE_LABEL: "z" * 8_000_000}))
                await anyio.sleep(0.02)


async def test_a_reader_that_has_gone_is_forgotten_though_nothing_changes() -> None:
    page_server = Served()
    async with page_server() as session:
        answer = await session.get(f"{page_server.url}/ui/events")
        await event(answer)
        answer.close()
        await page_server.wait_watchers(0)


async def test_at_the_end_streams_end_at_once() -> None:
    page_server = Served()
    async with aiohttp.ClientSession() as session:
        async with page_server() as inner:
            del inner
            answer = await session.get(f"{page_server.url}/ui/events")
            await event(answer)
        # The body is whole: the stream was not cut.
        await answer.content.read()


async def test_nobody_looks_and_nothing_is_read() -> None:
    page_server = Served()
    async with page_server() as session:
        async with session.get(f"{page_server.url}/ui") as answer:
            assert answer.status == 200
        assert (page_server.contents.read_s, page_server.contents.versions) == (0.0, (0, 0, 0))


@pytest.mark.parametrize(
    ("path", "kind"), [("/ui", "text/html"), ("/ui/page.js", "text/javascript"), ("/ui/page.css", "text/css")]
)
async def test_files_forbid_whatever_they_do_not_need(path: str, kind: str) -> None:
    page_server = Served()
    async with page_server() as session, session.get(f"{page_server.url}{path}") as answer:
        assert answer.content_type == kind
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


async def test_data_needs_the_rights_that_the_queue_needs_and_files_need_none(tmp_path: Path) -> None:
    page_server, tls = Served(), ServingTls(self_signed())
    async with Sandbox(token="admin", kubelets=False) as sandbox:
        credentials = await load(str(sandbox.write_kubeconfig(tmp_path / "kubeconfig")), SystemClock())
        paths = (*AccessOptions().authorization_always_allow_paths, *page_server.page.open_pages)
        options = AccessOptions(authorization_always_allow_paths=paths)
        pages = {**page_server.page.pages, **page_server.page.open_pages}
        async with (
            open_access(options, credentials, tls, SystemClock()) as access,
            serve(
                "127.0.0.1",
                0,
                tls,
                Health(),
                Metrics(),
                dict,
                pages=pages,
                middlewares=[access.middleware],
                listener=socket.create_server(("127.0.0.1", 0)),
            ) as server,
            aiohttp.ClientSession() as session,
        ):
            for path in page_server.page.open_pages:
                async with session.get(f"https://127.0.0.1:{server.port}{path}", ssl=False) as answer:
                    assert answer.status == 200
            for token, status in ((None, 403), ("wrong", 401), ("admin", 200)):
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                url = f"https://127.0.0.1:{server.port}/ui/events"
                async with session.get(url, ssl=False, headers=headers) as answer:
                    assert answer.status == status
