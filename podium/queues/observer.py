"""What the queue tells about itself, for metrics and logs."""

from __future__ import annotations

from typing import Protocol

from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.objects.core import Pod


class QueueObserver(Protocol):
    """Told of what happens in the queue, as it happens; must be quick and must not call back."""

    def incoming(self, queue: str, event: str) -> None:
        """A pod entered a queue (active, backoff or unschedulable): `queue_incoming_pods_total`."""

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        """One pod more, or less, waits that the plugin rejected: `unschedulable_pods`."""

    def in_flight_events_delta(self, event: str, delta: int) -> None:
        """The record kept for pods in flight grew or shrank: `inflight_events`."""

    def hint_executed(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """A hint function ran: `queueing_hint_execution_duration_seconds`; `hint` is Queue, QueueSkip or Error."""

    def plugin_failed(self, plugin: str, extension_point: str, pod: Pod, error: BaseException) -> None:
        """A PreEnqueue plugin or a queueing hint failed; the queue went on by its rule for that."""

    def gone_astray(self, info: QueuedPodInfo, problem: str) -> None:
        """A pod was not where it should have been; the queue has dealt with it."""


class SilentObserver:
    """Tells nobody."""

    def incoming(self, queue: str, event: str) -> None:
        """Nothing."""

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        """Nothing."""

    def in_flight_events_delta(self, event: str, delta: int) -> None:
        """Nothing."""

    def hint_executed(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """Nothing."""

    def plugin_failed(self, plugin: str, extension_point: str, pod: Pod, error: BaseException) -> None:
        """Nothing."""

    def gone_astray(self, info: QueuedPodInfo, problem: str) -> None:
        """Nothing."""
