"""Runs long attempts on the event loop: asks extenders, and uses pauses to let other tasks run.

Owns how much time passes before a pause is used. What would hold others up is done in a thread: they run whenever the
interpreter switches threads. Never decides, and never looks at the result of the steps.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from podium.daemon.boundary import Compute
from podium.framework.contract.questions import Answer, Question
from podium.framework.contract.steps import Pause, Steps
from podium.lib.clock import Clock
from podium.lib.turns import Turns

T = TypeVar("T")

_AT_ONCE_S_MAX: Final = 0.005
"""An attempt runs for this long before it uses a pause."""


def advance(steps: Steps[T], clock: Clock, started_s: float) -> Question | Pause:
    """Advance to the next question for extenders, or to the first pause after other tasks have waited long enough.

    Raises:
        StopIteration: the steps ended before that; it carries their result.
    """
    step = next(steps)
    while isinstance(step, Pause) and step.work is None and clock.monotonic() < started_s + _AT_ONCE_S_MAX:
        step = next(steps)
    return step


async def finish(
    steps: Steps[T],
    step: Question | Pause,
    answer: Callable[[Question], Awaitable[Answer]],
    compute: Compute,
    clock: Clock,
) -> T:
    """Run steps that have reached a question or a pause to their end, and return their result."""
    turns = Turns(clock)
    await turns.next()
    try:
        while True:
            if not isinstance(step, Pause):
                step = steps.send(await answer(step))
                continue
            if step.work is not None:
                await compute(step.work)
            if turns.is_over():
                await turns.next()
            step = next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
