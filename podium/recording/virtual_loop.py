"""An event loop in virtual time."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable


class AbandonedError(Exception):
    """The caller no longer wants the result."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Never sleeps: when no callback is ready, the clock jumps to the next timer.

    Args:
        is_wanted: called before each step; once it returns False, `run` raises AbandonedError.
    """

    def __init__(self, is_wanted: Callable[[], bool] | None = None) -> None:
        super().__init__()
        self._is_wanted = is_wanted
        self._now_s = 0.0

    def time(self) -> float:
        """Return the virtual time."""
        return self._now_s

    def spend(self, seconds: float) -> None:
        """Advance the clock during a step."""
        self._now_s += seconds

    def _run_once(self) -> None:
        if self._is_wanted is not None and not self._is_wanted():
            # Only once: the clean-up still has to run.
            self._is_wanted = None
            raise AbandonedError
        self._drop_cancelled()
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._now_s = max(self._now_s, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]

    def _drop_cancelled(self) -> None:
        """Drop cancelled timers now: the base loop would drop them later, and then sleep until the next timer."""
        timers = self._scheduled  # type: ignore[attr-defined]
        while timers and timers[0].cancelled():
            heapq.heappop(timers)._scheduled = False
            self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
