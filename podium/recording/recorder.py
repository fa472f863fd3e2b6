"""Records what crosses the daemon's boundary as entries, which a thread writes.

Owns which tasks are recorded and how they are numbered. The event loop only appends a value and its kind to lists; the
thread encodes, compresses and writes. Never disturbs scheduling: if the disk is full or slow, or the files are deleted,
the recording ends with one warning.

Cost: two appends per entry, about fifteen entries per attempt; and the thread's work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import Any, Final, TypeVar

from podium.binder import ApiClient
from podium.client.dispatcher import Compose, Dispatcher
from podium.client.informer import Informer
from podium.daemon.boundary import Boundary, StoresState
from podium.engine.flight_recorder import AttemptObserver
from podium.engine.group_decisions import MemberDecision
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.cycle.cycle import Cycle
from podium.lib.clock import Clock
from podium.lib.error_text import error_text
from podium.lib.log import get_logger
from podium.lib.system_clock import SystemClock
from podium.objects.core import Pod, PodCondition
from podium.objects.pod_groups import PodGroup
from podium.objects.resource_types import PODS, KubeObject, ObjectT, ResourceType
from podium.objects.wire import BrokenObject
from podium.recording import entries
from podium.recording.columns import ColumnWriter, EntryBuffer, LeftOut
from podium.recording.decisions import recorded_decision
from podium.recording.hashed_names import NameHasher
from podium.recording.segments import LeftOutList, SegmentWriter, SizeLimit
from podium.server.supervision import Tasks

log = get_logger("recorder")

T = TypeVar("T")

_FLUSH_EVERY_S: Final = 0.5
_BLOCK_ENTRIES_MAX: Final = 4_000
"""Encoding a block holds the GIL for a millisecond or two, in which the event loop hardly runs."""
_WAITING_MAX: Final = 2_000_000
"""With more entries, the disk is too slow, and the recording ends before memory does."""


class Recorder(Boundary, AttemptObserver):
    """Records one run of a scheduler. Create it before the scheduler.

    Attributes:
        failure: why the recording ended before the run, but for its limit; "" if it did not.
        is_full: it has ended because its next block would have exceeded `bytes_max`.
        left_out: the changes of objects that are not written, since a reader would refuse them.

    Args:
        description: the configuration and options that a replay needs, as JSON values.
        hasher: hashes names.
        bytes_max: the limit of its size; None for no limit.

    Raises:
        RecordingError: the directory already holds a recording.
        OSError: the directory cannot be written.
    """

    def __init__(
        self,
        directory: Path,
        description: dict[str, Any],
        hasher: NameHasher | None = None,
        *,
        bytes_max: int | None = None,
    ) -> None:
        self._buffer = EntryBuffer()
        self.note, self.noting, self.note_put = self._buffer.note, self._buffer.noting, self._buffer.note_put
        self._clock = SystemClock()
        self.left_out = LeftOutList()
        self._column_writer = ColumnWriter(hasher, self._leave_out)
        description = description if hasher is None else hasher.description(description)
        self._writer = SegmentWriter(directory, description, bytes_max=bytes_max)
        self._directory = directory
        self._has_ended = self.is_full = False
        self.failure = ""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write_all, name="recorder", daemon=True)
        self._thread.start()
        self.current: RecordedTask | None = None
        self.note_step: Callable[[int], None] = self._buffer.noting_steps(lambda: 0.0)
        self._tasks = self._roots = self._calls = self._signals = 0

    # ------------------------------------------------------------ the boundary

    def clock(self, clock: Clock) -> Clock:
        """Return a clock whose readings are recorded."""
        return _RecordedClock(self, clock)

    def random(self, random: Random) -> Random:
        """Return a random source whose numbers are recorded."""
        return _RecordedRandom(self, random)

    def api_client(self, dispatcher: Dispatcher, clock: Clock) -> ApiClient:
        """Return a client whose answers are recorded."""
        return _RecordedClient(self, dispatcher, clock)

    def stores(self, state: StoresState) -> StoresState:
        """Return the stores' state, with its readings recorded."""
        return _RecordedStores(self, state)

    def reading(self, read: Callable[[], T]) -> Callable[[], T]:
        """Return the function, with its results recorded."""
        return self.noting(entries.READ, read)

    def signal(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Return the callback, with its calls recorded."""
        number = self._signals
        self._signals += 1

        def note_and_tell() -> None:
            self.note(entries.SIGNAL, number)
            tell()

        return note_and_tell

    def add_informer(self, informer: Informer[Any]) -> None:
        """Record the watch events of the informer."""
        informer.add_handler(_RecordedWatch(self, informer.resource.path))

    def tasks(self, tasks: Tasks) -> Tasks:
        """Return the tasks, with their steps and those of all tasks that they start recorded."""
        loop = asyncio.get_running_loop()
        loop.set_task_factory(self._make_task)  # type: ignore[arg-type]
        self.note_step = self._buffer.noting_steps(loop.time)

        def record(number: int, run: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
            async def run_task() -> None:
                await run()

            return lambda: RecordedTask(self, number, run_task())

        tasks = {name: record(self.next_task(), run) for name, run in tasks.items()}
        self._roots = self._tasks
        return tasks

    def stopping(self) -> None:
        """Record the end of scheduling; later entries are dropped."""
        self.note(entries.END, None)

    # ------------------------------------------------------------ the attempts

    def on_decision(
        self, info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision, started_s: float, seconds: float
    ) -> None:
        """Record a decision."""
        self.note(entries.DECIDED, recorded_decision(cycle, decision))

    def on_failure(self, pod: Pod, result: str, message: str, seconds: float) -> None:
        """Record why a pod was not scheduled."""
        self.note(entries.FAILED, (pod.uid, result, message))

    # ------------------------------------------------------------ tasks and calls

    def on_cancel(self, task: int) -> None:
        """Record the end of scheduling, if the cancelled task is one of the scheduler's own."""
        if task <= self._roots:
            self.stopping()

    def note_time(self) -> None:
        """Record the event loop's time if it has changed: the next step sets its timers from it."""
        self.note_step(0)

    def next_task(self) -> int:
        """Return the number of a new task."""
        self._tasks += 1
        return self._tasks

    def next_call(self) -> int:
        """Return the number of a new call."""
        self._calls += 1
        return self._calls

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        """Make a task; it is recorded if a recorded task starts it, but not from within a call of the API client."""
        current = self.current
        if current is not None and not current.is_in_call:
            coroutine = RecordedTask(self, self.next_task(), coroutine)
        return asyncio.Task(coroutine, loop=loop, **options)

    # ------------------------------------------------------------ writing

    def close(self) -> None:
        """Write the remaining entries, and end the recording."""
        self._closing.set()
        self._thread.join()
        if self.left_out.count:
            log.warning("The recording is incomplete", directory=str(self._directory), error=str(self.left_out))

    def _write_all(self) -> None:
        is_closing = False
        while not is_closing:
            is_closing = self._closing.wait(_FLUSH_EVERY_S)
            self._write_waiting_or_give_up()
        # Flushes again what a full disk did not take.
        with suppress(OSError):
            self._writer.close()

    def _write_waiting_or_give_up(self) -> None:
        try:
            self._write_waiting()
        except SizeLimit as limit:
            self.is_full = self._has_ended = True
            # Its last block is whole, so it can be replayed up to here.
            log.warning("The recording has ended: it is full", directory=str(self._directory), error=str(limit))
        except Exception as error:  # noqa: BLE001 - without this thread, the entries would fill the memory
            self._give_up(error_text(error))

    def _write_waiting(self) -> None:
        """Write the entries so far; after the end, drop them."""
        count = len(self._buffer)
        if count > _WAITING_MAX and not self._has_ended:
            raise OSError("it does not take entries as fast as they come")
        while count > 0:
            kinds, columns = self._buffer.take(_BLOCK_ENTRIES_MAX)
            count -= len(kinds)
            if self._has_ended:
                continue
            self._has_ended = entries.END in kinds
            for content in self._column_writer.contents(kinds, columns):
                self._writer.write(content, self._clock.monotonic())

    def _leave_out(self, left_out: LeftOut) -> None:
        self.left_out.add(left_out)
        # Bounded: anyone who may create pods could flood the log. `close` logs the number.
        if self.left_out.count == len(self.left_out.examples):
            log.warning("Left out of the recording", kind=left_out.kind, key=left_out.key, error=left_out.why)

    def _give_up(self, reason: str) -> None:
        self.failure, self._has_ended = reason, True
        log.warning("The recording has ended: it cannot be written", directory=str(self._directory), error=reason)


class RecordedTask(Coroutine[Any, Any, Any]):
    """A coroutine that records its steps.

    Attributes:
        is_in_call: it waits for the API client, whose steps are not recorded.
    """

    __slots__ = ("_coroutine", "_number", "_recorder", "_send", "is_in_call")

    def __init__(self, recorder: Recorder, number: int, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._recorder = recorder
        self._number = number
        self._coroutine = coroutine
        self._send = coroutine.send
        self.is_in_call = False

    def __next__(self) -> Any:
        """Take the next step, as a task does."""
        # As `_step`, without its calls: nearly all steps of all tasks are these.
        recorder = self._recorder
        if not self.is_in_call:
            recorder.note_step(self._number)
        recorder.current = self
        try:
            return self._send(None)
        finally:
            recorder.current = None

    def send(self, value: Any) -> Any:
        """Take the next step with a value."""
        return self._step(self._send, value)

    def throw(self, *error: Any) -> Any:
        """Take the next step with an exception, usually a cancellation."""
        self._recorder.on_cancel(self._number)
        return self._step(self._coroutine.throw, *error)

    def close(self) -> None:
        """End without another step."""
        self._coroutine.close()

    def _step(self, advance: Callable[..., Any], *arguments: Any) -> Any:
        recorder = self._recorder
        if not self.is_in_call:
            recorder.note_step(self._number)
        recorder.current = self
        try:
            return advance(*arguments)
        finally:
            recorder.current = None

    def __await__(self) -> RecordedTask:
        """Return itself: a task is its own iterator."""
        return self

    def __iter__(self) -> RecordedTask:
        """Return itself: a task is its own iterator."""
        return self

    # Inspection reads these of a coroutine. A `__getattr__` would slow down every other attribute.
    cr_await = property(attrgetter("_coroutine.cr_await"))
    cr_code = property(attrgetter("_coroutine.cr_code"))
    cr_frame = property(attrgetter("_coroutine.cr_frame"))
    cr_running = property(attrgetter("_coroutine.cr_running"))
    cr_suspended = property(attrgetter("_coroutine.cr_suspended"))


class _RecordedClock:
    """Implements `podium.lib.clock.Clock`."""

    def __init__(self, recorder: Recorder, clock: Clock) -> None:
        self.now = recorder.noting(entries.NOW, clock.now)
        self.monotonic = recorder.noting(entries.MONOTONIC, clock.monotonic)


class _RecordedRandom(entries.EntryRandom):
    """Records the draws of another source. The other methods of `Random` derive from these two."""

    # `Random` would draw fractions for integers, because this class overrides `random`; without a recorder it draws
    # bits, and a recorder must change no decision.
    _randbelow = Random._randbelow_with_getrandbits  # type: ignore[attr-defined]

    def __init__(self, recorder: Recorder, source: Random) -> None:
        super().__init__(0)
        self._recorder = recorder
        self._source = source

    def random(self) -> float:
        """Draw a number in [0, 1)."""
        value = self._source.random()
        self._recorder.note(entries.READ, value)
        return value

    def bits(self, k: int) -> int:
        """Draw an integer of at most 64 bits."""
        value = self._source.getrandbits(k)
        self._recorder.note(entries.READ, value)
        return value


class _RecordedStores:
    """Implements `podium.daemon.boundary.StoresState`."""

    def __init__(self, recorder: Recorder, state: StoresState) -> None:
        self._recorder = recorder
        self._state = state

    @property
    def changes(self) -> int:
        """The count of replacements of a store."""
        value = self._state.changes
        self._recorder.note(entries.READ, value)
        return value

    @property
    def is_consistent(self) -> bool:
        """Scheduling may use the stores now."""
        value = self._state.is_consistent
        self._recorder.note(entries.READ, value)
        return value

    def wait_s(self) -> float:
        """Return how long scheduling still waits for new lists at most."""
        value = self._state.wait_s()
        self._recorder.note(entries.READ, value)
        return value


class _RecordedWatch:
    """Records the watch events of one resource; the first handler of its informer."""

    def __init__(self, recorder: Recorder, path: str) -> None:
        self._recorder = recorder
        self._path = path

    def on_add(self, new: KubeObject) -> None:
        """Record an added object."""
        self._recorder.note_put(self._path, new)

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        """Record a changed object."""
        self._recorder.note_put(self._path, new)

    def on_delete(self, old: KubeObject) -> None:
        """Record a deletion."""
        self._recorder.note(entries.REMOVE, (self._path, old.key))

    def on_broken(self, item: BrokenObject) -> None:
        """Do nothing: an object that cannot be decoded changes no decision."""


class _RecordedClient(ApiClient):
    """Records how each call of a recorded task ended."""

    def __init__(self, recorder: Recorder, dispatcher: Dispatcher, clock: Clock) -> None:
        super().__init__(dispatcher, clock)
        self._recorder = recorder

    def _recorded_task(self) -> RecordedTask | None:
        """Return the recorded task that makes the call, if any."""
        task = self._recorder.current
        return None if task is None or task.is_in_call else task

    async def _record(self, request: Awaitable[T], call: int = 0) -> T:
        task, recorder = self._recorded_task(), self._recorder
        if task is None:
            return await request
        call = call or recorder.next_call()
        task.is_in_call = True
        try:
            value = await request
        except BaseException as error:
            recorder.note_time()
            recorder.note(entries.ANSWER, (call, *entries.outcome_of(error)))
            raise
        finally:
            task.is_in_call = False
        recorder.note_time()
        is_plain = value is None or isinstance(value, (bool, str))
        recorder.note(entries.ANSWER, (call, entries.VALUE if is_plain else entries.OBJECT, value))
        return value

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Record `ApiClient.bind`."""
        await self._record(super().bind(pod, node_name))

    async def is_bound(self, pod: Pod, node_name: str) -> bool:
        """Record `ApiClient.is_bound`."""
        return await self._record(super().is_bound(pod, node_name))

    async def read_failure(self, pod: Pod) -> str:
        """Record `ApiClient.read_failure`."""
        return await self._record(super().read_failure(pod))

    async def patch_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> bool:
        """Record `ApiClient.patch_status`."""
        request = super().patch_status(pod, condition=condition, nominated_node_name=nominated_node_name)
        return await self._record(request)

    async def send_status(self, item: Pod | PodGroup, compose: Compose, resource: ResourceType[Any] = PODS) -> None:
        """Record `ApiClient.send_status`."""
        if self._recorded_task() is None:
            await super().send_status(item, compose, resource)
            return
        call = self._recorder.next_call()

        def record_and_compose() -> bytes | None:
            self._recorder.note(entries.COMPOSE, call)
            return compose()

        await self._record(super().send_status(item, record_and_compose, resource), call)

    async def remove_condition(self, pod: Pod, kind: str) -> None:
        """Record `ApiClient.remove_condition`."""
        await self._record(super().remove_condition(pod, kind))

    async def delete_pod(self, pod: Pod) -> bool:
        """Record `ApiClient.delete_pod`."""
        return await self._record(super().delete_pod(pod))

    async def evict_pod(self, pod: Pod) -> bool:
        """Record `ApiClient.evict_pod`."""
        return await self._record(super().evict_pod(pod))

    async def patch(
        self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any], subresource: str = ""
    ) -> ObjectT:
        """Record `ApiClient.patch`."""
        return await self._record(super().patch(resource, item, change, subresource))

    async def create(self, resource: ResourceType[ObjectT], item: ObjectT, manifest: Mapping[str, Any]) -> ObjectT:
        """Record `ApiClient.create`."""
        return await self._record(super().create(resource, item, manifest))

    async def read(self, resource: ResourceType[ObjectT], item: ObjectT) -> ObjectT:
        """Record `ApiClient.read`."""
        return await self._record(super().read(resource, item))

    async def delete(self, resource: ResourceType[ObjectT], item: ObjectT) -> None:
        """Record `ApiClient.delete`."""
        await self._record(super().delete(resource, item))

    async def merge_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Record `ApiClient.merge_status`."""
        await self._record(super().merge_status(pod, status))
