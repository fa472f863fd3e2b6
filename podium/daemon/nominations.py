"""The queue's nominations as the scheduling cycle asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.kube.objects import Pod
from podium.queues import SchedulingQueue


class QueueNominations:
    """Implements `podium.framework.search.NominatedPods`."""

    def __init__(self, queue: SchedulingQueue) -> None:
        self._queue = queue

    def ahead_of(self, pod: Pod) -> Mapping[str, Sequence[Pod]]:
        """By node name, the other nominated pods of at least this pod's priority."""
        ahead: dict[str, Sequence[Pod]] = {}
        for name in self._queue.nominator.node_names():
            pods = [
                each
                for each in self._queue.nominator.pods(name)
                if each.uid != pod.uid and each.priority >= pod.priority
            ]
            if pods:
                ahead[name] = pods
        return ahead
