"""Handles a failed attempt: requeues the pod, records an Event and sets the pod's condition.

Source: kubernetes pkg/scheduler/schedule_one.go (handleSchedulingFailure), v1.36.2.
Differs: the status of a deleted pod is not patched; upstream tries, and the request fails. A nomination is cleared even
if no watch has shown it yet; upstream keeps it in that case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from podium.binder import EventRecorder, failed_scheduling, not_scheduled
from podium.daemon.status_writes import StatusWrite
from podium.engine.flight_recorder import AttemptObserver
from podium.framework.contract.cluster_event import ASSIGNED_POD_DELETE
from podium.framework.contract.queued_pod import QueuedPodGroupInfo, QueuedPodInfo
from podium.framework.contract.status import Status
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import FitError
from podium.lib.clock import Clock
from podium.lib.error_text import cut
from podium.lib.log import get_logger
from podium.objects.core import Pod
from podium.queues import AlreadyQueued, SchedulingQueue
from podium.telemetry import Metrics

log = get_logger("scheduler")

_Result: TypeAlias = Literal["unschedulable", "error"]


class Attempt(msgspec.Struct, frozen=True):
    """One attempt to schedule a pod, from the moment it was popped.

    Units: `started_s` is on the monotonic clock.
    """

    info: QueuedPodInfo
    cycle: Cycle
    started_s: float

    @property
    def pod(self) -> Pod:
        """The pod, as it was when the attempt began."""
        return self.cycle.pod

    @property
    def infos(self) -> Sequence[QueuedPodInfo]:
        """The pods that were popped for it: this one."""
        return (self.info,)


def still_waiting(lookup: Callable[[str], Pod | None], pod: Pod) -> Pod | None:
    """Return the pod's latest version, or None if it was deleted, recreated or bound meanwhile.

    Args:
        lookup: the latest version of the pod with that key that the API server has sent.
    """
    current = lookup(pod.key)
    return None if current is None or current.uid != pod.uid or current.node_name else current


class FailureHandler:
    """Requeues pods and records Events; the caller sends the status that is returned.

    Args:
        lookup: the latest version of the pod with that key that the API server has sent.
    """

    def __init__(
        self,
        queue: SchedulingQueue,
        lookup: Callable[[str], Pod | None],
        recorder: EventRecorder,
        metrics: Metrics,
        clock: Clock,
        observer: AttemptObserver,
    ) -> None:
        self._queue = queue
        self._lookup = lookup
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._observer = observer

    def waiting(self, pod: Pod) -> Pod | None:
        """Return the pod's latest version, or None if it was deleted, recreated or bound during the suspension."""
        return still_waiting(self._lookup, pod)

    def does_not_fit(self, attempt: Attempt, error: FitError, nominated_node_name: str | None) -> StatusWrite | None:
        """Let the pod wait for an event that may help: no node fits, or the chosen node was rejected.

        Args:
            nominated_node_name: as in `StatusWrite`.
        """
        return self._handle(attempt, "unschedulable", cut(error.message), error, nominated_node_name)

    def attempt_failed(self, attempt: Attempt, status: Status, *, is_deleted: bool = False) -> StatusWrite | None:
        """Retry the pod after its backoff: an error occurred.

        Args:
            is_deleted: the API server no longer has the pod. It is retried all the same until a watch shows that.
        """
        return self._handle(attempt, _result(status), status.message, None, "", is_deleted=is_deleted)

    def rejected_with_group(
        self, attempt: Attempt, status: Status, nominated_node_name: str | None
    ) -> StatusWrite | None:
        """Retry the pod with its group, which is not scheduled, after its backoff.

        Args:
            nominated_node_name: as in `StatusWrite`.
        """
        return self._handle(attempt, _result(status), status.message, None, nominated_node_name)

    def group_returns(self, entry: QueuedPodGroupInfo, status: Status | None) -> None:
        """The attempt at a group has ended with this status: requeue it, if pods of it wait."""
        try:
            self._queue.end_group_attempt(entry, status)
        except AlreadyQueued as error:
            log.error("Pod group could not be requeued", pod_group=entry.pod.key, error=str(error))

    def _handle(
        self,
        attempt: Attempt,
        result: _Result,
        message: str,
        error: FitError | None,
        nominated_node_name: str | None,
        *,
        is_deleted: bool = False,
    ) -> StatusWrite | None:
        info = attempt.info
        seconds = self._clock.monotonic() - attempt.started_s
        self._metrics.count_attempt(result, attempt.cycle.framework.name, seconds)
        self._observer.on_failure(attempt.pod, result, message, seconds)
        details = "" if error is None else error.details
        info.last_failure, info.last_details = message, details
        info.unschedulable_plugins.clear()
        info.pending_plugins.clear()
        info.gating_plugin = ""
        if error is not None:
            info.unschedulable_plugins.update(error.diagnosis.unschedulable_plugins)
            info.pending_plugins.update(error.diagnosis.pending_plugins)
        nominated_to = self._queue.nominator.node_of(attempt.pod.uid)
        current = self._put_back(attempt)
        self._log(attempt, result, seconds, is_deleted=is_deleted or current is None)
        if current is not None:
            self._queue.nominator.add(current, nominated_node_name)
        if current is not None or self._lookup(attempt.pod.key) is None:
            self._recorder.record(failed_scheduling(attempt.pod, message))
        if current is None:
            return None
        if nominated_to is not None and nominated_node_name == "" and not current.status.nominated_node_name:
            # No watch has shown the nomination yet, but it may have been written, so it must be cleared all the same.
            current = replace(current, status=replace(current.status, nominated_node_name=nominated_to))
            # No watch event will show that the resources kept for the pod are free for pods of no higher priority.
            uid, priority = current.uid, current.priority
            self._queue.move_all(
                ASSIGNED_POD_DELETE,
                current,
                None,
                lambda other_pod: other_pod.priority <= priority and other_pod.uid != uid,
            )
        condition = not_scheduled(current, message, is_rejected=result == "unschedulable")
        return StatusWrite(current, condition, nominated_node_name)

    def _put_back(self, attempt: Attempt) -> Pod | None:
        """Requeue the latest version of the pod; None if there is no pod to requeue."""
        pod, info = attempt.pod, attempt.info
        current = self.waiting(pod)
        if current is None:
            self._queue.done(pod.uid)
            return None
        info.pod = current
        try:
            self._queue.add_unschedulable_if_not_present(info)
        except AlreadyQueued as error:
            log.error("Pod could not be requeued", pod=pod.key, error=str(error))
        return current

    @staticmethod
    def _log(attempt: Attempt, result: str, seconds: float, *, is_deleted: bool) -> None:
        """Log the canonical line of a failed attempt."""
        if is_deleted:
            # Users delete pods at any moment: an attempt that comes to nothing because of it is no danger sign.
            tell, text = log.info, "Pod was deleted, recreated or bound during the attempt"
        elif result == "unschedulable":
            tell, text = log.info, "Unable to schedule pod; no fit; waiting"
        else:
            tell, text = log.error, "Error scheduling pod; retrying"
        tell(
            text,
            pod=attempt.pod.key,
            result=result,
            attempt=attempt.info.attempts,
            seconds=round(seconds, 6),
            reason=attempt.info.last_failure,
            **({"details": attempt.info.last_details} if attempt.info.last_details else {}),
        )


def _result(status: Status) -> _Result:
    return "unschedulable" if status.is_rejected else "error"
