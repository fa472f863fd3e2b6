"""The pod groups as plugins see them: their pods, the rules for scheduling them together, and their queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.cluster.pod_groups import PodGroupState, PodGroupStates
from podium.config import PodGroupRules
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.objects.core import Pod
from podium.queues.scheduling_queue import SchedulingQueue


class QueuedPodGroups:
    """Implements `podium.framework.contract.pod_groups.PodGroups`.

    Attributes:
        states: the pods of each group; the cache and the callers of `SchedulingQueue.add` keep it up to date.
    """

    def __init__(self, rules: PodGroupRules) -> None:
        self._rules = rules
        self._queue: SchedulingQueue | None = None
        self.states = PodGroupStates()

    @property
    def rules(self) -> PodGroupRules:
        """The rules of scheduling pods in groups."""
        return self._rules

    def use_queue(self, queue: SchedulingQueue) -> None:
        """Set the queue, which is created after the plugins."""
        self._queue = queue

    def state(self, key: str) -> PodGroupState | None:
        """Return the pods of the group with that key; None if it has no pods."""
        return self.states.get(key)

    def scheduled(self) -> Iterable[Pod]:
        """Return the pods of all groups that have a node."""
        return self.states.scheduled()

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move the pods to the active queue."""
        if self._queue is not None:
            self._queue.activate(pods)

    def pop_with(self, first: QueuedPodInfo, key: str) -> Sequence[QueuedPodInfo]:
        """Pop the other waiting pods of the group of `first`, which has been popped.

        Returns:
            All of them in the order of their attempts.
        """
        state = self.states.get(key)
        if state is None or self._queue is None:
            return [first]
        return self._queue.pop_with(first, list(state.unscheduled.values()))
