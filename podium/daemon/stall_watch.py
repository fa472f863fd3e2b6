"""How long the event loop keeps everybody waiting.

Owns the watchdog that measures it. Everything of the scheduler runs on one loop: while one part works, no answer is
read, no deadline is kept and no health probe is answered.
"""

from __future__ import annotations

import time
from typing import Final

import anyio

from podium.lib.clock import Clock
from podium.telemetry import Metrics, get_logger

log = get_logger("daemon")

_LOOK_EVERY_S: Final = 0.02
_STALL_S: Final = 0.05


class StallWatch:
    """Looks fifty times a second by how much the loop is late.

    A stall is at least as long as it is late, and at most so much longer as there is between two looks.

    Cost: 0.03 % of a core.
    """

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._metrics = metrics

    async def run(self) -> None:
        """Watch until cancelled."""
        clock = self._clock
        while True:
            due_s = clock.monotonic() + _LOOK_EVERY_S
            cpu_s = time.thread_time()
            await anyio.sleep(_LOOK_EVERY_S)
            late_s = max(0.0, clock.monotonic() - due_s)
            self._metrics.observe_loop_stall(late_s)
            if late_s > _STALL_S:
                # Without CPU time of our own, it was the machine that had no time for us.
                busy_s = time.thread_time() - cpu_s
                log.warning("The event loop stood still", seconds=round(late_s, 3), cpu_seconds=round(busy_s, 3))
