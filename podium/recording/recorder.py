"""Notes down what passes the daemon's boundary, and has it written by a thread.

Owns which tasks are followed and how entries are numbered. On the event loop an entry is a value and its kind, in
lists: encoding, compression and the disk are the thread's. Never disturbs scheduling: if the disk is full or slow, the
recording ends with one warning.

Cost: two appends for each entry, of which an attempt makes about fifteen; and the thread's work.
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
from podium.engine.pod_group_cycle import MemberDecision
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
from podium.recording import tape
from podium.recording.columns import ColumnWriter, LeftOut, Noted
from podium.recording.decisions import decided
from podium.recording.hashed_names import NameHasher
from podium.recording.segments import LeftOutList, SegmentWriter
from podium.server.supervision import Tasks

log = get_logger("recorder")

T = TypeVar("T")

_ENDS: Final = (OSError, OverflowError, TypeError, ValueError, RecursionError)
"""What ends a recording: the disk, or an entry that can be neither written nor left out."""
_FLUSH_EVERY_S: Final = 0.5
_BLOCK_ENTRIES_MAX: Final = 2_000
"""While a block is encoded other threads hardly run, the event loop's included: for a millisecond or two."""
_WAITING_MAX: Final = 2_000_000
"""More entries than the disk takes: the recording ends before memory does."""


class Recorder(Boundary, AttemptObserver):
    """Records one run of a scheduler; made before the scheduler is.

    Attributes:
        failure: why the recording has ended before the run; "" if it has not.
        left_out: changes of objects that no reader would take, since they are too large.

    Args:
        description: what a replay needs besides the entries; JSON values.
        hasher: makes names unreadable.

    Raises:
        RecordingError: the directory holds a recording already.
        OSError: the directory cannot be written.
    """

    def __init__(self, directory: Path, description: dict[str, Any], hasher: NameHasher | None = None) -> None:
        self._noted = Noted()
        self.note, self.noting, self.put = self._noted.note, self._noted.noting, self._noted.put
        self._clock = SystemClock()
        self.left_out = LeftOutList()
        self._columns = ColumnWriter(hasher, self._leave_out)
        self._writer = SegmentWriter(directory, description if hasher is None else hasher.description(description))
        self._directory = directory
        self._has_ended = False
        self.failure = ""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write_all, name="recorder", daemon=True)
        self._thread.start()
        self.current: RecordedTask | None = None
        self._loop_time: Callable[[], float] = lambda: 0.0
        self._time_s = 0.0
        self._tasks = self._roots = self._calls = self._signals = 0

    # ------------------------------------------------------------ the boundary

    def clock(self, clock: Clock) -> Clock:
        """A clock whose readings are noted."""
        return _RecordedClock(self, clock)

    def random(self, random: Random) -> Random:
        """A random source whose numbers are noted."""
        return _RecordedRandom(self, random)

    def api_client(self, dispatcher: Dispatcher, clock: Clock) -> ApiClient:
        """A client whose answers are noted."""
        return _RecordedClient(self, dispatcher, clock)

    def stores(self, state: StoresState) -> StoresState:
        """The state, whose readings are noted."""
        return _RecordedStores(self, state)

    def reading(self, read: Callable[[], T]) -> Callable[[], T]:
        """The function, whose results are noted."""
        return self.noting(tape.READ, read)

    def signal(self, tell: Callable[[], None]) -> Callable[[], None]:
        """The callback, whose calls are noted."""
        number = self._signals
        self._signals += 1

        def recorded() -> None:
            self.note(tape.SIGNAL, number)
            tell()

        return recorded

    def watched(self, informer: Informer[Any]) -> None:
        """Note what the informer tells its handlers."""
        informer.add_handler(_RecordedWatch(self, informer.resource.path))

    def tasks(self, tasks: Tasks) -> Tasks:
        """The tasks, which are followed from now on, with all that they start."""
        loop = asyncio.get_running_loop()
        loop.set_task_factory(self._make_task)  # type: ignore[arg-type]
        self._loop_time = loop.time

        def followed(number: int, run: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
            async def run_it() -> None:
                await run()

            return lambda: RecordedTask(self, number, run_it())

        started = {name: followed(self.next_task(), run) for name, run in tasks.items()}
        self._roots = self._tasks
        return started

    def stopping(self) -> None:
        """Note the end: what follows is not recorded."""
        self.note(tape.END, None)

    # ------------------------------------------------------------ the attempts

    def on_decision(
        self, info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision, started_s: float, seconds: float
    ) -> None:
        """Note a decision."""
        del info, started_s, seconds
        self.note(tape.DECIDED, decided(cycle, decision))

    def on_failure(self, pod: Pod, result: str, message: str, seconds: float) -> None:
        """Note why a pod was not scheduled."""
        del seconds
        self.note(tape.FAILED, (pod.uid, result, message))

    # ------------------------------------------------------------ tasks and calls

    def cancelled(self, task: int) -> None:
        """A task is cancelled: one that was there from the start only if scheduling ends."""
        if task <= self._roots:
            self.stopping()

    def note_time(self) -> None:
        """Note the event loop's time, from which a step sets its timers."""
        now_s = self._loop_time()
        if now_s != self._time_s:
            self._time_s = now_s
            self.note(tape.TIME, now_s)

    def next_task(self) -> int:
        """The number of a new task."""
        self._tasks += 1
        return self._tasks

    def next_call(self) -> int:
        """The number of a new call."""
        self._calls += 1
        return self._calls

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **how: Any
    ) -> asyncio.Task[Any]:
        """What a followed task starts is followed too, unless its call does: that is the client's own."""
        current = self.current
        if current is not None and not current.is_in_call:
            work = RecordedTask(self, self.next_task(), work)
        return asyncio.Task(work, loop=loop, **how)

    # ------------------------------------------------------------ writing

    def close(self) -> None:
        """Write what is left, and end the recording."""
        self._closing.set()
        self._thread.join()
        if self.left_out.count:
            log.warning("The recording lacks something", directory=str(self._directory), error=str(self.left_out))

    def _write_all(self) -> None:
        is_closing = False
        while not is_closing:
            is_closing = self._closing.wait(_FLUSH_EVERY_S)
            self._write_waiting_or_give_up()
        # What a full disk did not take is tried again here.
        with suppress(OSError):
            self._writer.close()

    def _write_waiting_or_give_up(self) -> None:
        try:
            self._write_waiting()
        except _ENDS as error:
            self._give_up(error_text(error))

    def _write_waiting(self) -> None:
        """Write what has been noted so far; after the end it is dropped."""
        left = len(self._noted)
        if left > _WAITING_MAX and not self._has_ended:
            raise OSError("it does not take entries as fast as they come")
        while left > 0:
            kinds, noted = self._noted.take(_BLOCK_ENTRIES_MAX)
            left -= len(kinds)
            if self._has_ended:
                continue
            self._has_ended = tape.END in kinds
            for content in self._columns.contents(kinds, noted):
                self._writer.write(content, self._clock.monotonic())

    def _leave_out(self, left_out: LeftOut) -> None:
        self.left_out.add(left_out)
        # Whoever may create pods may have this said as often as they like: the end of the recording has the number.
        if self.left_out.count == len(self.left_out.shown):
            log.warning("Left out of the recording", kind=left_out.kind, key=left_out.key, error=left_out.why)

    def _give_up(self, why: str) -> None:
        self.failure, self._has_ended = why, True
        log.warning("The recording has ended: it cannot be written", directory=str(self._directory), error=why)


