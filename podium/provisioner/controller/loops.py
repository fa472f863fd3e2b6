"""A loop that runs one step at a time: again after the pause that the step asks for, or after a backoff if it fails.

Source: operatorpkg singleton (one event, requeued by its own result), as karpenter v1.15.0 uses it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import anyio

from podium.client.backoff import Backoff
from podium.engine.errors import ClusterError
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError
from podium.objects.errors import FieldError

log = get_logger("provisioner")

Step = Callable[[], Awaitable[float]]
"""Does what there is to do, and returns in how many seconds to look again."""

FAILURES: Final = (ApiError, FieldError, ClusterError)
"""What may go wrong with the world; everything else is a bug, and ends the process."""


class StepCounter(Protocol):
    """Counts steps."""

    def record_step(self, loop: str, seconds: float, *, is_error: bool) -> None:
        """Record that a step has ended."""
        ...


async def run_again_and_again(name: str, step: Step, backoff: Backoff, clock: Clock, counter: StepCounter) -> None:
    """Run the step until cancelled."""
    while True:
        started_s = clock.monotonic()
        try:
            pause_s = await step()
        except FAILURES as error:
            # Only what the world can do to a loop; anything else is a bug that a restart reveals and a backoff would
            # hide.
            pause_s = backoff.delay_s()
            log.warning("A loop has failed and runs again", loop=name, error=str(error), after_s=round(pause_s, 1))
            counter.record_step(name, clock.monotonic() - started_s, is_error=True)
        else:
            backoff.reset()
            counter.record_step(name, clock.monotonic() - started_s, is_error=False)
        await anyio.sleep(pause_s)
