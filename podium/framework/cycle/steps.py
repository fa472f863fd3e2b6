"""An attempt that may have to wait: a generator that yields questions to extenders, and pauses if it is long.

Whoever runs it decides what waiting means: the daemon makes the requests and lets other tasks run, an offline caller
without extenders runs it to its end at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from podium.cluster import Snapshot
from podium.config import Extender
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.interface import FilteredNodes, Plugin, PostFilterPlugin, PostFilterResult
from podium.framework.contract.status import Status
from podium.framework.cycle.questions import Answer, Question
from podium.objects.core import Pod
from podium.objects.pod_groups import PodGroup

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pause:
    """No question: other tasks may run here, as long as the snapshot stays as it is.

    `work` would hold them up, and may be done in a thread before the steps go on; otherwise these do it themselves.
    """

    work: Callable[[], None] | None = None


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


@dataclass(frozen=True, slots=True)
class GroupHelp:
    """What is done so that a pod group fits: the pods to evict, the most important one first."""

    victims: tuple[Pod, ...]


class PodGroupPostFilterPlugin(Plugin):
    """Runs when a pod group as a whole cannot be scheduled."""

    @abstractmethod
    def pod_group_post_filter(
        self, group: PodGroup, pods: Sequence[Pod], snapshot: Snapshot, fits: Callable[[Snapshot], Steps[Status | None]]
    ) -> Steps[GroupHelp | Status]:
        """Return what helps the group, or why nothing does.

        Args:
            pods: the waiting pods of the group.
            fits: tries the group on a fork of the snapshot; None if it can be scheduled there.
        """


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