class RecordedTask(Coroutine[Any, Any, Any]):
    """A coroutine that notes when it goes on.

    Attributes:
        is_in_call: whether it waits for the API client, whose steps are not noted.
    """

    __slots__ = ("_number", "_recorder", "_send", "_work", "is_in_call")

    def __init__(self, recorder: Recorder, number: int, work: Coroutine[Any, Any, Any]) -> None:
        self._recorder = recorder
        self._number = number
        self._work = work
        self._send = work.send
        self.is_in_call = False

    def __next__(self) -> Any:
        """Go on: the form in which a task does so."""
        return self._step(self._send, None)

    def send(self, value: Any) -> Any:
        """Go on."""
        return self._step(self._send, value)

    def throw(self, *error: Any) -> Any:
        """Go on with an exception, which usually is a cancellation."""
        self._recorder.cancelled(self._number)
        return self._step(self._work.throw, *error)

    def close(self) -> None:
        """End without another step."""
        self._work.close()

    def _step(self, go_on: Callable[..., Any], *argument: Any) -> Any:
        recorder = self._recorder
        if not self.is_in_call:
            recorder.note_time()
            recorder.note(tape.RESUME, self._number)
        recorder.current = self
        try:
            return go_on(*argument)
        finally:
            recorder.current = None

    def __await__(self) -> RecordedTask:
        """It is its own iterator."""
        return self

    def __iter__(self) -> RecordedTask:
        """It is its own iterator."""
        return self

    # What inspection asks of a coroutine. With `__getattr__`, every other attribute would take longer as well.
    cr_await = property(attrgetter("_work.cr_await"))
    cr_code = property(attrgetter("_work.cr_code"))
    cr_frame = property(attrgetter("_work.cr_frame"))
    cr_running = property(attrgetter("_work.cr_running"))
    cr_suspended = property(attrgetter("_work.cr_suspended"))


class _RecordedClock:
    """Implements `podium.lib.clock.Clock`."""

    def __init__(self, recorder: Recorder, clock: Clock) -> None:
        self.now = recorder.noting(tape.NOW, clock.now)
        self.monotonic = recorder.noting(tape.MONOTONIC, clock.monotonic)


class _RecordedRandom(tape.EntryRandom):
    """Draws from another source; all other methods derive from these two."""

    def __init__(self, recorder: Recorder, source: Random) -> None:
        super().__init__(0)
        self._recorder = recorder
        self._source = source

    def random(self) -> float:
        """The next number in [0, 1)."""
        value = self._source.random()
        self._recorder.note(tape.READ, value)
        return value

    def bits(self, k: int) -> int:
        """As `getrandbits`."""
        value = self._source.getrandbits(k)
        self._recorder.note(tape.READ, value)
        return value


