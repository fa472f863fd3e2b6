"""An event loop whose clock jumps to the next timer, so that an hour of waiting takes no time.

For code that waits for timers, not for sockets. In a test module:

    @pytest.fixture(scope="module")
    def anyio_backend() -> object:
        return VIRTUAL_TIME

A test in which everybody waits for somebody else fails instead of hanging. `LoopClock` is the clock to inject.
"""

from __future__ import annotations

import asyncio
import heapq

START_S = 1_700_000_000.0


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Never sleeps."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0

    def time(self) -> float:
        return self._now_s

    def _run_once(self) -> None:
        if not self._ready:  # type: ignore[attr-defined]
            self._drop_cancelled()
            if not self._scheduled:  # type: ignore[attr-defined]
                raise RuntimeError("nobody is left who could wake anybody")
            self._now_s = max(self._now_s, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]

    def _drop_cancelled(self) -> None:
        """The loop itself would drop them after this, and then really sleep until the first that is left."""
        timers = self._scheduled  # type: ignore[attr-defined]
        while timers and timers[0].cancelled():
            heapq.heappop(timers)._scheduled = False
            self._timer_cancelled_count -= 1  # type: ignore[attr-defined]


class LoopClock:
    """The running loop's time; the wall clock starts at `START_S`."""

    def now(self) -> float:
        return START_S + asyncio.get_running_loop().time()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


VIRTUAL_TIME = ("asyncio", {"loop_factory": VirtualTimeLoop})
