"""Extension points and plugins, waits at Permit, and the metrics of nodes that plugins read."""

from __future__ import annotations

from podium.telemetry.families import (
    ATTEMPT_S,
    PLUGIN_S,
    ReadValues,
    counter,
    exponential,
    histogram,
    read_counter,
    read_gauge,
)

_EXTENSION_POINT_S = exponential(0.0001, 2, 12)


class PluginMetrics:
    """Extension points and plugins, waits at Permit, and the metrics of nodes that plugins read."""

    def __init__(self) -> None:
        self._extension_point_s = histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Time that all plugins of an extension point took.",
            _EXTENSION_POINT_S,
            "extension_point",
            "status",
            "profile",
        )
        self._plugin_s = histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Time that one plugin took at an extension point, for all nodes at once, in one attempt of ten. At Filter, "
            "each status has the share of its nodes. Cached answers take no time.",
            PLUGIN_S,
            "plugin",
            "extension_point",
            "status",
        )
        self._evaluations = counter(
            "scheduler_plugin_evaluation_total",
            "Calls of plugins; at Filter and Score, of each node. Answers that are cached for pods of one kind are no "
            "calls, and are not counted.",
            "plugin",
            "extension_point",
            "profile",
        )
        self._permit_wait_s = histogram(
            "scheduler_permit_wait_duration_seconds", "Time that pods waited at Permit.", ATTEMPT_S, "result"
        )
        self._slow = counter(
            "podium_slow_plugin_calls_total",
            "Plugin calls that blocked scheduling for more than 0.1 s.",
            "plugin",
            "extension_point",
        )
        self._stuck = counter(
            "podium_loop_stuck_total",
            "Calls that blocked the event loop for more than 5 s.",
            "plugin",
            "extension_point",
        )
        self._metrics_age_s = read_gauge(
            "podium_node_metrics_age_seconds",
            "Age of the last metrics of nodes that were read from the source.",
            "source",
        )
        self._metrics_readings = read_counter(
            "podium_node_metrics_readings_total", "Times that metrics of nodes were read from the source.", "source"
        )
        self._metrics_failures = read_counter(
            "podium_node_metrics_failures_total",
            "Times that metrics of nodes could not be read from the source.",
            "source",
        )
        super().__init__()

    def read_node_metrics(self, ages_s: ReadValues, readings: ReadValues, failures: ReadValues) -> None:
        """Set the sources of the ages and counts: name of the metrics source → seconds or count."""
        self._metrics_age_s.read_from(ages_s)
        self._metrics_readings.read_from(readings)
        self._metrics_failures.read_from(failures)

    def observe_extension_point(self, point: str, status: str, profile: str, seconds: float) -> None:
        """Record a run of all plugins of an extension point; the status is the extension point's."""
        self._extension_point_s[point, status, profile].observe(seconds)

    def observe_plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """Record the run of one plugin in a sampled cycle."""
        self._plugin_s[plugin, point, status].observe(seconds)

    def count_evaluations(self, plugin: str, point: str, profile: str, times: int = 1) -> None:
        """Count a plugin's calls; for Filter, `times` is the number of nodes."""
        self._evaluations[plugin, point, profile].value += times

    def observe_permit_wait(self, status: str, seconds: float) -> None:
        """Record a pod's wait at Permit; `status` is the code that ended the wait."""
        self._permit_wait_s[(status,)].observe(seconds)

    def count_slow_plugin(self, plugin: str, point: str) -> None:
        """Count a plugin call that blocked scheduling for too long."""
        self._slow[plugin, point].add()

    def count_stuck_loop(self, plugin: str, point: str) -> None:
        """Count a call that blocked the event loop until the watchdog noticed; empty names mean no plugin."""
        self._stuck[plugin, point].add()