class _RecordedStores:
    """Implements `podium.daemon.boundary.StoresState`."""

    def __init__(self, recorder: Recorder, state: StoresState) -> None:
        self._recorder = recorder
        self._state = state

    @property
    def changes(self) -> int:
        """How often the replacement of a store has begun."""
        value = self._state.changes
        self._recorder.note(tape.READ, value)
        return value

    @property
    def is_consistent(self) -> bool:
        """Whether scheduling may use the stores now."""
        value = self._state.is_consistent
        self._recorder.note(tape.READ, value)
        return value

    def wait_s(self) -> float:
        """How long scheduling will still wait for new lists, at most."""
        value = self._state.wait_s()
        self._recorder.note(tape.READ, value)
        return value


class _RecordedWatch:
    """Notes the changes of one resource; the first of its handlers."""

    def __init__(self, recorder: Recorder, path: str) -> None:
        self._recorder = recorder
        self._path = path

    def on_add(self, new: KubeObject) -> None:
        """An object was added."""
        self._recorder.put(self._path, new)

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        """An object has changed."""
        del old
        self._recorder.put(self._path, new)

    def on_delete(self, old: KubeObject) -> None:
        """An object was deleted."""
        self._recorder.note(tape.REMOVE, (self._path, old.key))

    def on_broken(self, broken: BrokenObject) -> None:
        """An object that cannot be decoded changes nothing."""


class _RecordedClient(ApiClient):
    """Notes how each call of a followed task has ended."""

    def __init__(self, recorder: Recorder, dispatcher: Dispatcher, clock: Clock) -> None:
        super().__init__(dispatcher, clock)
        self._recorder = recorder

    def _followed(self) -> RecordedTask | None:
        """The task that makes the call, if it is followed."""
        task = self._recorder.current
        return None if task is None or task.is_in_call else task

    async def _noted(self, work: Awaitable[T], call: int = 0) -> T:
        task, recorder = self._followed(), self._recorder
        if task is None:
            return await work
        call = call or recorder.next_call()
        task.is_in_call = True
        try:
            value = await work
        except BaseException as error:
            recorder.note_time()
            recorder.note(tape.ANSWER, (call, *tape.outcome_of(error)))
            raise
        finally:
            task.is_in_call = False
        recorder.note_time()
        is_plain = value is None or isinstance(value, (bool, str))
        recorder.note(tape.ANSWER, (call, tape.VALUE if is_plain else tape.OBJECT, value))
        return value

    async def bind(self, pod: Pod, node_name: str) -> None:
        """As `ApiClient.bind`."""
        await self._noted(super().bind(pod, node_name))

    async def is_bound(self, pod: Pod, node_name: str) -> bool:
        """As `ApiClient.is_bound`."""
        return await self._noted(super().is_bound(pod, node_name))

    async def read_failure(self, pod: Pod) -> str:
        """As `ApiClient.read_failure`."""
        return await self._noted(super().read_failure(pod))

    async def patch_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> bool:
        """As `ApiClient.patch_status`."""
        work = super().patch_status(pod, condition=condition, nominated_node_name=nominated_node_name)
        return await self._noted(work)

    async def send_status(self, item: Pod | PodGroup, compose: Compose, resource: ResourceType[Any] = PODS) -> None:
        """As `ApiClient.send_status`."""
        if self._followed() is None:
            await super().send_status(item, compose, resource)
            return
        call = self._recorder.next_call()

        def composed() -> bytes | None:
            self._recorder.note(tape.COMPOSE, call)
            return compose()

        await self._noted(super().send_status(item, composed, resource), call)

    async def remove_condition(self, pod: Pod, kind: str) -> None:
        """As `ApiClient.remove_condition`."""
        await self._noted(super().remove_condition(pod, kind))

    async def delete_pod(self, pod: Pod) -> bool:
        """As `ApiClient.delete_pod`."""
        return await self._noted(super().delete_pod(pod))

    async def evict_pod(self, pod: Pod) -> bool:
        """As `ApiClient.evict_pod`."""
        return await self._noted(super().evict_pod(pod))

    async def patch(
        self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any], subresource: str = ""
    ) -> ObjectT:
        """As `ApiClient.patch`."""
        return await self._noted(super().patch(resource, item, change, subresource))

    async def create(self, resource: ResourceType[ObjectT], item: ObjectT, manifest: Mapping[str, Any]) -> ObjectT:
        """As `ApiClient.create`."""
        return await self._noted(super().create(resource, item, manifest))

    async def read(self, resource: ResourceType[ObjectT], item: ObjectT) -> ObjectT:
        """As `ApiClient.read`."""
        return await self._noted(super().read(resource, item))

    async def delete(self, resource: ResourceType[ObjectT], item: ObjectT) -> None:
        """As `ApiClient.delete`."""
        await self._noted(super().delete(resource, item))

    async def merge_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """As `ApiClient.merge_status`."""
        await self._noted(super().merge_status(pod, status))
