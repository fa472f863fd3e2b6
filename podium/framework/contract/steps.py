"""An attempt that may have to wait: a generator that yields questions to extenders, and pauses if it is long.

The caller decides what waiting means: the daemon makes the requests and lets other tasks run; an offline caller
without extenders runs it to its end at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from podium.framework.contract.questions import Answer, Question

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pause:
    """No question: other tasks may run here, as long as the snapshot stays as it is.

    `work` would block them. The caller may run it in a thread before the steps go on; otherwise the steps run it.
    """

    work: Callable[[], None] | None = None


PAUSE: Final = Pause()

Steps: TypeAlias = Generator[Question | Pause, Answer | None, T]
"""A computation that yields questions to extenders, and pauses if it is long. After a pause it is sent None."""


def run_unasked(steps: Steps[T], at_pause: Callable[[], None] = lambda: None) -> T:
    """Run steps that call no extender to their end. `at_pause` is called at each pause and may end the steps."""
    try:
        while True:
            step = next(steps)
            assert isinstance(step, Pause), f"extenders have to be asked: {step}"
            at_pause()
    except StopIteration as end:
        result: T = end.value
        return result
