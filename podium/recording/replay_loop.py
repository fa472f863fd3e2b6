"""The event loop of a replay.

Runs only the task whose step comes next in the recording, so that every step sees the state that it saw when it was
recorded. Time is the recorded time, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Callable
from contextvars import Context
from typing import Final

from podium.recording.divergence import Diverged
from podium.recording.replay_inputs import ReplayInputs

_AFTERWARDS_S: Final = 1e-3
_ROUNDS_MIN: Final = 8
"""The rounds of the loop in which a step may become ready without a timer."""
_ROUNDS_MAX: Final = 100
"""After these rounds only due timers fire: a waiting task whose deadline is early would set it again and again."""
_EARLY_S: Final = 2e-3
"""An event loop that counts milliseconds fires timers this early."""


class ReplayLoop(asyncio.SelectorEventLoop):
    """Runs the steps of recorded tasks in the recorded order, and other callbacks as far as those steps need them."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._inputs: ReplayInputs | None = None
        self._parked: dict[int, asyncio.Handle] = {}
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timer_count = 0
        self._end: asyncio.Future[None] | None = None

    def time(self) -> float:
        """Return the time of the last fired timer, or the recorded time."""
        return self._now_s

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        """Schedule the callback without the base class's checks: a replay calls this for each step of each task."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def call_at(
        self, when: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedule the callback for that time, and among those of the same time in the order of the calls."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timer_count += 1
        # A heap of tuples: handles compare themselves in Python, ten times for each timer.
        heapq.heappush(self._timers, (when, self._timer_count, timer))
        return timer

    def replay(self, inputs: ReplayInputs) -> asyncio.Future[None]:
        """Run by this recording from now on; return a future that is done at its end."""
        self._inputs = inputs
        self.set_task_factory(inputs.make_task)  # type: ignore[arg-type]
        self._end = self.create_future()
        return self._end

    def _run_once(self) -> None:
        inputs = self._inputs
        if inputs is None or inputs.is_over:
            if self._end is not None and not self._end.done():
                self._end.set_result(None)
            self._run_freely()
            return
        try:
            number = inputs.next_step()
            handle = None if number is None else self._handle_of(number, inputs)
        except Diverged:
            return
        if handle is None:
            return
        inputs.current_task = number
        try:
            handle._run()
        finally:
            inputs.current_task = None

    def _handle_of(self, number: int, inputs: ReplayInputs) -> asyncio.Handle | None:
        """Return the next step of the task, after running the callbacks before it that belong to no recorded task."""
        self._now_s = inputs.time_s
        rounds = 0
        while (handle := self._parked.pop(number, None)) is None:
            if not self._run_until(number, inputs):
                rounds += 1
                is_late = rounds > _ROUNDS_MAX
                until_s = self._now_s + _EARLY_S if is_late else math.inf
                # A cancellation is delivered again and again, so `_ready` need not become empty.
                if (rounds >= _ROUNDS_MIN or not self._ready) and not self._fire_next(until_s) and is_late:  # type: ignore[attr-defined]
                    inputs.diverge(f"task {number} went on when it was recorded, and has nothing to go on with")
        return handle

    def _run_until(self, number: int, inputs: ReplayInputs) -> bool:
        """Run what is ready up to the step of that task, and park that step; return False if it is not ready."""
        ready = self._ready  # type: ignore[attr-defined]
        for _ in range(len(ready)):
            handle: asyncio.Handle = ready.popleft()
            if handle._cancelled:
                continue
            owner = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
            owner_number = inputs.number_of(owner) if isinstance(owner, asyncio.Task) else None
            if owner_number is None:
                handle._run()
                continue
            self._parked[owner_number] = handle
            if owner_number == number:
                return True
        return False

    def _fire_next(self, until_s: float = math.inf) -> bool:
        """Make the next timer ready; return False if none is due by that time."""
        timers = self._timers
        while timers and (timers[0][-1].cancelled() or timers[0][0] <= until_s):
            timer = heapq.heappop(timers)[-1]
            if not timer.cancelled():
                self._ready.append(timer)  # type: ignore[attr-defined]
                return True
        return False

    def _run_freely(self) -> None:
        """Run one round as a usual loop does: before the start and after the end of the recording."""
        ready = self._ready  # type: ignore[attr-defined]
        ready.extend(self._parked.values())
        self._parked.clear()
        self._now_s += _AFTERWARDS_S
        if not ready and not self._fire_next():
            raise RuntimeError("nothing is left that could go on")
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()
