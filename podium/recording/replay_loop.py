"""The event loop of a replay.

Runs only the task whose step comes next in the recording, so every step finds what it found when it was recorded. Time
is that of the recording and never waited for.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Callable
from contextvars import Context
from typing import Final

from podium.recording.player import Diverged, Player

_AFTERWARDS_S: Final = 1e-3
_ROUNDS_MIN: Final = 8
"""So many rounds of the loop a step may take to become ready without a timer."""
_ROUNDS_MAX: Final = 100
"""After so many, only timers that are due are fired: a waiting task whose deadline is early sets it again."""
_EARLY_S: Final = 2e-3
"""A timer may have fired so much before its time, by an event loop that counts milliseconds."""


class ReplayLoop(asyncio.SelectorEventLoop):
    """Runs the steps of followed tasks in the order of the recording, and everything else as far as they need it."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._player: Player | None = None
        self._parked: dict[int, asyncio.Handle] = {}
        self._ended: asyncio.Future[None] | None = None

    def time(self) -> float:
        """The time of the last timer that has fired, or of the recording."""
        return self._now_s

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        """As in every event loop, without looking for mistakes: a replay calls it for each step of each task."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def play(self, player: Player) -> asyncio.Future[None]:
        """Run by this recording from now on; returns what is done at its end."""
        self._player = player
        self.set_task_factory(player.make_task)  # type: ignore[arg-type]
        self._ended = self.create_future()
        return self._ended

    def _run_once(self) -> None:
        player = self._player
        if player is None or player.is_over:
            if self._ended is not None and not self._ended.done():
                self._ended.set_result(None)
            self._run_freely()
            return
        try:
            number = player.next_step()
            handle = None if number is None else self._handle_of(number, player)
        except Diverged:
            return
        if handle is None:
            return
        player.current = number
        try:
            handle._run()
        finally:
            player.current = None

    def _handle_of(self, number: int, player: Player) -> asyncio.Handle | None:
        """The next step of the task; what comes before it and belongs to no followed task is done first."""
        self._now_s = player.time_s
        rounds = 0
        while (parked := self._parked.pop(number, None)) is None:
            if not self._run_until(number, player):
                rounds += 1
                is_late = rounds > _ROUNDS_MAX
                until_s = self._now_s + _EARLY_S if is_late else math.inf
                # A cancellation is delivered again and again, so `_ready` need not become empty.
                if (rounds >= _ROUNDS_MIN or not self._ready) and not self._fire_next(until_s) and is_late:  # type: ignore[attr-defined]
                    player.differ(f"task {number} went on when it was recorded, and has nothing to go on with")
        return parked

    def _run_until(self, number: int, player: Player) -> bool:
        """Do what is ready, up to the step of that task, which is parked; returns whether it was found."""
        ready = self._ready  # type: ignore[attr-defined]
        for _ in range(len(ready)):
            handle: asyncio.Handle = ready.popleft()
            if handle._cancelled:
                continue
            owner = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
            of = player.number_of(owner) if isinstance(owner, asyncio.Task) else None
            if of is None:
                handle._run()
                continue
            self._parked[of] = handle
            if of == number:
                return True
        return False

    def _fire_next(self, until_s: float = math.inf) -> bool:
        """Make the next timer ready, whose time has come in the order of the recording; False if none is due."""
        timers, ready = self._scheduled, self._ready  # type: ignore[attr-defined]
        while timers and (timers[0]._cancelled or timers[0].when() <= until_s):
            timer = heapq.heappop(timers)
            timer._scheduled = False
            if timer._cancelled:
                self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
                continue
            ready.append(timer)
            return True
        return False

    def _run_freely(self) -> None:
        """After the end of the recording, or before its start."""
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
