"""Run accurate estimates in short turns, so that other requests are served in between.

Owns the time limit of a question, and that a cluster runs only one dry run at a time: the pods of one would count in
another.

Cost: a turn holds the event loop for 5 ms. The first question with a new selector takes longer.
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
"""Karmada waits 3 s for all clusters together, and drops all answers if one is missing."""


class InTurns:
    """Runs estimates that are generators of steps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._locks: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    async def run(self, cluster: str, begin: Callable[[Callable[[], bool]], EstimateSteps]) -> int:
        """Run an estimate. If it exceeds the time limit, waiting included, return the number reached by then.

        Args:
            begin: creates the estimate; its argument is a function that says whether to stop early.
        """
        clock = self._clock
        ends_s = clock.monotonic() + QUESTION_S_MAX
        async with self._locks[cluster]:
            with closing(begin(lambda: clock.monotonic() >= ends_s)) as steps:
                count = await self._run_to_end(steps)
        if clock.monotonic() >= ends_s:
            log.warning("Estimate stopped at its time limit", cluster=cluster, replicas=count)
        return count

    async def _run_to_end(self, steps: EstimateSteps) -> int:
        turns = Turns(self._clock)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                return int(stop.value)
            if turns.is_over():
                await turns.next()
