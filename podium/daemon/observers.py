"""What the queue and the binder have to tell, into metrics and the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import cast

from podium.framework.queued_pod import QueuedPodInfo
from podium.kube.objects import Pod
from podium.telemetry import Metrics, get_logger
from podium.telemetry.metrics import QueueName

log = get_logger("queue")


class QueueMetrics:
    """Implements `podium.queues.QueueObserver`."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._in_flight: Counter[str] = Counter()
        metrics.read_inflight_events(self.in_flight_events)

    def in_flight_events(self) -> Mapping[str, float]:
        """The events kept for pods in flight, by label."""
        return {event: float(count) for event, count in self._in_flight.items()}

    def incoming(self, queue: str, event: str) -> None:
        """A pod entered a queue."""
        self._metrics.count_incoming(cast(QueueName, queue), event)

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        """One pod more, or less, waits that the plugin rejected."""
        self._metrics.add_unschedulable(plugin, profile, delta)

    def in_flight_events_delta(self, event: str, delta: int) -> None:
        """The record kept for pods in flight grew or shrank."""
        self._in_flight[event] += delta

    def hint_executed(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """A hint function ran."""
        self._metrics.observe_hint(plugin, event, hint, seconds)

    def plugin_failed(self, plugin: str, extension_point: str, pod: Pod, error: Exception) -> None:
        """A PreEnqueue plugin or a queueing hint failed."""
        self._metrics.count_unexpected_error("plugin", plugin)
        log.error("Plugin failed", plugin=plugin, extension_point=extension_point, pod=pod.key, exc_info=error)

    def gone_astray(self, info: QueuedPodInfo, problem: str) -> None:
        """A pod was not where it should have been."""
        log.error("Pod went astray in the queue", pod=info.key, problem=problem, story=str(info.story))
