"""The pod groups as the queue and the plugins know them: their pods, and how they are tried together."""

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
        states: the pods of each group; kept up to date by the cache, and by whoever adds pods to the queue.
    """

    def __init__(self, rules: PodGroupRules) -> None:
        self._rules = rules
        self._queue: SchedulingQueue | None = None
        self.states = PodGroupStates()

    @property
    def rules(self) -> PodGroupRules:
        """How pods are scheduled in groups."""
        return self._rules

    def wait_in(self, queue: SchedulingQueue) -> None:
        """Set the queue, which is made after the plugins."""
        self._queue = queue

    def state(self, key: str) -> PodGroupState | None:
        """The pods of the group with that key; None if there is none."""
        return self.states.get(key)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move the pods to the active queue."""
        if self._queue is not None:
            self._queue.activate(pods)

    def pop_with(self, first: QueuedPodInfo, key: str) -> Sequence[QueuedPodInfo]:
        """Pop the other waiting pods of the group too, of which one was popped.

        Returns:
            All of them in the order in which they are tried.
        """
        state = self.states.get(key)
        if state is None or self._queue is None:
            return [first]
        return self._queue.pop_with(first, list(state.unscheduled.values()))
