"""Queues, events, the cache and the flight recorder."""

from __future__ import annotations

from typing import Literal

from podium.telemetry.families import (
    PLUGIN_S,
    ReadLabelledValues,
    ReadValue,
    ReadValues,
    counter,
    exponential,
    gauge,
    histogram,
    read_gauge,
)

EntityKind = Literal["pod", "podgroup"]


class QueueMetrics:
    """Queues, events, the cache and the flight recorder."""

    def __init__(self) -> None:
        self._goroutines = gauge("scheduler_goroutines", "Tasks in progress.", "operation")
        self._unschedulable = gauge(
            "scheduler_unschedulable_pods", "Unschedulable pods by the plugin that rejected them.", "plugin", "profile"
        )
        self._incoming = counter("scheduler_queue_incoming_pods_total", "Pods added to queues.", "queue", "event")
        self._incoming_entities = counter(
            "scheduler_queue_incoming_entities_total", "Pods and pod groups added to queues.", "queue", "event", "type"
        )
        self._event_s = histogram(
            "scheduler_event_handling_duration_seconds",
            "Time to handle a cluster event.",
            exponential(0.0001, 2, 12),
            "event",
        )
        self._hint_s = histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "Time that queueing hints took.",
            PLUGIN_S,
            "plugin",
            "event",
            "hint",
        )
        self._pending = read_gauge("scheduler_pending_pods", "Pods waiting, by queue.", "queue")
        self._entities = read_gauge("scheduler_queued_entities", "Pods and pod groups waiting.", "queue", "type")
        self._inflight = read_gauge("scheduler_inflight_events", "Events recorded for pods in flight.", "event")
        self._stray_pods = read_gauge(
            "podium_stray_pods",
            "Pods that have waited for 30 s for a scheduler whose name is similar to this profile's.",
            "profile",
        )
        self._cache_size = read_gauge("scheduler_cache_size", "Nodes and pods in the cache.", "type")
        self._recorder_attempts = read_gauge("podium_recorder_attempts", "Attempts in the flight recorder.")
        self._recorder_bytes = read_gauge("podium_recorder_bytes", "Memory of the flight recorder.")
        super().__init__()

    def add_goroutines(self, operation: str, change: int) -> None:
        """Count a task of that operation that started (1) or ended (-1)."""
        self._goroutines[(operation,)].value += change

    def add_unschedulable(self, plugin: str, profile: str, change: int) -> None:
        """Count a pod that the plugin rejected: it became unschedulable (1), or was requeued or deleted (-1)."""
        self._unschedulable[plugin, profile].add(change)

    def count_incoming(self, queue: str, event: str, pods: int = 1) -> None:
        """Count pods that entered a queue because of an event."""
        self._incoming[queue, event].value += pods

    def count_incoming_entity(self, queue: str, event: str, kind: EntityKind) -> None:
        """Count a pod by itself, or a pod group, that entered a queue because of an event."""
        self._incoming_entities[queue, event, kind].value += 1

    def observe_event(self, event: str, seconds: float) -> None:
        """Record a handled cluster event."""
        self._event_s[(event,)].observe(seconds)

    def observe_hint(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """Record a run of a queueing hint; `hint` is Queue, QueueSkip or Error."""
        self._hint_s[plugin, event, hint].observe(seconds)

    def read_pending_pods(self, read: ReadValues) -> None:
        """Set the source of the number of waiting pods: active, backoff, unschedulable, gated, … → count."""
        self._pending.read_from(read)

    def read_queued_entities(self, read: ReadLabelledValues) -> None:
        """Set the source of the number of entries of the queues: (queue, pod or podgroup) → count."""
        self._entities.read_from(read)

    def read_stray_pods(self, read: ReadValues) -> None:
        """Set the source of the number of pods with a similar scheduler name: profile → count."""
        self._stray_pods.read_from(read)

    def read_inflight_events(self, read: ReadValues) -> None:
        """Set the source of the number of events recorded for pods in flight: event label → count."""
        self._inflight.read_from(read)

    def read_cache_size(self, read: ReadValues) -> None:
        """Set the source of the size of the cache: nodes, pods, assumed_pods → count."""
        self._cache_size.read_from(read)

    def read_recorder(self, attempts: ReadValue, nbytes: ReadValue) -> None:
        """Set the sources of the flight recorder's sizes."""
        self._recorder_attempts.read_from(attempts)
        self._recorder_bytes.read_from(nbytes)
