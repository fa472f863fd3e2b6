"""Splits long work on the event loop into turns so short that other tasks are not delayed noticeably."""

from __future__ import annotations

from typing import Final

from anyio.lowlevel import checkpoint

from podium.lib.clock import Clock

_TURN_S_MAX: Final = 0.005


class Turns:
    """Says when work on many items must yield to other tasks.

    Write `if turns.is_over(): await turns.next()` after each item: the check costs 0.1 us, an await without effect
    0.4 us.
    """

    __slots__ = ("_clock", "_ends_s")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends_s = clock.monotonic() + _TURN_S_MAX

    def is_over(self) -> bool:
        """Return whether the turn has lasted long enough to yield."""
        return self._clock.monotonic() >= self._ends_s

    async def next(self) -> None:
        """Let other tasks run, and start the next turn."""
        await checkpoint()
        self._ends_s = self._clock.monotonic() + _TURN_S_MAX
