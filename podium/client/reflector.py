"""The reflector: keeps a store in sync with the API server for one resource.

Owns listing, watching, and the reaction to failures of both. The table `reflector_states.TRANSITIONS` says which step
comes next. Never interprets an object, and never stores one.

Source: client-go v0.36 tools/cache/reflector.go.
Differs: the first retry after a broken watch or an expired version is immediate, where client-go waits about a second.
A list is one answer that is decoded as it arrives, not the first events of a watch, which cost the API server about
twice as much; it is always a consistent read (no resourceVersion: never "0", nor the last one seen), so the store
never goes back in time. HTTP/1.1 has no pings, and a load balancer that has lost a connection may still answer
keepalives. So a quiet watch is opened with a short timeout, and its regular end is the sign of life; a watch with
events may last longer. Silence beyond the timeout counts as a dead connection, and the watch is resumed on a new one.
"""

from __future__ import annotations

import math
import urllib.parse
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import TYPE_CHECKING, Final, Generic, cast

import anyio

from podium.client.backoff import Backoff, BackoffPolicy
from podium.client.history_check import RECENT_MAX
from podium.client.list_body import ListBody
from podium.client.list_failures import ListFailures
from podium.client.reflector_states import TRANSITIONS, ReflectorEvent, ReflectorState
from podium.client.requests import LIST_BYTES_MAX
from podium.client.sink import Aside, HistoryObserver, Sink
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.lib.turns import Turns
from podium.objects.api_errors import (
    ApiError,
    BadRequest,
    ConnectionLost,
    Forbidden,
    Gone,
    Invalid,
    Malformed,
    NoResponse,
    NotFound,
    ServerTimeout,
    Unauthorized,
)
from podium.objects.objects_with_json import Keep
from podium.objects.resource_types import ObjectT, ResourceType
from podium.objects.resource_versions import is_older
from podium.objects.wire import DELETED, Bookmark, BrokenObject, ObjectDecoder, Page

if TYPE_CHECKING:
    from podium.client.session import ApiSession
    from podium.client.streams import Stream

log = get_logger("client")

_REFUSALS = (BadRequest, Invalid, Malformed, ServerTimeout)
"""Errors of a list in one piece that a list in pages may avoid."""

_AT_ONCE_S_MAX: Final = 0.2
_LONG_WATCH_S: Final = 5.0
_LISTED_AT_ONCE_EVERY_S: Final = 60.0
_ITEMS_MAX: Final = 2_000_000
"""Ten times as many objects as the largest clusters have of any resource."""

_UNWATCHABLE = (Malformed, BadRequest, Invalid)
"""Errors after which the watch cannot be resumed: the server would refuse the same version again."""


@dataclass(frozen=True, slots=True)
class ReflectorSettings:
    """Limits and times of a reflector.

    After a watch without events, the next one lasts `quiet_watch_s`. A list may be silent for `list_idle_s`; the limit
    doubles each time it is exceeded.
    """

    page_items: int = 500
    watch_s_min: float = 300.0
    watch_s_max: float = 600.0
    quiet_watch_s_min: float = 15.0
    quiet_watch_s_max: float = 20.0
    grace_s: float = 5.0
    idle_s_max: float = 25.0
    list_s_max: float = 120.0
    list_idle_s: float = 30.0
    short_watch_s: float = 1.0
    backoff: BackoffPolicy = field(default_factory=BackoffPolicy)


@dataclass(slots=True)
class ReflectorStatistics:
    """Counters since the start, and the last error."""

    lists_total: int = 0
    watches_total: int = 0
    events_total: int = 0
    failures_total: int = 0
    last_error: ApiError | None = None
    is_failing: bool = False
    """Whether the last list or watch failed, so that the store may be outdated."""


