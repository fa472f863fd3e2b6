"""Replicas tried out while everybody else is served.

Owns how long a question may take, and that on each cluster only one is tried out at a time: two would stand in each
other's way.

Cost: turns of 5 ms, which is how long others wait for the loop; but for the first question with a selector.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from typing import Final

import anyio

from podium.estimator.accurate import EstimateSteps
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.lib.turns import Turns

log = get_logger("estimator")

QUESTION_S_MAX: Final = 2.0
"""Karmada waits 3 s for all clusters together, and drops the answers of all where one is missing."""


class InTurns:
    """Runs estimates that come in steps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._locks: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    async def run(self, cluster: str, begin: Callable[[Callable[[], bool]], EstimateSteps]) -> int:
        """The estimate's value; what it has come to by then where it takes too long, waiting for others included.

        Args:
            begin: given what to ask whether to stop.
        """
        clock = self._clock
        ends_s = clock.monotonic() + QUESTION_S_MAX
        async with self._locks[cluster]:
            with closing(begin(lambda: clock.monotonic() >= ends_s)) as steps:
                count = await self._finished(steps)
        if clock.monotonic() >= ends_s:
            log.warning("Estimate was cut short", cluster=cluster, replicas=count)
        return count

    async def _finished(self, steps: EstimateSteps) -> int:
        turns = Turns(self._clock)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return int(done.value)
            if turns.is_over():
                await turns.next()
