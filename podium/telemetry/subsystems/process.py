"""The process: errors, reloads, spans, the event loop, its endpoints, and its version."""

from __future__ import annotations

import platform
from typing import Literal

import podium
from podium.telemetry.families import (
    Bounds,
    ReadFamily,
    ReadValue,
    ReadValues,
    counter,
    gauge,
    histogram,
    read_counter,
    read_gauge,
)
from podium.telemetry.logging import lines_lost

_STALL_S = Bounds(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


def log_lines_lost() -> ReadFamily:
    """Return the counter that exposes `logging.lines_lost`."""
    family = read_counter(
        "podium_log_lines_lost_total", "Log lines lost because the log was not read or could not be written."
    )
    family.read_from(lines_lost)
    return family


class RuntimeMetrics:
    """The process: errors, reloads, spans, the event loop, its endpoints, and its version."""

    def __init__(self) -> None:
        self._unexpected = counter(
            "podium_unexpected_errors_total", "Exceptions caught from plugins, handlers and tasks.", "where", "name"
        )
        self._reloads = counter(
            "podium_configuration_reloads_total",
            "Changed configurations and kubeconfigs that were taken over, or refused.",
            "result",
        )
        self._reload_successful = read_gauge(
            "podium_configuration_last_reload_successful",
            "1 if the configuration and the kubeconfig that were read last are in use, or 0.",
        )
        self._spans = read_counter(
            "podium_tracing_spans_total",
            "Spans that were exported to the collector, or dropped because it was away or too slow.",
            "result",
        )
        self._stall_s = histogram(
            "podium_loop_stall_seconds", "How late the event loop was, measured 50 times a second.", _STALL_S
        )
        self._stall_s_max = gauge("podium_loop_stall_max_seconds", "The longest time that the event loop was late.")
        self._broken = counter("podium_broken_objects_total", "Objects with a field that cannot be read.", "kind")
        self._conflicts = counter(
            "podium_conflicts_total",
            "Bindings to nodes without enough free capacity, by kind of conflict and by which scheduler bound last.",
            "kind",
            "by",
        )
        self._log_lines_lost = log_lines_lost()
        self._malformed = counter("podium_malformed_requests_total", "Requests to the endpoints that are not HTTP.")
        self._dropped = counter(
            "podium_dropped_connections_total",
            "Connections to the endpoints that were closed early, by reason.",
            "reason",
        )
        self._build = gauge(
            "podium_build_info", "The versions that are running; the value is always 1.", "version", "python_version"
        )
        self._build[podium.__version__, platform.python_version()].set(1)
        super().__init__()

    def count_unexpected_error(self, where: Literal["plugin", "handler", "task"], name: str) -> None:
        """Count an unexpected exception, at one of the three places that catch every exception."""
        self._unexpected[where, name].add()

    def count_reload(self, result: str) -> None:
        """Count a changed configuration that was `applied` or `refused`."""
        self._reloads[(result,)].add()

    def read_last_reload(self, is_successful: ReadValue) -> None:
        """Set the source of whether the configuration that was read last is in use."""
        self._reload_successful.read_from(is_successful)

    def read_spans(self, results: ReadValues) -> None:
        """Set the source of the counts of spans: exported, dropped → count."""
        self._spans.read_from(results)

    def observe_loop_stall(self, seconds: float) -> None:
        """Record the measured lateness of the event loop."""
        self._stall_s[()].observe(seconds)
        longest = self._stall_s_max[()]
        if seconds > longest.value:
            longest.set(seconds)

    def count_malformed_request(self) -> None:
        """Count input to the endpoints that is not HTTP."""
        self._malformed[()].add()

    def count_dropped_connection(self, reason: str) -> None:
        """Count a closed connection to the endpoints: it was idle for too long, or there were too many."""
        self._dropped[(reason,)].add()

    def count_broken_object(self, kind: str) -> None:
        """Count an object with a field that cannot be read."""
        self._broken[(kind,)].add()

    def count_conflict(self, kind: str, by: str) -> None:
        """Count a pod that was bound to a node without free capacity for it."""
        self._conflicts[kind, by].add()
