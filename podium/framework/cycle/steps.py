"""An attempt that may have to wait: a generator that yields questions to extenders, and pauses if it is long.

Whoever runs it decides what waiting means: the daemon makes the requests and lets other tasks run, an offline caller
without extenders runs it to its end at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from podium.cluster import Snapshot
from podium.config import Extender
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.interface import FilteredNodes, PostFilterPlugin, PostFilterResult
from podium.framework.contract.status import Status
from podium.framework.cycle.questions import Answer, Question
from podium.objects.core import Pod

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pause:
    """No question: other tasks may run here, as long as the snapshot stays as it is."""


PAUSE: Final = Pause()

Steps: TypeAlias = Generator[Question | Pause, Answer | None, T]
"""A computation that yields questions to extenders, and pauses if it is long. After a pause it is sent None."""


def run_unasked(steps: Steps[T]) -> T:
    """Run steps that have no extender to call to their end, ignoring pauses."""
    try:
        while True:
            step = next(steps)
            assert isinstance(step, Pause), f"extenders have to be asked: {step}"
    except StopIteration as end:
        result: T = end.value
        return result


class AskingPostFilterPlugin(PostFilterPlugin):
    """A PostFilter plugin that calls extenders before it preempts, and pauses for other tasks."""

    @abstractmethod
    def post_filter_asking(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, filtered: FilteredNodes, extenders: Sequence[Extender]
    ) -> Steps[tuple[PostFilterResult | None, Status | None]]:
        """As `post_filter`, calling these extenders."""

    def post_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, filtered: FilteredNodes
    ) -> tuple[PostFilterResult | None, Status | None]:
        """The result without any extender."""
        return run_unasked(self.post_filter_asking(state, pod, snapshot, filtered, ()))
