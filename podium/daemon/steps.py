"""Attempts that take long, on the event loop: extenders are asked, and others have their turn in the pauses.

Owns after how long a pause is made use of. Never decides, and never looks at what the steps come to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from podium.framework.cycle.extenders import Answer, Pause, Question, Steps
from podium.lib.clock import Clock
from podium.lib.turns import Turns

T = TypeVar("T")

_AT_ONCE_S_MAX: Final = 0.005
"""How long an attempt goes on without making use of a pause."""


def advance(steps: Steps[T], clock: Clock, started_s: float) -> Question | Pause:
    """Go on to where extenders have to be asked, or to a pause where others have waited long enough.

    Raises:
        StopIteration: the steps end before, with their result.
    """
    step = next(steps)
    while isinstance(step, Pause) and clock.monotonic() < started_s + _AT_ONCE_S_MAX:
        step = next(steps)
    return step


async def finish(
    steps: Steps[T], step: Question | Pause, answer: Callable[[Question], Awaitable[Answer]], clock: Clock
) -> T:
    """The result of steps that have come to a question or a pause."""
    turns = Turns(clock)
    await turns.next()
    try:
        while True:
            if not isinstance(step, Pause):
                step = steps.send(await answer(step))
                continue
            if turns.is_over():
                await turns.next()
            step = next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
