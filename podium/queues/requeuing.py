"""Moves a pod to the active queue or a backoff queue, or gates it.

Source: kubernetes v1.36.2 and v1.37.2, pkg/scheduler/backend/queue/scheduling_queue.go (moveToActiveQ, moveToBackoffQ,
requeueEntityWithQueueingStrategy).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from podium.framework.contract.queued_pod import QueuedPodGroupInfo, QueuedPodInfo
from podium.lib.clock import Clock
from podium.queues.gating import PreEnqueueCheck
from podium.queues.hints import Strategy
from podium.queues.nominator import Nominator
from podium.queues.observer import QueueObserver
from podium.queues.queued_pods import QueuedPods
from podium.queues.states import QueueEvent, QueueState


class Requeuing:
    """Moves pods between their states; PreEnqueue plugins may gate them on the way.

    `coming_from` is the state of a pod that does not wait yet: it is new, or in flight. `now_s` is the time, if the
    caller has just read it. A pod that goes where its strategy says does not count as moved.

    Args:
        nominating_events: a pod that enters the active queue for one of them is nominated as its status says.
        has_loose_groups: whether pods of groups wait one by one. Then such a pod, which backs off after every attempt,
            is not popped before its backoff ends: it would be attempted without a pause.
    """

    def __init__(
        self,
        pods: QueuedPods,
        pre_enqueue_check: PreEnqueueCheck,
        nominator: Nominator,
        clock: Clock,
        observer: QueueObserver,
        wake: Callable[[], None],
        *,
        nominating_events: Collection[str],
        has_loose_groups: bool = False,
    ) -> None:
        self._queued = pods
        self._pre_enqueue_check = pre_enqueue_check
        self._nominator = nominator
        self._nominating_events = nominating_events
        self._clock = clock
        self._observer = observer
        self._wake = wake
        self._has_loose_groups = has_loose_groups

    def requeue(
        self, info: QueuedPodInfo, strategy: Strategy, event: str, *, coming_from: QueueState = QueueState.GONE
    ) -> bool:
        """Requeue the pod by the strategy; return False if it is unschedulable or gated afterwards."""
        if strategy is Strategy.SKIP:
            self._queued.move(info, QueueEvent.MARK_UNSCHEDULABLE, event, coming_from=coming_from)
            self._observer.incoming("unschedulable", event, info, is_moved=False)
            return False
        if not self._is_let_in(info, event, coming_from, strategy):
            return False
        if strategy is Strategy.AFTER_BACKOFF and self._queued.is_backing_off(info):
            self._admitted_to_backoff(info, event, coming_from, strategy)
        else:
            self.admitted_to_active(info, event, coming_from=coming_from, strategy=strategy)
        return True

    def to_active(
        self,
        info: QueuedPodInfo,
        event: str,
        *,
        coming_from: QueueState = QueueState.GONE,
        now_s: float | None = None,
        strategy: Strategy | None = None,
    ) -> bool:
        """Move the pod or group to the active queue; False if it is gated instead."""
        if not self._is_let_in(info, event, coming_from, strategy):
            return False
        self.admitted_to_active(info, event, coming_from=coming_from, now_s=now_s, strategy=strategy)
        return True

    def admitted_to_active(
        self,
        info: QueuedPodInfo,
        event: str,
        *,
        coming_from: QueueState = QueueState.GONE,
        now_s: float | None = None,
        strategy: Strategy | None = None,
    ) -> None:
        """Move a pod that passed PreEnqueue since it last failed to the active queue; otherwise like `to_active`."""
        now_s = self._clock.now() if now_s is None else now_s
        for waiting in (info, *info.member_infos):
            if waiting.initial_attempt_timestamp_s is None:
                waiting.initial_attempt_timestamp_s = now_s
        self._queued.move(info, QueueEvent.ENQUEUE, event, coming_from=coming_from, now_s=now_s)
        self._observer.incoming("active", event, info, is_moved=strategy is not Strategy.IMMEDIATELY)
        if event in self._nominating_events:
            self._nominator.add(info.pod)
        self._wake()

    def to_backoff(self, info: QueuedPodInfo, event: str, coming_from: QueueState) -> bool:
        """Move the pod or group to a backoff queue; False if it is gated instead."""
        if not self._is_let_in(info, event, coming_from, None):
            return False
        self._admitted_to_backoff(info, event, coming_from, None)
        return True

    def _admitted_to_backoff(
        self, info: QueuedPodInfo, event: str, coming_from: QueueState, strategy: Strategy | None
    ) -> None:
        is_rejected = info.rejector_plugins and not self._waits_in_full(info)
        move = QueueEvent.BACK_OFF if is_rejected else QueueEvent.BACK_OFF_AFTER_ERROR
        self._queued.move(info, move, event, coming_from=coming_from)
        self._observer.incoming("backoff", event, info, is_moved=strategy is not Strategy.AFTER_BACKOFF)
        self._wake()

    def _waits_in_full(self, info: QueuedPodInfo) -> bool:
        """Return whether the pod or group must not be popped before its backoff ends."""
        is_member = self._has_loose_groups and info.pod.spec.scheduling_group is not None
        return is_member or isinstance(info, QueuedPodGroupInfo)

    def _is_let_in(self, info: QueuedPodInfo, event: str, coming_from: QueueState, strategy: Strategy | None) -> bool:
        """Return whether PreEnqueue admits the pod; if not, it is gated, or backs off if a PreEnqueue plugin failed."""
        if self._pre_enqueue_check.admits(info):
            return True
        # A plugin that fails would gate the pod for ever, as no event frees it.
        if info.has_failed_at_gate:
            info.consecutive_errors_count += 1
            info.timestamp_s, info.backoff_expiration_s = self._clock.now(), 0.0
            self._queued.move(info, QueueEvent.BACK_OFF_AFTER_ERROR, event, coming_from=coming_from)
            self._observer.incoming("backoff", event, info, is_moved=strategy is not Strategy.AFTER_BACKOFF)
            self._wake()
            return False
        info.was_flushed_from_unschedulable = False
        old_state = self._queued.move(info, QueueEvent.GATE, event, coming_from=coming_from)
        if old_state not in (QueueState.UNSCHEDULABLE, QueueState.GATED):
            self._observer.incoming("unschedulable", event, info, is_moved=True)
        return False
