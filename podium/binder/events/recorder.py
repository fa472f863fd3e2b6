"""Writes Events to the API server.

Owns the bounded queue of Events, the series of repeated Events, the retries and their limit. Never blocks a caller: an
Event that finds the queue full is dropped and counted.

Source: client-go v0.36 tools/events/event_broadcaster.go and event_recorder.go.
Differs: the queue holds 20,000 Events, not 1,000: bindings go first, so the Events of a large backlog wait longer here;
Events that cannot repeat are not remembered, and at most 10,000 series are; a series that continues is written only
if repetitions were added; counts not yet written are written at the end.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final

import anyio
import anyio.abc
import msgspec

from podium.binder.events.event import Event
from podium.client.answers import check_object
from podium.client.dispatcher import Dispatcher, Priority
from podium.client.requests import STRATEGIC_MERGE_PATCH
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import (
    AlreadyExists,
    ApiError,
    ConnectionLost,
    Malformed,
    NotFound,
    OutcomeUnknown,
    Unreachable,
)
from podium.objects.meta import ObjectMeta
from podium.objects.times import format_micro_time

log = get_logger("binder")

_API_VERSION: Final = "events.k8s.io/v1"
_KIND: Final = "Event"
_QUEUE_MAX: Final = 20_000
_SERIES_MAX: Final = 10_000
_WORKERS: Final = 48
_SHARE: Final = 2
"""A namespace may occupy the idle writers divided by this: a third of all writers, if it is the only namespace."""
_TRIES_MAX: Final = 12
_RETRY_S: Final = 10.0
_SERIES_IDLE_S: Final = 6 * 60.0
_SERIES_REFRESH_S: Final = 30 * 60.0
_SWEEP_S: Final = 60.0
_NAME_LENGTH_MAX: Final = 253
_INSTANCE_LENGTH_MAX: Final = 128
_TRANSPORT = (Unreachable, OutcomeUnknown, ConnectionLost, Malformed)

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class RecorderStatistics:
    """Counters since the start, the number of Events that wait or are being written, and of series remembered."""

    written_total: int
    dropped_total: int
    given_up_total: int
    open: int
    series: int


@dataclass(slots=True, eq=False)
class _Series:
    """An Event and its repetitions.

    Units: `first_s` and `last_s` are seconds since the epoch, for the API; `seen_s` and `written_s` are on the
        monotonic clock, since a wall clock may be set.
    `written_count` is the count that was last sent; 0 before the first.
    """

    event: Event
    name: str
    namespace: str
    first_s: float
    last_s: float
    seen_s: float
    count: int = 1
    written_count: int = 0
    written_s: float = 0.0
    is_queued: bool = False


class EventRecorder:
    """Queues Events at once and writes them when the dispatcher allows it.

    Args:
        hostname: the last part of `reportingInstance`.
        retry_s: the time between two of the twelve tries of an Event while the server cannot be reached.
        is_muted: while it is true, Events are dropped: the leader records the same ones.

    Cost: below 5 us to record an Event.
    Invariant: at most one worker writes a series at a time, so that its patch cannot overtake its creation.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        clock: Clock,
        *,
        hostname: str,
        queue_max: int = _QUEUE_MAX,
        workers: int = _WORKERS,
        retry_s: float = _RETRY_S,
        is_muted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._dispatcher = dispatcher
        self._clock = clock
        self._hostname = hostname
        self._workers = workers
        self._retry_s = retry_s
        self._is_muted = is_muted
        self._queue: deque[_Series] = deque()
        self._waiting_workers: list[asyncio.Future[None]] = []
        self._all_written: anyio.Event | None = None
        self._series: dict[Hashable, _Series] = {}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._is_closed = False
        self._last_ns = 0
        self._written_total = self._dropped_total = self._given_up_total = 0
        self._open = 0
        self._queue_max = queue_max
        self._idle_workers = workers
        self._writers: Counter[str] = Counter()
        self._held: dict[str, deque[_Series]] = {}
        self._reported: set[type[ApiError]] = set()

    def record(self, event: Event) -> None:
        """Queue the Event, or drop it if the queue is full; return at once."""
        if self._is_muted():
            return
        if event.is_unique:
            self._enqueue(self._new(event))
            # Each attempt at a pod would otherwise be an object of its own in etcd; a series is one that is patched.
            return
        seen_s = self._clock.monotonic()
        identity = event.identity
        series = self._series.get(identity)
        if series is not None and seen_s - series.seen_s < _SERIES_IDLE_S:
            series.count += 1
            series.last_s, series.seen_s = self._clock.now(), seen_s
            # The second one begins the series at once, as in client-go; later ones wait for the sweep.
            if series.count == 2 and not series.is_queued:
                self._enqueue(series)
            return
        series = self._new(event)
        if self._enqueue(series) and len(self._series) < _SERIES_MAX:
            self._series[identity] = series

    async def run(self) -> None:
        """Write Events until `aclose` or cancellation."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for index in range(self._workers):
                tasks.start_soon(self._work, name=f"event writer {index}")
            while True:
                await anyio.sleep(_SWEEP_S)
                self._sweep()

    async def aclose(self, deadline_s: float) -> int:
        """Accept no more Events, write the queued ones, and end `run`, which must be running until then.

        Returns:
            The number of Events not written by the deadline.
        """
        # Their last counts would be lost with the process.
        for series in self._series.values():
            if series.count > series.written_count and not series.is_queued:
                self._enqueue(series)
        self._is_closed = True
        with anyio.move_on_after(deadline_s, shield=True):
            if self._open:
                self._all_written = anyio.Event()
                await self._all_written.wait()
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()
        return self._open

    def statistics(self) -> RecorderStatistics:
        """Return the current gauges and counters."""
        return RecorderStatistics(
            written_total=self._written_total,
            dropped_total=self._dropped_total,
            given_up_total=self._given_up_total,
            open=self._open,
            series=len(self._series),
        )

    def _new(self, event: Event) -> _Series:
        now_s = self._clock.now()
        # Two Events about one object in the same instant must not get the same name.
        self._last_ns = max(int(now_s * 1e9), self._last_ns + 1)
        regarding = event.regarding
        name = f"{regarding.name}.{self._last_ns:x}"
        # An Event's name must be a DNS subdomain of limited length, which a pod's name may fill by itself.
        if len(name) > _NAME_LENGTH_MAX:
            name = f"{regarding.uid}.{self._last_ns:x}"
        return _Series(event, name, regarding.namespace or "default", now_s, now_s, self._clock.monotonic())

    def _enqueue(self, series: _Series) -> bool:
        if self._is_closed or self._open >= self._queue_max:
            self._dropped_total += 1
            return False
        series.is_queued = True
        self._open += 1
        self._queue.append(series)
        while self._waiting_workers:
            turn = self._waiting_workers.pop()
            if not turn.done():
                turn.set_result(None)
                break
        return True

    def _sweep(self) -> None:
        """Drop the series that have ended, and write the current counts of those that continue."""
        now_s = self._clock.monotonic()
        for identity, series in tuple(self._series.items()):
            has_ended = now_s - series.seen_s >= _SERIES_IDLE_S
            if has_ended:
                del self._series[identity]
            is_due = has_ended or now_s - series.written_s >= _SERIES_REFRESH_S
            if is_due and series.count > series.written_count and not series.is_queued:
                self._enqueue(series)

    async def _work(self) -> None:
        while True:
            series = self._queue.popleft() if self._queue else await self._next()
            namespace = series.namespace
            if self._writers[namespace] * _SHARE >= self._idle_workers:
                # The namespace's present writers write it later: a slow namespace must not occupy all writers.
                self._held.setdefault(namespace, deque()).append(series)
                continue
            self._writers[namespace] += 1
            self._idle_workers -= 1
            try:
                await self._write_for(namespace, series)
            finally:
                self._idle_workers += 1
                self._writers[namespace] -= 1
                if not self._writers[namespace]:
                    del self._writers[namespace]

    async def _next(self) -> _Series:
        """Return the next series, when one is queued. asyncio's queue would cost 2 us more for each."""
        while not self._queue:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting_workers.append(turn)
            await turn
        return self._queue.popleft()

    async def _write_for(self, namespace: str, series: _Series) -> None:
        """Write a series, and then the series of the namespace that were held back."""
        while True:
            try:
                await self._write(series)
                # A repetition that was recorded while the first Event was being written has not been queued.
                if series.written_count == 1 and series.count > 1:
                    await self._write(series)
            finally:
                series.is_queued = False
                self._open -= 1
                if not self._open and self._all_written is not None:
                    self._all_written.set()
            backlog = self._held.get(namespace)
            if backlog is None:
                return
            series = backlog.popleft()
            if not backlog:
                del self._held[namespace]

    async def _write(self, series: _Series) -> None:
        """Write the current state of a series; retry as long as the server cannot be reached."""
        for tries_left in reversed(range(_TRIES_MAX)):
            # Repetitions during the request count for the next write.
            count = series.count
            try:
                await self._send(series)
            except ApiError as error:
                # A server that answers with an error has decided, and would answer the same again.
                if tries_left and isinstance(error, _TRANSPORT):
                    await anyio.sleep(self._retry_s)
                    continue
                self._give_up(series, error)
            else:
                self._written_total += 1
            series.written_count, series.written_s = count, self._clock.monotonic()
            return

    async def _send(self, series: _Series) -> None:
        path = f"/apis/{_API_VERSION}/namespaces/{series.namespace}/events"
        if series.written_count:
            patch = _encode({"series": _counts(series)})
            try:
                answer = await self._dispatcher.send(
                    Priority.EVENT,
                    "PATCH",
                    f"{path}/{series.name}",
                    patch,
                    content_type=STRATEGIC_MERGE_PATCH,
                    namespace=series.namespace,
                )
                _check(answer, series)
                return
            except NotFound:
                pass  # Events expire on the server: start a new series.
        body = _encode(self._body(series))
        try:
            answer = await self._dispatcher.send(Priority.EVENT, "POST", path, body, namespace=series.namespace)
        except AlreadyExists:
            return  # an earlier try has succeeded after all
        _check(answer, series)

    def _body(self, series: _Series) -> dict[str, Any]:
        event = series.event
        body = {
            "apiVersion": _API_VERSION,
            "kind": _KIND,
            "metadata": {"name": series.name, "namespace": series.namespace},
            "eventTime": format_micro_time(series.first_s),
            "reportingController": event.reporting_controller,
            # The API refuses a longer instance.
            "reportingInstance": f"{event.reporting_controller}-{self._hostname}"[:_INSTANCE_LENGTH_MAX],
            "action": event.action,
            "reason": event.reason,
            "regarding": event.regarding,
            "note": event.note,
            "type": event.type,
        }
        if event.related is not None:
            body["related"] = event.related
        if series.count > 1:
            body["series"] = _counts(series)
        return body

    def _give_up(self, series: _Series, error: ApiError) -> None:
        """Count the failure; each kind of error is logged once, not for every Event."""
        self._given_up_total += 1
        if type(error) not in self._reported:
            self._reported.add(type(error))
            log.warning(
                "An event could not be written; others that fail in the same way are only counted",
                regarding=f"{series.namespace}/{series.event.regarding.name}",
                reason=series.event.reason,
                error=str(error),
            )


def _check(answer: bytes, series: _Series) -> None:
    """Check that the response is the Event. Raises: `Malformed`."""
    check_object(answer, _API_VERSION, _KIND, ObjectMeta(name=series.name, namespace=series.namespace))


def _counts(series: _Series) -> dict[str, Any]:
    return {"count": series.count, "lastObservedTime": format_micro_time(series.last_s)}
