"""Puts what was recorded in the place of what is outside, entry by entry, and compares what is decided.

Owns what comes next, and the first difference. `replay_loop` runs the tasks in that order.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

import msgspec

from podium.binder import ApiClient
from podium.client.dispatcher import Compose, Dispatcher
from podium.client.informer import Informer
from podium.daemon.boundary import StoresState
from podium.engine.flight_recorder import FlightRecorder
from podium.engine.pod_group_cycle import MemberDecision
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.cycle.cycle import Cycle
from podium.lib.clock import Clock
from podium.objects import unreadable
from podium.objects.core import Pod
from podium.objects.resource_types import PODS
from podium.recording import tape
from podium.recording.decisions import decided
from podium.recording.limits import Until
from podium.recording.played import PlayedClient, PlayedClock, PlayedRandom, PlayedStores
from podium.recording.surroundings import Surroundings
from podium.server.supervision import Tasks

T = TypeVar("T")
Scores: TypeAlias = Mapping[str, Mapping[str, int]]

_END_KIND: Final = tape.END
_MONOTONIC: Final = tape.MONOTONIC
_END: Final = (tape.END,)
_CLOCKS: Final = (tape.NOW, tape.MONOTONIC)
_NO_END: Final = Until()
_SCORES_BYTES: Final = 1 << 26
_encode: Final = msgspec.msgpack.Encoder().encode


class Diverged(BaseException):
    """The replay does not do what was recorded. Not an `Exception`, so that nothing that calls plugins keeps it."""


@dataclass(slots=True)
class _Call:
    """A call of the API client that waits for its recorded answer."""

    task: int
    answered: asyncio.Future[tape.Entry]
    compose: Compose | None = None


@dataclass(slots=True)
class Differing:
    """The first point at which a replay differs from the recording.

    Attributes:
        entry: its place in the recording.
        event: what had happened last before it.
        recorded, replayed: the decisions, where these differ; None where something else does.
        recorded_scores, replayed_scores: by node and plugin, as far as they are known.
        detail: what differs.
    """

    entry: int
    event: str
    detail: str
    recorded: tape.Decided | None = None
    replayed: tape.Decided | None = None
    recorded_scores: Scores = field(default_factory=dict)
    replayed_scores: Scores = field(default_factory=dict)


@dataclass
class Outcome:
    """What a replay has come to.

    Attributes:
        attempts: the decisions made, which `digest` is of.
        recorded_digest: of the recorded ones.
        started_s, ended_s: the first and the last reading of the recorded clock.
    """

    attempts: int = 0
    digest: Any = field(default_factory=hashlib.sha256)
    differing: Differing | None = None
    started_s: float | None = None
    ended_s: float = 0.0

    def __post_init__(self) -> None:
        """What was recorded has the same digest, until a decision differs."""
        self.recorded_digest = self.digest


class Player(Surroundings):
    """Replays the entries of a recording.

    Args:
        until: where the replay ends.
        pace: told of the event loop's time as it passes.
        is_other: whether the configuration is not the recorded one, so that it need not read the clock as often, nor
            draw the same random numbers.
        keep_scores: the number of the attempt whose scores `kept_scores` is to hold.
        has_messages: whether the recording says in words why pods were not scheduled; one with hashed names does not.
    """

    def __init__(
        self,
        entries: Iterator[tape.Entry],
        until: Until = _NO_END,
        *,
        pace: Callable[[float], None] = lambda _: None,
        is_other: bool = False,
        keep_scores: int | None = None,
        has_messages: bool = True,
    ) -> None:
        self._is_other = is_other
        self._has_messages = has_messages
        self._messages: dict[str, str] = {}
        """What a replay says, by the hash of what was said when it was recorded."""
        self._keep_scores = keep_scores
        self.kept_scores: Scores = {}
        self._entries = entries
        self._until, self._is_limited, self._pace = until, until.is_set, pace
        self._wall_ahead_s: float | None = None
        self._next: tape.Entry = _END
        self._at = -1
        self._event = "the start"
        self.outcome = Outcome()
        self.is_over = False
        self.current: int | None = None
        self._task_numbers: dict[asyncio.Task[Any], int] = {}
        self._tasks = self._call_count = 0
        self._calls: dict[int, _Call] = {}
        self._signals: list[Callable[[], None]] = []
        self._informers: dict[str, Informer[Any]] = {}
        self._wall, self._steady, self._times = tape.Times(), tape.Times(), tape.Times()
        self._advance()

    # ------------------------------------------------------------ the entries

    def _advance(self) -> None:
        self._at += 1
        self._next = entry = next(self._entries, _END)
        if entry[0] == _END_KIND:
            self.is_over = True

    def take(self, kind: int) -> tape.Entry:
        """The next entry, which must be of this kind. Raises: `Diverged`."""
        entry = self._next
        if entry[0] == kind:
            self._advance()
            return entry
        while entry[0] != kind and self._may_skip(entry[0], kind):
            self._skip_reading(entry)
            entry = self._next
        if entry[0] != kind:
            self.differ(f"{tape.NAMES[entry[0]]} was recorded, and {tape.NAMES[kind]} is wanted")
        self._advance()
        return entry

    def _may_skip(self, kind: int, wanted: int) -> bool:
        """Whether an entry of this kind may be left out where another one is wanted.

        Within an attempt, nothing but preemption reads more than the clocks: it draws a random number.
        """
        return self._is_other and (kind in _CLOCKS or (kind == tape.READ and wanted == tape.DECIDED))

    def _skip_reading(self, entry: tape.Entry) -> None:
        if entry[0] == tape.NOW:
            self._wall.take(entry[1])
        elif entry[0] == tape.MONOTONIC:
            self._steady.take(entry[1])
        self._advance()

    def _is_read(self, kind: int) -> bool:
        """Whether the reading of a clock that is wanted was recorded."""
        return not self.is_over and (not self._is_other or self._next[0] == kind)

    def differ(self, detail: str) -> NoReturn:
        """Note the first difference, and end the replay. Raises: `Diverged`."""
        if self.outcome.differing is None:
            self.outcome.differing = Differing(self._at, self._event, detail)
        self.is_over = True
        raise Diverged(detail)

    # ------------------------------------------------------------ driving

    def next_step(self) -> int | None:
        """Do what comes next and is no step of a task; then return the task whose step comes next, None at the end."""
        while not self.is_over:
            if self._is_limited and self._is_time_up():
                self.is_over = True
                return None
            entry = self._next
            kind = entry[0]
            if kind == tape.RESUME:
                self._advance()
                return int(entry[1])
            if kind == tape.ANSWER:
                call = self._calls.get(entry[1]) or self.differ("an answer to a call that has not been made")
                if entry[2] != tape.CANCELLED and not call.answered.done():
                    call.answered.set_result(None)
                return call.task
            self._do(kind, entry)
        return None

    def _is_time_up(self) -> bool:
        started_s, now_s = self.outcome.started_s, self._steady.last_s
        wall_s = None if self._wall_ahead_s is None else now_s + self._wall_ahead_s
        return started_s is not None and self._until.is_time_up(now_s - started_s, wall_s)

    def _do(self, kind: int, entry: tape.Entry) -> None:
        """Do what comes from outside."""
        if kind == tape.TIME:
            self._pace(self._times.take(entry[1]))
            self._advance()
        elif kind in (tape.PUT, tape.REMOVE):
            self._change(kind, entry)
        elif kind == tape.SIGNAL:
            self._advance()
            if not 0 <= entry[1] < len(self._signals):
                self.differ("a signal was recorded that nothing waits for")
            self._signals[entry[1]]()
        elif kind == tape.COMPOSE:
            waiting = self._calls.get(entry[1])
            self._advance()
            if waiting is None or not callable(waiting.compose):
                self.differ("a write that is sent has not been asked for")
            waiting.compose()
        elif self._is_other and kind in _CLOCKS:
            self._skip_reading(entry)
        else:
            self.differ(f"{tape.NAMES[kind]} was recorded, and nothing runs that would make it")

    def _change(self, kind: int, entry: tape.Entry) -> None:
        """Do what a watch has brought. What only another face has watched is left out."""
        informer, item = self._informers.get(entry[1]), tape.item_of(entry) if kind == tape.PUT else None
        self._advance()
        if informer is None:
            return
        if item is not None and not isinstance(item, (informer.resource.type, *unreadable.PARTIAL)):
            self.differ(f"a {type(item).__name__} was recorded among {informer.resource.kind}")
        if item is None:
            self._event = f"{informer.resource.kind} {entry[2]} was deleted"
            informer.remove(entry[2])
        else:
            self._event = f"{informer.resource.kind} {item.key} was added or has changed"
            if isinstance(item, Pod) and self._messages:
                self._reveal(item)
            informer.set(item)

    def number_of(self, task: asyncio.Task[Any]) -> int | None:
        """The number of a followed task."""
        return self._task_numbers.get(task)

    def make_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **how: Any
    ) -> asyncio.Task[Any]:
        """What a followed task starts is followed too."""
        task = asyncio.Task(work, loop=loop, **how)
        if self.current is not None and not self.is_over:
            self._follow(task)
        return task

    def _follow(self, task: asyncio.Task[Any]) -> None:
        self._tasks += 1
        self._task_numbers[task] = self._tasks
        task.add_done_callback(self._task_numbers.pop)

    def start(self, loop: asyncio.AbstractEventLoop, tasks: Tasks) -> None:
        """Start the tasks that were followed from the start."""
        for run in tasks.values():
            self._follow(loop.create_task(_awaited(run)))

    # ------------------------------------------------------------ the boundary

    def clock(self, clock: Clock) -> Clock:
        """The recorded clock, whose readings are taken one by one."""
        del clock
        return PlayedClock(self.now, self.monotonic)

    def random(self, random: Random) -> Random:
        """The recorded numbers."""
        del random
        return PlayedRandom(self.random_number)

    def api_client(self, dispatcher: Dispatcher, clock: Clock) -> ApiClient:
        """A client that has the recorded answers."""
        return PlayedClient(self.call, dispatcher, clock)

    def stores(self, state: StoresState) -> StoresState:
        """The recorded states."""
        del state
        return PlayedStores(self._read)

    def reading(self, read: Callable[[], T]) -> Callable[[], T]:
        """The recorded results."""
        del read
        return self._read

    def _read(self) -> Any:
        return 0 if self.is_over else self.take(tape.READ)[1]

    def signal(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Keep the callback for the times at which it was called."""
        self._signals.append(tell)
        return tell

    def watched(self, informer: Informer[Any]) -> None:
        """Keep the informer for what its watch has brought."""
        self._informers[informer.resource.path] = informer

    # ------------------------------------------------------------ readings

    def now(self) -> float:
        """The next reading of the wall clock."""
        if self._is_read(tape.NOW):
            self._wall.take(self.take(tape.NOW)[1])
            if self.outcome.started_s is not None:
                self._wall_ahead_s = self._wall.last_s - self._steady.last_s
        return self._wall.last_s

    def monotonic(self) -> float:
        """The next reading of the clock."""
        entry = self._next
        # Most readings by far: whatever is recorded comes next, and is taken without further ado.
        if entry[0] == _MONOTONIC and not self.is_over:
            self._advance()
            now_s = self._steady.take(entry[1])
        else:
            if self._is_read(tape.MONOTONIC):
                self._steady.take(self.take(tape.MONOTONIC)[1])
            now_s = self._steady.last_s
        outcome = self.outcome
        if outcome.started_s is None:
            outcome.started_s = now_s
        outcome.ended_s = now_s
        return now_s

    @property
    def time_s(self) -> float:
        """The event loop's time at the next step."""
        return self._times.last_s

    def last_now(self) -> float:
        """The last reading of the wall clock."""
        return self._wall.last_s

    def last_monotonic(self) -> float:
        """The last reading of the clock."""
        return self._steady.last_s

    def random_number(self) -> Any:
        """The next random number; 0 after the end, and where only another configuration draws one."""
        return 0 if self._is_other and self._next[0] != tape.READ else self._read()

    # ------------------------------------------------------------ calls

    async def call(self, read: Callable[[tape.Entry], T], compose: Compose | None = None) -> T:
        """Wait for the recorded answer to a call, and return it.

        Raises: what the call raised when it was recorded.
        """
        if self.is_over or self.current is None:
            raise asyncio.CancelledError
        self._call_count += 1
        number, task = self._call_count, self.current
        call = self._calls[number] = _Call(task, asyncio.get_running_loop().create_future(), compose)
        is_at_once = self._next[0] == tape.ANSWER and self._next[1] == number
        try:
            if not is_at_once or self._next[2] == tape.CANCELLED:
                await call.answered
        finally:
            del self._calls[number]
            entry = self._answer()
        if entry is None or entry[2] == tape.CANCELLED:
            raise asyncio.CancelledError
        if entry[2] == tape.REFUSED:
            raise tape.error_of(entry[3])
        if entry[2] == tape.RAISED:
            raise tape.raised(entry[3])
        return read(entry)

    def _answer(self) -> tape.Entry | None:
        return None if self.is_over else self.take(tape.ANSWER)

    # ------------------------------------------------------------ the attempts

    def on_decision(
        self, info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision, started_s: float, seconds: float
    ) -> None:
        """Compare a decision with the recorded one."""
        outcome = self.outcome
        if self.is_over:
            return
        if self._until.attempts is not None and outcome.attempts >= self._until.attempts:
            self.is_over = True
            return
        replayed = decided(cycle, decision)
        entry = self.take(tape.DECIDED)
        recorded = tape.Decided._make((*entry[1:-1], tuple(entry[-1])))
        outcome.attempts += 1
        if replayed != recorded:
            outcome.recorded_digest = outcome.digest.copy()
            outcome.recorded_digest.update(_encode(recorded))
        outcome.digest.update(_encode(replayed))
        if outcome.attempts == self._keep_scores:
            self.kept_scores = _scores(info, cycle, decision)
            self.is_over = True
        if replayed != recorded:
            outcome.differing = Differing(self._at, self._event, "the decision differs", recorded, replayed)
            outcome.differing.replayed_scores = _scores(info, cycle, decision)
            self.is_over = True
            raise Diverged

    def on_failure(self, pod: Pod, result: str, message: str, seconds: float) -> None:
        """Compare the reason why a pod was not scheduled with the recorded one."""
        del seconds
        if self.is_over:
            return
        _, uid, recorded_result, recorded_message, *marks = self.take(tape.FAILED)
        for mark in marks if self._has_messages else [recorded_message]:
            self._messages[mark] = message
            self._reveal(self._informers[PODS.path].get(pod.key))
        is_told_alike = message == recorded_message or not self._has_messages
        if (pod.uid, result) != (uid, recorded_result) or not is_told_alike:
            self.differ(f"pod {pod.key} was recorded as {recorded_result}: {recorded_message}; now {result}: {message}")

    def _reveal(self, pod: Pod | None) -> None:
        """Put what the replay itself has said in the place of its hash, as a condition that would say the same is not
        written again.
        """
        for condition in () if pod is None else pod.status.conditions:
            if (message := self._messages.get(condition.message)) is not None:
                msgspec.structs.force_setattr(condition, "message", message)


def _scores(info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision) -> Scores:
    """The weighted scores of an attempt by node and plugin."""
    recorder = FlightRecorder(_SCORES_BYTES)
    recorder.on_decision(info, cycle, decision, 0.0, 0.0)
    details = recorder.details(next(recorder.newest_first()))
    if details is None:
        return {}
    plugins = details.plugins.items()
    return {node: {name: int(values[at]) for name, values in plugins} for at, node in enumerate(details.totals)}


async def _awaited(run: Callable[[], Awaitable[None]]) -> None:
    await run()