class Reflector(Generic[ObjectT]):
    """Lists, watches, and lists again when needed, until cancelled.

    Invariant: the sink gets every change of an object, or its net effect after a list, in the server's order; never an
    older state after a newer one.
    """

    def __init__(
        self,
        resource: ResourceType[ObjectT],
        session: ApiSession,
        sink: Sink[ObjectT],
        *,
        clock: Clock,
        random: Random,
        on_listed: Callable[[], None] = lambda: None,
        on_absent: Callable[[], None] = lambda: None,
        on_outdated: Callable[[], None] = lambda: None,
        on_delivered: Callable[[float], None] = lambda _: None,
        history_observer: HistoryObserver,
        settings: ReflectorSettings,
        keep: Keep[ObjectT] | None = None,
        failures: ListFailures | None = None,
    ) -> None:
        self.state = ReflectorState.IDLE
        self.statistics = ReflectorStatistics()
        self.resource = resource
        self._session = session
        self._sink = sink
        self._clock = clock
        self._random = random
        self._on_listed = on_listed
        self._on_absent = on_absent
        self._on_outdated = on_outdated
        self._on_delivered = on_delivered
        self._history_observer = history_observer
        self._failures = failures or ListFailures(clock)
        self.recent: deque[ObjectT] = deque(maxlen=RECENT_MAX)
        self.aside: Aside | None = None
        """Takes lines of watches that need not be decoded now."""
        self._settings = settings
        self._decoder = ObjectDecoder(resource, keep)
        self._backoff = Backoff(settings.backoff, random, clock)
        self._resource_version = self._changed_version = self._seen = ""
        self._stream: Stream | None = None
        self._page_items = settings.page_items
        self._list_idle_s = settings.list_idle_s
        self._is_quiet = True
        self._watching_since_s = clock.monotonic()
        self._listed_at_once_s = -math.inf
        self._is_broken = False
        self._is_distrusted = False
        self._stepping: anyio.CancelScope | None = None
        self._steps = {
            ReflectorState.STREAMING_LIST: self._stream_list,
            ReflectorState.PAGING: self._list_pages,
            ReflectorState.WATCHING: self._watch,
        }

    @property
    def version(self) -> str:
        """The last known version of the resource; empty during a list from scratch."""
        return self._seen

    @property
    def is_connected(self) -> bool:
        """Return whether a watch is open."""
        return self.state is ReflectorState.WATCHING and self._stream is not None

    @property
    def is_absent(self) -> bool:
        """Return whether the API server has no such resource."""
        return isinstance(self.statistics.last_error, NotFound)

    async def run(self) -> None:
        """Reflect until cancelled."""
        self.state = TRANSITIONS.next(self.state, ReflectorEvent.STARTED)
        try:
            while True:
                self.state = TRANSITIONS.next(self.state, await self._step())
        finally:
            self._close_stream()

    def list_again(self, *, from_scratch: bool = False) -> None:
        """List at once. A running watch or list is aborted; a list that is being stored is stored first.

        Args:
            from_scratch: the store is not trusted, so that a list with an older version is accepted.
        """
        if self.state is not ReflectorState.IDLE:
            self._is_distrusted = True
            if from_scratch:
                self._seen = ""
                self.recent.clear()
            if self._stepping is not None:
                self._stepping.cancel()

    async def _step(self) -> ReflectorEvent:
        event = ReflectorEvent.DISTRUSTED
        with anyio.CancelScope() as self._stepping:
            try:
                event = await self._steps[self.state]()
            except ApiError as error:
                event = await self._after(error)
        self._stepping = None
        if not self._is_distrusted:
            return event
        self._is_distrusted = False
        self._close_stream()
        return ReflectorEvent.DISTRUSTED

    # ------------------------------------------------------------ steps

    async def _stream_list(self) -> ReflectorEvent:
        """List everything with one request; if that fails, list page by page this time."""
        try:
            with anyio.fail_after(self._settings.list_s_max):
                items, broken_objects, last = await self._read_list()
        except _REFUSALS as refusal:
            return self._refuse(str(refusal))
        except ConnectionLost as torn:
            if isinstance(torn, NoResponse):
                self._list_idle_s = min(2.0 * self._list_idle_s, self._settings.list_s_max)
            if self._stream is None:
                raise
            # An API server aborts requests that take longer than a minute, and would do so again.
            return self._refuse(str(torn))
        except TimeoutError:
            return self._refuse("the list did not end in time")
        self._close_stream()
        if last.continue_token:
            return self._refuse("the server gives pages only")
        return await self._take_list(items, broken_objects, last.resource_version)

    async def _read_list(self) -> tuple[list[ObjectT], list[BrokenObject], Page[ObjectT]]:
        """Return all objects, all broken objects, and the last page."""
        stream = await self._open_stream("", self._settings.list_s_max, self._list_idle_s)
        items: list[ObjectT] = []
        broken_objects: list[BrokenObject] = []
        body = ListBody(self._decoder)
        turns = Turns(self._clock)
        while chunk := await stream.read():
            for piece in body.feed(chunk):
                self._sink.take_early(piece.items)
                items += piece.items
                broken_objects += piece.broken
                self._check_count(len(items))
                if turns.is_over():
                    await turns.next()
        last = body.finish()
        items += last.items
        broken_objects += last.broken
        return items, broken_objects, last

    async def _list_pages(self) -> ReflectorEvent:
        """List page by page."""
        items: list[ObjectT] = []
        broken_objects: list[BrokenObject] = []
        token = ""
        number = 0
        while True:
            number += 1
            page = self._decoder.page(await self._get_page(token))
            items += page.items
            broken_objects += page.broken
            token = page.continue_token
            if not token:
                break
            # A page may be empty, so that pages without end need not hold an object.
            self._check_count(max(len(items), number * self._settings.page_items))
            self._sink.take_early(page.items)
        self._page_items = self._settings.page_items
        return await self._take_list(items, broken_objects, page.resource_version)

    async def _watch(self) -> ReflectorEvent:
        """Deliver changes until the watch ends."""
        self._watching_since_s = started_at_s = self._clock.monotonic()
        events_before = self.statistics.events_total
        if self._is_broken:
            # Nothing has changed between these versions, unless history has gone back meanwhile: then those up to the
            # last bookmark, or up to that of the list, are given again, and what changed at them would be missed.
            self._resource_version = self._changed_version
        was_quiet, stream = self._is_quiet, await self._open_watch()
        self._is_quiet = True
        if self._is_broken:
            self._is_broken = False
            self._history_observer.watch_resumed()
        try:
            while lines := await stream.read_lines():
                await self._deliver(lines)
            self._is_quiet = self.statistics.events_total == events_before
        except NoResponse:
            # A watch that should not have ended yet may simply have had no events.
            tell = log.info if was_quiet else log.debug
            tell("A watch was silent for too long, resuming it", resource=self.resource.plural)
        self._close_stream()
        lasted_s = self._clock.monotonic() - started_at_s
        if lasted_s < self._settings.short_watch_s and self.statistics.events_total == events_before:
            await anyio.sleep(self._backoff.delay_s())
        return ReflectorEvent.ENDED

    # ------------------------------------------------------------ parts of steps

    async def _deliver(self, lines: list[bytes]) -> None:
        decode, sink, statistics = self._decoder.event, self._sink, self.statistics
        turns, started_s, aside = Turns(self._clock), self._clock.monotonic(), self.aside
        for line in lines:
            if aside is not None and (outline := aside.take(line)) is not None:
                # The check of the history reads no more of it than its metadata.
                self.recent.append(cast(ObjectT, outline))
                self._reach(outline.metadata.resource_version, is_change=True)
                statistics.events_total += 1
                if turns.is_over():
                    await turns.next()
                continue
            event = decode(line)
            # The version moves on only after the sink has the change: a cancellation in between loses nothing.
            if isinstance(event, Bookmark):
                self._reach(event.resource_version)
                continue
            item = event.object
            if isinstance(item, BrokenObject):
                sink.mark_broken(item, deleted=event.type == DELETED)
                self._reach(item.resource_version, is_change=True)
            else:
                if event.type == DELETED:
                    sink.drop(item)
                else:
                    sink.put(item)
                self.recent.append(item)
                self._reach(item.metadata.resource_version, is_change=True)
            statistics.events_total += 1
            if turns.is_over():
                await turns.next()
        # Only now: a stream that delivers nothing but an error must not count as a success.
        self._backoff.reset()
        self._on_delivered(self._clock.monotonic() - started_s)

    def _reach(self, version: str, *, is_change: bool = False) -> None:
        """Record the version to resume the watch from: the latest one, even if it is lower than an earlier one.

        Versions of one watch only grow, so a lower one says that history has gone back. A watch that was resumed from
        the last change may give once more what was deleted before the list. But a bookmark says where history is.
        """
        if not version:
            return
        previous, self._resource_version = self._resource_version, version
        if is_change and previous is self._seen and not is_older(version, previous):
            # As nearly all are: the next change of the same watch.
            self._changed_version = self._seen = version
            return
        if is_change or is_older(version, self._changed_version):
            self._changed_version = version
        if is_older(version, previous) or (not is_change and is_older(version, self._seen)):
            self._history_observer.version_went_back(
                f"{self.resource.plural} were known up to version {self._seen or previous}; the watch is at {version}"
            )
        elif is_older(version, self._seen):
            self._history_observer.older_version_seen()
        else:
            self._seen = version

    async def _open_watch(self) -> Stream:
        settings = self._settings
        least_s, most_s = settings.watch_s_min, settings.watch_s_max
        if self._is_quiet:
            least_s, most_s = settings.quiet_watch_s_min, settings.quiet_watch_s_max
        watch_s = int(self._random.uniform(least_s, most_s))
        version = urllib.parse.quote(self._resource_version, safe="")
        stream = await self._open_stream(
            f"watch=1&allowWatchBookmarks=true&timeoutSeconds={watch_s}&resourceVersion={version}",
            watch_s,
            settings.idle_s_max,
        )
        self.statistics.watches_total += 1
        self.statistics.is_failing = False
        return stream

    async def _open_stream(self, query: str, lasts_s: float, idle_s_max: float) -> Stream:
        self._stream = await self._session.stream(
            self._url(query), deadline_s=lasts_s + self._settings.grace_s, idle_s_max=idle_s_max
        )
        return self._stream

    def _check_count(self, count: int) -> None:
        """Check the number of a list's objects. Raises: `Malformed` for too long a list."""
        if count > _ITEMS_MAX:
            raise Malformed(f"a list of more than {_ITEMS_MAX} objects")

    async def _get_page(self, token: str) -> bytes:
        limit = f"limit={self._page_items}" if self._page_items else ""
        query = f"&continue={urllib.parse.quote(token, safe='')}" if token else ""
        return await self._session.request(
            "GET", self._url(limit + query), deadline_s=self._settings.list_s_max, answer_bytes_max=LIST_BYTES_MAX
        )

    def _url(self, query: str) -> str:
        selector = self.resource.field_selector
        field_query = f"fieldSelector={urllib.parse.quote(selector, safe='')}" if selector else ""
        return f"{self.resource.path}?{'&'.join(part for part in (query, field_query) if part)}"

    async def _take_list(
        self, items: list[ObjectT], broken_objects: list[BrokenObject], resource_version: str
    ) -> ReflectorEvent:
        """Store a complete list.

        Raises: `Malformed` if its items are anything but objects, and so say nothing about which objects there are.
        """
        if broken_objects and not items and not any(defect.key for defect in broken_objects):
            raise Malformed(f"a list of {self.resource.plural} without an object in it: {broken_objects[0].detail}")
        self._stepping = None
        self._changed_version = await self._last_change(items, broken_objects) or resource_version
        version_seen, self._seen = self._seen, ""
        self.recent.clear()
        if self.aside is not None:
            await self.aside.release_all()
        older = await self._sink.replace(items, broken_objects)
        self._is_broken = False
        self._resource_version = self._seen = resource_version
        self._list_idle_s = self._settings.list_idle_s
        if version_seen and (older or is_older(resource_version, version_seen)):
            self._history_observer.history_lost(
                f"{self.resource.plural} were known up to version {version_seen}; listed: {older or resource_version}"
            )
        self.statistics.lists_total += 1
        self.statistics.last_error = None
        self._on_listed()
        return ReflectorEvent.LISTED

    async def _last_change(self, items: Iterable[ObjectT], broken_objects: Iterable[BrokenObject]) -> str:
        """Return the version at which one of these objects was changed last; empty if there are none."""
        newest, turns = "", Turns(self._clock)
        read = (item.metadata.resource_version for item in items)
        for version in chain(read, (defect.resource_version for defect in broken_objects)):
            if is_older(newest, version):
                newest = version
            if turns.is_over():
                await turns.next()
        return newest

    def _refuse(self, reason: str) -> ReflectorEvent:
        log.debug("Cannot list in one piece, listing pages", resource=self.resource.plural, why=reason)
        self._close_stream()
        return ReflectorEvent.REFUSED

    def _close_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    # ------------------------------------------------------------ failures

    async def _after(self, error: ApiError) -> ReflectorEvent:
        """Wait as the error requires, and return the event that it stands for."""
        self._close_stream()
        self.statistics.failures_total += 1
        self._is_broken = True
        was_absent, self.statistics.last_error = self.is_absent, error
        self.statistics.is_failing = True
        expired = isinstance(error, Gone) or (isinstance(error, _UNWATCHABLE) and self.state is ReflectorState.WATCHING)
        if expired and self.state is ReflectorState.PAGING:
            # Listing the pages takes longer than the server keeps their version: list in one piece.
            self._page_items = 0
        if isinstance(error, NotFound):
            self._on_absent()
        delay_s = self._delay_s(error, expired=expired)
        if not was_absent:
            self._failures.log(self.resource.plural, error, self.state.value, delay_s)
        await anyio.sleep(delay_s)
        return ReflectorEvent.EXPIRED if expired else ReflectorEvent.FAILED

    def _delay_s(self, error: ApiError, *, expired: bool) -> float:
        if self.state is ReflectorState.WATCHING:
            now_s = self._clock.monotonic()
            if expired and now_s - self._listed_at_once_s > _LISTED_AT_ONCE_EVERY_S:
                self._listed_at_once_s = now_s
                self._on_outdated()
                return self._random.uniform(0.0, _AT_ONCE_S_MAX)
            if isinstance(error, ConnectionLost) and now_s - self._watching_since_s > _LONG_WATCH_S:
                return self._random.uniform(0.0, _AT_ONCE_S_MAX)
        if isinstance(error, (Unauthorized, Forbidden, NotFound)):
            return self._backoff.delay_s(at_least_s=self._settings.backoff.refused_s)
        is_synced = self.statistics.lists_total > 0
        return self._backoff.delay_s(at_least_s=error.retry_after_s or 0.0, is_synced=is_synced)
