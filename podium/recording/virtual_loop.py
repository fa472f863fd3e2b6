"""An event loop in virtual time."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable


class AbandonedError(Exception):
    """Nobody wants the result of what the loop runs any more."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Never sleeps: where nothing is ready, its clock jumps to the next timer.

    Args:
        is_wanted: asked before each step; once it says no, `run` raises AbandonedError.
    """

    def __init__(self, is_wanted: Callable[[], bool] | None = None) -> None:
        super().__init__()
        self._is_wanted = is_wanted
        self._now_s = 0.0

    def time(self) -> float:
        """The virtual time."""
        return self._now_s

    def spend(self, seconds: float) -> None:
        """Let time pass during a step."""
        self._now_s += seconds

    def _run_once(self) -> None:
        if self._is_wanted is not None and not self._is_wanted():
            # The clean-up still runs.
            self._is_wanted = None
            raise AbandonedError
        self._drop_cancelled()
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._now_s = max(self._now_s, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]

    def _drop_cancelled(self) -> None:
        """The loop itself would drop them after this, and then really sleep until the first that is left."""
        timers = self._scheduled  # type: ignore[attr-defined]
        while timers and timers[0].cancelled():
            heapq.heappop(timers)._scheduled = False
            self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
