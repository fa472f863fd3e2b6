"""Feeds recorded inputs to the scheduler and compares its decisions with the recorded ones.

A scheduler is a function of what crosses its boundary: clock readings, random numbers, watch events, answers of the API
server, and the order in which its tasks take their steps. The recorder writes each of these down as an entry, in the
order in which they happened. A replay runs the same code over the same entries, one after the other:

1. `ReplayLoop` asks `next_step` for the task to run. Entries that no task takes are applied on the way: a watch event
   goes to its informer, a signal calls its callback, a time moves the clock of the timers.
2. `RESUME` (or the `ANSWER` to a task's call) names a task. The loop runs one step of it, and nothing else.
3. Within the step, the code reads clocks and random numbers through the boundary. Each reading takes one entry, which
   must be of the kind that is read.
4. An attempt's decision is compared with its `DECIDED` entry, a failure's message with its `FAILED` entry.
5. A call of the API client waits for the `ANSWER` entry with its number. Calls are numbered as they begin.

Example. Pod web-1 is added, scheduled, and bound; task 2 is the scheduling loop and task 7 the binding:

    PUT pods web-1          next_step: the informer adds the pod, which wakes task 2 but does not run it
    RESUME 2                next_step returns 2; the loop runs the step:
      MONOTONIC +250 us       the queue reads the clock when the pod is popped
      READ 1                  scoring draws one of two nodes with equal scores
      DECIDED web-1 node-4    compared with the replayed decision
    RESUME 7                the binding's first step, which calls `bind`: call 1
    ANSWER 1 VALUE          next_step returns 7; `bind` returns without a server

Surprising, and why:

- Entries are matched by order and kind, never by time. A replay that reads the clock once more than the recording would
  shift all later readings, so it stops there: the first divergence is the only one that means anything.
- Task steps are recorded although they are no input. Two tasks that become ready at once may run in either order, and
  the event loops that record (uvloop) and replay need not choose alike.
- With another configuration (`has_other_config`), plugins may read the clocks less often and draw other random numbers.
  Then readings that nothing takes are skipped, and missing ones repeat the last value.
- A decision past the first divergence would be made on inputs that follow from another decision. `counterfactual`
  answers that question, with a simulated API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from podium.binder import ApiClient
from podium.client.dispatcher import Compose, Dispatcher
from podium.client.informer import Informer
from podium.daemon.boundary import StoresState
from podium.engine.flight_recorder import FlightRecorder
from podium.engine.group_decisions import MemberDecision
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.cycle.cycle import Cycle
from podium.lib.clock import Clock
from podium.objects import unreadable
from podium.objects.core import Pod
from podium.objects.resource_types import PODS
from podium.recording import entries
from podium.recording.decisions import recorded_decision
from podium.recording.divergence import Diverged, Divergence, ReplayOutcome, Scores
from podium.recording.entries import Entry, Times
from podium.recording.replay_boundary import ReplayBoundary
from podium.recording.replay_window import ReplayWindow
from podium.recording.replayed_client import ReplayedClient, ReplayedClock, ReplayedRandom, ReplayedStores
from podium.server.supervision import Tasks

T = TypeVar("T")

_END: Final = (entries.END,)
# Module globals: these two are compared for each entry, and for each reading.
_END_KIND: Final = entries.END
_MONOTONIC: Final = entries.MONOTONIC
_CLOCKS: Final = (entries.NOW, entries.MONOTONIC)
_UNLIMITED: Final = ReplayWindow()
_SCORES_BYTES: Final = 1 << 26
_encode: Final = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class _Call:
    """A call of the API client that waits for its recorded answer."""

    task: int
    answer: asyncio.Future[None]
    compose: Compose | None = None


class ReplayInputs(ReplayBoundary):
    """The recorded inputs of one replay, and its outcome.

    Args:
        recording: the entries.
        window: where the replay ends.
        pace: called with the event loop's recorded time whenever it changes.
        has_other_config: the configuration is not the recorded one; see above.
        scores_attempt: the number of the attempt after which the replay ends, with its scores in `scores`.
        has_messages: the recording holds the messages of failed attempts; one with hashed names does not.
    """

    def __init__(
        self,
        recording: Iterator[Entry],
        window: ReplayWindow = _UNLIMITED,
        *,
        pace: Callable[[float], None] = lambda _: None,
        has_other_config: bool = False,
        scores_attempt: int | None = None,
        has_messages: bool = True,
    ) -> None:
        self._has_other_config = has_other_config
        self._has_messages = has_messages
        self._messages: dict[str, str] = {}
        """The replay's messages, by the mark or hash that stands for them in recorded conditions."""
        self._scores_attempt = scores_attempt
        self.scores: Scores = {}
        self._recording = recording
        self._window, self._is_limited, self._pace = window, window.is_set, pace
        self._wall_ahead_s: float | None = None
        self._next: Entry = _END
        self._index = -1
        self._event = "the start"
        self.outcome = ReplayOutcome()
        self.is_over = False
        self.current_task: int | None = None
        self._task_numbers: dict[asyncio.Task[Any], int] = {}
        self._task_count = self._call_count = 0
        self._calls: dict[int, _Call] = {}
        self._signals: list[Callable[[], None]] = []
        self._informers: dict[str, Informer[Any]] = {}
        self._wall_times, self._monotonic_times, self._loop_times = Times(), Times(), Times()
        self._advance()

    # ------------------------------------------------------------ the entries

    def _advance(self) -> None:
        self._index += 1
        self._next = entry = next(self._recording, _END)
        if entry[0] == _END_KIND:
            self.is_over = True

    def take(self, kind: int) -> Entry:
        """Take the next entry, which must be of this kind. Raises: `Diverged`."""
        entry = self._next
        while entry[0] != kind and self._may_skip(entry[0], kind):
            self._skip_reading(entry)
            entry = self._next
        if entry[0] != kind:
            self.diverge(f"{entries.KIND_NAMES[entry[0]]} was recorded, and {entries.KIND_NAMES[kind]} is wanted")
        self._advance()
        return entry

    def _may_skip(self, kind: int, kind_to_take: int) -> bool:
        """Tell whether an entry of this kind may be skipped to reach one of another kind.

        Within an attempt, only preemption reads more than the clocks: it draws a random number.
        """
        is_draw = kind == entries.READ and kind_to_take == entries.DECIDED
        return self._has_other_config and (kind in _CLOCKS or is_draw)

    def _skip_reading(self, entry: Entry) -> None:
        if entry[0] == entries.NOW:
            self._wall_times.take(entry[1])
        elif entry[0] == entries.MONOTONIC:
            self._monotonic_times.take(entry[1])
        self._advance()

    def _has_reading(self, kind: int) -> bool:
        """Tell whether the recording holds the clock reading that is about to be taken."""
        return not self.is_over and (not self._has_other_config or self._next[0] == kind)

    def diverge(self, detail: str) -> NoReturn:
        """Note the first divergence and end the replay. Raises: `Diverged`."""
        if self.outcome.divergence is None:
            self.outcome.divergence = Divergence(self._index, self._event, detail)
        self.is_over = True
        raise Diverged(detail)

    # ------------------------------------------------------------ driving

    def next_step(self) -> int | None:
        """Apply recorded inputs up to the next task step; return that task, or None at the end."""
        while not self.is_over:
            if self._is_limited and self._is_window_over():
                self.is_over = True
                return None
            entry = self._next
            kind = entry[0]
            if kind == entries.RESUME:
                self._advance()
                return int(entry[1])
            if kind == entries.ANSWER:
                call = self._calls.get(entry[1]) or self.diverge("an answer to a call that has not been made")
                if entry[2] != entries.CANCELLED and not call.answer.done():
                    call.answer.set_result(None)
                return call.task
            self._apply(kind, entry)
        return None

    def _is_window_over(self) -> bool:
        started_s, now_s = self.outcome.started_s, self._monotonic_times.last_s
        wall_s = None if self._wall_ahead_s is None else now_s + self._wall_ahead_s
        return started_s is not None and self._window.is_over(now_s - started_s, wall_s)

    def _apply(self, kind: int, entry: Entry) -> None:
        """Apply an entry that is no step of a task."""
        if kind == entries.TIME:
            self._pace(self._loop_times.take(entry[1]))
            self._advance()
        elif kind in (entries.PUT, entries.REMOVE):
            self._apply_watch_event(kind, entry)
        elif kind == entries.SIGNAL:
            self._advance()
            if not 0 <= entry[1] < len(self._signals):
                self.diverge("a signal was recorded that nothing waits for")
            self._signals[entry[1]]()
        elif kind == entries.COMPOSE:
            call = self._calls.get(entry[1])
            self._advance()
            if call is None or not callable(call.compose):
                self.diverge("a write that is sent has not been asked for")
            call.compose()
        elif self._has_other_config and kind in _CLOCKS:
            self._skip_reading(entry)
        else:
            self.diverge(f"{entries.KIND_NAMES[kind]} was recorded, and nothing runs that would make it")

    def _apply_watch_event(self, kind: int, entry: Entry) -> None:
        """Hand a watch event to its informer. Ignores resources that this scheduler does not watch."""
        informer, item = self._informers.get(entry[1]), entries.item_of(entry) if kind == entries.PUT else None
        self._advance()
        if informer is None:
            return
        if item is not None and not isinstance(item, (informer.resource.type, *unreadable.PARTIAL)):
            self.diverge(f"a {type(item).__name__} was recorded among {informer.resource.kind}")
        if item is None:
            self._event = f"{informer.resource.kind} {entry[2]} was deleted"
            informer.remove(entry[2])
        else:
            self._event = f"{informer.resource.kind} {item.key} was added or has changed"
            if isinstance(item, Pod) and self._messages:
                self._restore_messages(item)
            informer.set(item)

    def number_of(self, task: asyncio.Task[Any]) -> int | None:
        """Return the task's number in the recording; None for a task that is not recorded."""
        return self._task_numbers.get(task)

    def make_task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        """Make a task; it is numbered if a numbered task starts it. A task factory of asyncio's."""
        task = asyncio.Task(coroutine, loop=loop, **options)
        if self.current_task is not None and not self.is_over:
            self._number(task)
        return task

    def _number(self, task: asyncio.Task[Any]) -> None:
        self._task_count += 1
        self._task_numbers[task] = self._task_count
        task.add_done_callback(self._task_numbers.pop)

    def start(self, loop: asyncio.AbstractEventLoop, tasks: Tasks) -> None:
        """Start the scheduler's own tasks, which have the first numbers."""
        for run in tasks.values():
            self._number(loop.create_task(_run(run)))

    # ------------------------------------------------------------ the boundary

    def clock(self, clock: Clock) -> Clock:
        """Return a clock whose readings are the recorded ones."""
        return ReplayedClock(self.now, self.monotonic)

    def random(self, random: Random) -> Random:
        """Return a source of the recorded random numbers."""
        return ReplayedRandom(self._random_number)

    def api_client(self, dispatcher: Dispatcher, clock: Clock) -> ApiClient:
        """Return a client whose answers are the recorded ones."""
        return ReplayedClient(self.call, dispatcher, clock)

    def stores(self, state: StoresState) -> StoresState:
        """Return the recorded states of the stores."""
        return ReplayedStores(self._read)

    def reading(self, read: Callable[[], T]) -> Callable[[], T]:
        """Return a function whose results are the recorded ones."""
        return self._read

    def _read(self) -> Any:
        return 0 if self.is_over else self.take(entries.READ)[1]

    def signal(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Keep the callback for its recorded calls."""
        self._signals.append(tell)
        return tell

    def add_informer(self, informer: Informer[Any]) -> None:
        """Keep the informer for its recorded watch events."""
        self._informers[informer.resource.path] = informer

    # ------------------------------------------------------------ readings

    def now(self) -> float:
        """Take the next reading of the wall clock."""
        if self._has_reading(entries.NOW):
            self._wall_times.take(self.take(entries.NOW)[1])
            if self.outcome.started_s is not None:
                self._wall_ahead_s = self._wall_times.last_s - self._monotonic_times.last_s
        return self._wall_times.last_s

    def monotonic(self) -> float:
        """Take the next reading of the monotonic clock."""
        entry = self._next
        # By far the most frequent reading, so the recorded case comes first and calls nothing else.
        if entry[0] == _MONOTONIC and not self.is_over:
            self._advance()
            now_s = self._monotonic_times.take(entry[1])
        else:
            if self._has_reading(entries.MONOTONIC):
                self._monotonic_times.take(self.take(entries.MONOTONIC)[1])
            now_s = self._monotonic_times.last_s
        outcome = self.outcome
        if outcome.started_s is None:
            outcome.started_s = now_s
        outcome.ended_s = now_s
        return now_s

    @property
    def time_s(self) -> float:
        """The event loop's time at the next step."""
        return self._loop_times.last_s

    def last_readings(self) -> Clock:
        """Return a clock that repeats the last readings, for what is only measured."""
        return ReplayedClock(lambda: self._wall_times.last_s, lambda: self._monotonic_times.last_s)

    def _random_number(self) -> Any:
        """Take the next random number; 0 after the end, and where only another configuration draws one."""
        return 0 if self._has_other_config and self._next[0] != entries.READ else self._read()

    # ------------------------------------------------------------ calls

    async def call(self, read: Callable[[Entry], T], compose: Compose | None = None) -> T:
        """Wait for the recorded answer to a call, and return what `read` takes from it.

        Raises: what the recorded call raised.
        """
        if self.is_over or self.current_task is None:
            raise asyncio.CancelledError
        self._call_count += 1
        number, task = self._call_count, self.current_task
        call = self._calls[number] = _Call(task, asyncio.get_running_loop().create_future(), compose)
        is_at_once = self._next[0] == entries.ANSWER and self._next[1] == number
        try:
            if not is_at_once or self._next[2] == entries.CANCELLED:
                await call.answer
        finally:
            del self._calls[number]
            entry = self._take_answer()
        if entry is None or entry[2] == entries.CANCELLED:
            raise asyncio.CancelledError
        if entry[2] == entries.REFUSED:
            raise entries.error_of(entry[3])
        if entry[2] == entries.RAISED:
            raise entries.unexpected_error(entry[3])
        return read(entry)

    def _take_answer(self) -> Entry | None:
        return None if self.is_over else self.take(entries.ANSWER)

    # ------------------------------------------------------------ the attempts

    def on_decision(
        self, info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision, started_s: float, seconds: float
    ) -> None:
        """Compare a decision with the recorded one."""
        outcome = self.outcome
        if self.is_over:
            return
        if self._window.attempts is not None and outcome.attempts >= self._window.attempts:
            self.is_over = True
            return
        replay = recorded_decision(cycle, decision)
        entry = self.take(entries.DECIDED)
        original = entries.Decision._make((*entry[1:-1], tuple(entry[-1])))
        outcome.attempts += 1
        if replay != original:
            outcome.recorded_digest = outcome.digest.copy()
            outcome.recorded_digest.update(_encode(original))
        outcome.digest.update(_encode(replay))
        if outcome.attempts == self._scores_attempt:
            self.scores = _scores(info, cycle, decision)
            self.is_over = True
        if replay != original:
            outcome.divergence = Divergence(self._index, self._event, "the decision differs", original, replay)
            outcome.divergence.replayed_scores = _scores(info, cycle, decision)
            self.is_over = True
            raise Diverged

    def on_failure(self, pod: Pod, result: str, message: str, seconds: float) -> None:
        """Compare the reason why a pod was not scheduled with the recorded one."""
        if self.is_over:
            return
        _, uid, recorded_result, recorded_message, *marks = self.take(entries.FAILED)
        for mark in marks if self._has_messages else [recorded_message]:
            self._messages[mark] = message
            self._restore_messages(self._informers[PODS.path].get(pod.key))
        is_same_message = message == recorded_message or not self._has_messages
        if (pod.uid, result) != (uid, recorded_result) or not is_same_message:
            self.diverge(
                f"pod {pod.key} was recorded as {recorded_result}: {recorded_message}; now {result}: {message}"
            )

    def _restore_messages(self, pod: Pod | None) -> None:
        """Replace marks in the pod's conditions by the replay's messages.

        Otherwise a condition with an unchanged message would look changed, and would be written again.
        """
        for condition in () if pod is None else pod.status.conditions:
            if (message := self._messages.get(condition.message)) is not None:
                msgspec.structs.force_setattr(condition, "message", message)


def _scores(info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision) -> Scores:
    """Return the weighted scores of an attempt."""
    recorder = FlightRecorder(_SCORES_BYTES)
    recorder.on_decision(info, cycle, decision, 0.0, 0.0)
    details = recorder.details(next(recorder.newest_first()))
    if details is None:
        return {}
    plugins = details.plugins.items()
    return {node: {name: int(values[index]) for name, values in plugins} for index, node in enumerate(details.totals)}


async def _run(run: Callable[[], Awaitable[None]]) -> None:
    await run()
