"""The scheduling queue's reports for metrics and logs."""

from __future__ import annotations

from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.objects.core import Pod


class QueueObserver:
    """Receives reports from the queue at once. Methods must be quick, must not raise or call the queue.

    Methods do nothing by default: an observer overrides those that it needs.
    """

    def incoming(self, queue: str, event: str, info: QueuedPodInfo, *, is_moved: bool) -> None:
        """Count a pod or group that entered a queue (active, backoff or unschedulable): `queue_incoming_pods_total`.

        Args:
            is_moved: whether it counts as one that moved there: `queue_incoming_entities_total`.
        """

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        """Record a change of the number of waiting pods that the plugin rejected: `unschedulable_pods`."""

    def in_flight_events_delta(self, event: str, delta: int) -> None:
        """Record a change of the number of events kept for pods in flight: `inflight_events`."""

    def hint_executed(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """Record a hint function's run in `queueing_hint_execution_duration_seconds`; its outcome is `hint`."""

    def plugin_failed(self, plugin: str, point: str, pod: Pod, error: BaseException) -> None:
        """Report a PreEnqueue plugin or a queueing hint that failed; the queue has already handled the failure."""

    def unexpected_state(self, info: QueuedPodInfo, problem: str) -> None:
        """Report a pod that was not in the state that the queue expected; the queue has corrected it."""
