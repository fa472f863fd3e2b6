"""Requeues unschedulable pods when a cluster event may have made them schedulable.

Source: kubernetes v1.36.2 and v1.37.2, pkg/scheduler/backend/queue/scheduling_queue.go
(moveEntitiesToActiveOrBackoffQueue).
Differs: a queueing hint runs for one pod of each class of alike pods, see `podium.queues.unschedulable_pods`; the
results are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.objects.core import Pod
from podium.queues.hints import Hints, Interest, Strategy
from podium.queues.observer import QueueObserver
from podium.queues.requeuing import Requeuing
from podium.queues.unschedulable_pods import AlikePods, UnschedulablePods

PreCheck: TypeAlias = Callable[[Pod], bool]
_Move: TypeAlias = tuple[QueuedPodInfo, Strategy]


class EventMoves:
    """Requeues the unschedulable pods that an event may have made schedulable.

    Args:
        flush_gated: an event that matches everything also has the gates of a gated pod checked again.
    """

    def __init__(
        self,
        unschedulable: UnschedulablePods,
        hints: Hints,
        requeuing: Requeuing,
        observer: QueueObserver,
        *,
        flush_gated: bool,
    ) -> None:
        self._unschedulable = unschedulable
        self._hints = hints
        self._requeuing = requeuing
        self._observer = observer
        self._flush_gated = flush_gated

    def move_all(self, interest: Interest, old: Any, new: Any, pre_check: PreCheck | None) -> None:
        """Requeue every pod that passes the check and that the hints say the event may have made schedulable.

        Cost: a hint call per class of alike pods and interested rejector; then proportional to the pods that move.
        """
        if not self._unschedulable:
            return
        if interest.is_wildcard:
            moves = self._one_by_one(self._unschedulable, interest, old, new)
        else:
            classes = self._unschedulable.rejected_by(interest.plugins)
            moves = (move for alike in classes for move in self._of_class(alike, interest, old, new))
        self._requeue(moves, interest, pre_check)

    def move_pods(self, pods: Iterable[QueuedPodInfo], interest: Interest) -> None:
        """Move these pods only; otherwise like `move_all`."""
        self._requeue(self._one_by_one(pods, interest, None, None), interest, None)

    def _requeue(self, moves: Iterable[_Move], interest: Interest, pre_check: PreCheck | None) -> None:
        # Run all hints before the first move, or a pod that moves to another class would be considered twice.
        for info, strategy in tuple(moves):
            if pre_check is not None and not any(pre_check(member.pod) for member in info.member_infos):
                continue
            if not self._requeuing.requeue(info, strategy, interest.label) and info.is_gated:
                # Upstream takes the pod out before it finds it gated, so it counts as one that has come in.
                self._observer.incoming("unschedulable", interest.label, info, is_moved=True)

    def _one_by_one(self, pods: Iterable[QueuedPodInfo], interest: Interest, old: Any, new: Any) -> Iterator[_Move]:
        for info in pods:
            checks_gate = info.gating_plugin in interest.plugins or (interest.is_wildcard and self._flush_gated)
            if info.is_gated and not checks_gate:
                continue
            strategy = self._hints.strategy(info, interest, old, new)
            if strategy is not Strategy.SKIP:
                yield info, strategy

    def _of_class(self, alike: AlikePods, interest: Interest, old: Any, new: Any) -> Iterable[_Move]:
        if alike.gating_plugin and alike.gating_plugin not in interest.plugins:
            return ()
        pods = alike.pods
        if interest.tells_apart(alike.spec.scheduler_name, alike.rejectors):
            return self._one_by_one(pods.values(), interest, old, new)
        changed_pod = pods.get((old or new).key) if interest.event.is_about_pods and (old or new) is not None else None
        if changed_pod is None:
            return self._alike(pods.values(), interest, old, new)
        other_infos = [info for info in pods.values() if info is not changed_pod]
        return (*self._one_by_one((changed_pod,), interest, old, new), *self._alike(other_infos, interest, old, new))

    def _alike(self, pods: Iterable[QueuedPodInfo], interest: Interest, old: Any, new: Any) -> Iterable[_Move]:
        """Run the hints for the first pod only: their answer holds for all pods of the class."""
        for first in pods:
            strategy = self._hints.strategy(first, interest, old, new)
            return () if strategy is Strategy.SKIP else ((info, strategy) for info in pods)
        return ()
