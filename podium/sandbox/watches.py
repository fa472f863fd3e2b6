"""One open watch: a cursor into a collection's history, a selection, and lines of JSON.

Source: KEP-365 (bookmarks: KEP-956; streaming lists: KEP-3157); apiserver pkg/storage/cacher (v0.36).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import orjson
from aiohttp import web

from podium.sandbox.errors import ApiError, bad_request, expired
from podium.sandbox.journal import ADDED, DELETED, MODIFIED, Change, Collection, Record
from podium.sandbox.presentation import Presentation
from podium.sandbox.requests import ResourceRequest, flag
from podium.sandbox.selectors import Selection
from podium.sandbox.store import Store

_HEAD = {kind: b'{"type":"' + kind.encode() + b'","object":' for kind in (ADDED, MODIFIED, DELETED)}

_BOOKMARK_BEFORE_END_S = 2.0


class Watch:
    """Streams the changes of one selection to one client, until the timeout, the client or a fault ends it."""

    def __init__(
        self,
        store: Store,
        collection: Collection,
        selection: Selection,
        presentation: Presentation,
        request: ResourceRequest,
        bookmark_interval_s: float,
    ) -> None:
        self.resource = request.resource
        self._store = store
        self._collection = collection
        self._selection = selection
        self._presentation = presentation
        self._options = _Options(request)
        self._bookmark_interval_s = bookmark_interval_s
        self._wake = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._ending: str | None = None
        # After a rewind this revision may be in the future. Then no event is sent before that revision comes again.
        self._seen = int(self._options.revision or 0)
        self._cursor, self._initial = self._start()

    @property
    def cut(self) -> bool:
        """Return whether a fault requires the connection to be cut instead of closed in order."""
        return self._ending in ("drop", "mid-line")

    def end(self, kind: str) -> None:
        """End the watch: "drop" cuts the connection, "mid-line" within a line, "gone" after a 410 event."""
        self._ending = kind
        self._wake.set()

    async def stream(self, response: web.StreamResponse) -> None:
        """Write events until the watch is over."""
        loop = asyncio.get_running_loop()
        end_at = loop.time() + self._options.timeout_s
        bookmark_at = self._next_bookmark(loop.time(), end_at) if self._options.bookmarks else end_at
        self._collection.listeners[self._wake.set] = None
        try:
            if self._initial:
                await response.write(self._initial)
            self._initial = b""
            while self._ending is None and loop.time() < end_at:
                self._wake.clear()
                lines = self._read()
                # A bookmark vouches for all changes up to its revision, so no await may come between the two.
                if bookmark_at <= loop.time():
                    lines += self._bookmark()
                    bookmark_at = self._next_bookmark(loop.time(), end_at)
                if lines:
                    await response.write(lines)
                self._alarm = self._alarm or loop.call_at(min(end_at, bookmark_at), self._ring)
                await self._wake.wait()
            if self._ending is not None:
                await self._finish(response)
        except ApiError as error:
            await response.write(_error_line(error))
        except ConnectionResetError:
            self._ending = "drop"  # The client has disconnected, which is how watches usually end.
        finally:
            self._collection.listeners.pop(self._wake.set, None)
            if self._alarm is not None:
                self._alarm.cancel()

    def _next_bookmark(self, time_s: float, end_at: float) -> float:
        """Return the time of the next bookmark: one per interval, and one shortly before the end for the next watch."""
        regular_at, last_at = time_s + self._bookmark_interval_s, end_at - _BOOKMARK_BEFORE_END_S
        return min(regular_at, last_at) if last_at > time_s else regular_at

    def _ring(self) -> None:
        # The timer may fire slightly early (uvloop's clock counts milliseconds). Then it is set again.
        self._alarm = None
        self._wake.set()

    async def _finish(self, response: web.StreamResponse) -> None:
        if self._ending == "gone":
            await response.write(_error_line(expired("too old resource version: the history was compacted")))
        elif self._ending == "mid-line":
            await response.write(self._bookmark()[:40])

    def _start(self) -> tuple[int, bytes]:
        options, collection = self._options, self._collection
        if options.initial_events or (options.initial_events is None and options.revision in ("", "0")):
            records = [collection.records[key] for key in collection.sorted_keys()]
            lines = [self._line(ADDED, record) for record in records if self._selection.matches(record.obj)]
            if options.initial_events and options.bookmarks:
                lines.append(self._bookmark(initial_events_end=True))
            return collection.end, b"".join(lines)
        if options.revision in ("", "0"):
            return collection.end, b""
        return collection.cursor_after(int(options.revision)), b""

    def _read(self) -> bytes:
        changes = self._collection.changes_from(self._cursor)
        self._cursor += len(changes)
        return b"".join(self._lines(changes))

    def _lines(self, changes: list[Change]) -> Iterator[bytes]:
        matches, selective = self._selection.matches, self._selection.selective
        for change in changes:
            if change.revision <= self._seen:
                continue
            kind, record, previous = change.type, change.record, change.previous
            if not selective:
                if matches(record.obj):
                    yield self._line(kind, record)
                continue
            matches_now = kind != DELETED and matches(record.obj)
            matched_before = previous is not None and matches(previous.obj)
            if matches_now:
                yield self._line(MODIFIED if matched_before else ADDED, record)
            elif matched_before and previous is not None:
                yield self._line(DELETED, record if kind == DELETED else _departed_record(previous, record))

    def _line(self, kind: str, record: Record) -> bytes:
        return _HEAD[kind] + self._presentation.one(record) + b"}\n"

    def _bookmark(self, *, initial_events_end: bool = False) -> bytes:
        obj = self._presentation.bookmark(self._store.revision, initial_events_end=initial_events_end)
        return b'{"type":"BOOKMARK","object":' + obj + b"}\n"


def _departed_record(previous: Record, record: Record) -> Record:
    metadata = previous.obj["metadata"] | {"resourceVersion": str(record.revision)}
    return Record(record.key, previous.obj | {"metadata": metadata}, record.revision)


def _error_line(error: ApiError) -> bytes:
    return b'{"type":"ERROR","object":' + orjson.dumps(error.status()) + b"}\n"


class _Options:
    """The watch parameters of a request."""

    __slots__ = ("bookmarks", "initial_events", "revision", "timeout_s")

    def __init__(self, request: ResourceRequest) -> None:
        query = request.query
        self.bookmarks = flag(query, "allowWatchBookmarks")
        self.revision = query.get("resourceVersion", "")
        if not (self.revision.isdecimal() or self.revision == ""):
            raise bad_request(f"resourceVersion: Invalid value: {self.revision!r}")
        initial_events = query.get("sendInitialEvents")
        self.initial_events = None if initial_events is None else flag(query, "sendInitialEvents")
        match_rule = query.get("resourceVersionMatch")
        if (initial_events is None) is not (match_rule is None) or match_rule not in (None, "NotOlderThan"):
            message = "sendInitialEvents requires resourceVersionMatch=NotOlderThan, and the other way round"
            raise ApiError(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {message}')
        timeout = query.get("timeoutSeconds", "")
        self.timeout_s = int(timeout) if timeout.isdecimal() and timeout != "0" else 3600
