"""Serves the live page: its files without authorization, and /ui/events, the stream of changes, to authorized readers.

/ui is the page, /ui/page.js and /ui/page.css belong to it: none holds anything of the cluster. A stream of changes ends
after a while, so that access is reviewed again; the page then asks for another.

Nothing is kept for a reader but how far it has read: a slow one gets fewer and larger events, and one that takes none
for a while is dropped.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Final

import anyio
import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

import podium
from podium.daemon.live_page.contents import Contents, Versions
from podium.lib.clock import Clock
from podium.server.serving.server import Pages

WATCHERS_MAX: Final = 16
_TICK_S: Final = 0.25
_SHARE_MAX: Final = 0.05
"""Reading takes this share of the time at most: where it is long, it is done less often."""
_STREAM_S_MAX: Final = 100.0
_SILENCE_S_MAX: Final = 5.0
_WRITE_S_MAX: Final = 10.0
_FILES: Final = {
    "/ui": ("text/html", "page.html"),
    "/ui/page.js": ("text/javascript", "page.js"),
    "/ui/page.css": ("text/css", "look.css", "page.css"),
}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache, private",
}


class LivePage:
    """Answers the requests of the page.

    Args:
        about: told once at the begin of each stream.
        stream_s_max: how long a stream lasts.
    """

    def __init__(
        self, contents: Contents, clock: Clock, about: dict[str, Any], *, stream_s_max: float = _STREAM_S_MAX
    ) -> None:
        self._contents = contents
        self._clock = clock
        self._about = {"version": podium.__version__, **about}
        self._stream_s_max = stream_s_max
        self._reading = anyio.Lock()
        self._read_next_s = 0.0
        self._stopping = anyio.Event()
        self.watchers = 0

    @property
    def pages(self) -> Pages:
        """The stream."""
        return {"/ui/events": self.events}

    @property
    def open_pages(self) -> Pages:
        """The files."""
        return {path: _file(content_type, *names) for path, (content_type, *names) in _FILES.items()}

    async def run(self) -> None:
        """Wait until cancelled, and then end all streams: the server would wait for them."""
        try:
            await anyio.sleep_forever()
        finally:
            self._stopping.set()

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Queue, decisions and nodes as server-sent events, with `--ui`.

        Each is one JSON object with the changes since the one before, the first one with everything. 503 if too many
        watch.
        """
        if self.watchers >= WATCHERS_MAX:
            text = f"{WATCHERS_MAX} streams are open already\n"
            raise web.HTTPServiceUnavailable(text=text, headers={"Retry-After": "10"})
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        self.watchers += 1
        try:
            await response.prepare(request)
            await self._stream(request, response)
        except ConnectionError:
            pass  # The reader has gone.
        finally:
            self.watchers -= 1
        return response

    async def _stream(self, request: web.Request, response: web.StreamResponse) -> None:
        ends_s = self._clock.monotonic() + self._stream_s_max
        versions, told_s, first = Versions(), 0.0, self._about
        while not self._stopping.is_set() and (now_s := self._clock.monotonic()) < ends_s:
            await self._refresh()
            contents = self._contents
            if first or contents.versions != versions or now_s - told_s >= _SILENCE_S_MAX:
                event, versions, told_s, first = self._event(versions, first), contents.versions, now_s, {}
                if not await _is_written(event, request, response):
                    return
            with anyio.move_on_after(_TICK_S):
                await self._stopping.wait()
            if request.transport is None:
                return  # The reader has gone.

    async def _refresh(self) -> None:
        """Read the contents anew, once for all who look."""
        async with self._reading:
            begin_s = self._clock.monotonic()
            if begin_s < self._read_next_s:
                return
            await self._contents.read()
            spent_s = self._clock.monotonic() - begin_s
            # A little less than a tick: else the first stream reads, and the others show it one tick later.
            self._read_next_s = begin_s + max(_TICK_S * 0.9, spent_s / _SHARE_MAX)

    def _event(self, seen_versions: Versions, about: dict[str, Any]) -> bytes:
        contents = self._contents
        answer: dict[str, Any] = {
            "at": contents.read_s,
            "leader": contents.leader,
            "counts": contents.counts,
            "attempts": contents.attempts,
        }
        if about:
            answer["about"] = about
        tables = {"queue": contents.queue, "decisions": contents.decisions, "nodes": contents.nodes}
        for (name, table), version in zip(tables.items(), seen_versions, strict=True):
            if about or table.version != version:
                answer[name] = orjson.Fragment(table.changes(version))
        return b"data: " + orjson.dumps(answer) + b"\n\n"


async def _is_written(event: bytes, request: web.Request, response: web.StreamResponse) -> bool:
    """Return True if the reader takes the event in time; else cut its connection."""
    with anyio.move_on_after(_WRITE_S_MAX):
        await response.write(event)
        return True
    if request.transport is not None:
        request.transport.abort()
    return False


def _file(content_type: str, *names: str) -> Handler:
    body = b"".join(files("podium.daemon.live_page").joinpath(name).read_bytes() for name in names)

    async def show(_: web.Request) -> web.Response:
        """Return a file of the live page, with `--ui`."""
        return web.Response(body=body, content_type=content_type, charset="utf-8", headers=_HEADERS)

    return show
