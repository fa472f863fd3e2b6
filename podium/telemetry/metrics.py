"""The scheduler's metrics: kube-scheduler's names, types, labels and buckets, and the methods that record them.

Owns every metric that podium exposes. Never decides anything and reads no clock: callers measure. The names of metrics
that upstream does not have start with `podium_`.

Source: pkg/scheduler/metrics/metrics.go, component-base/metrics (kube-scheduler 1.36.2, 1.37.2).
Differs: plugin, hint and in-flight metrics are counted at once, not through a buffer that drops entries when full;
`scheduler_goroutines` counts tasks; `framework_extension_point_duration_seconds` has the status Unschedulable at Filter
if no node fits; `preemption_goroutines_execution_total` distinguishes failures from successes, and
`event_handling_duration_seconds` counts a generic update of a bound pod once.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.openmetrics import exposition as open_metrics

from podium.telemetry.families import Family, ReadFamily
from podium.telemetry.subsystems.attempts import AttemptMetrics
from podium.telemetry.subsystems.plugins import PluginMetrics
from podium.telemetry.subsystems.pod_groups import PodGroupMetrics
from podium.telemetry.subsystems.preemption import PreemptionMetrics
from podium.telemetry.subsystems.process import RuntimeMetrics
from podium.telemetry.subsystems.queues import QueueMetrics
from podium.telemetry.subsystems.requests import RequestMetrics
from podium.telemetry.subsystems.shards import ShardMetrics
from podium.telemetry.subsystems.writes import TrafficMetrics

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN_CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Metrics(
    AttemptMetrics,
    PodGroupMetrics,
    PluginMetrics,
    PreemptionMetrics,
    QueueMetrics,
    RequestMetrics,
    ShardMetrics,
    TrafficMetrics,
    RuntimeMetrics,
):
    """All metrics of one scheduler; a process may have several.

    Units: seconds everywhere. Cost: at most 1 us per call, for label values that were used before.
    Invariant: nothing is registered outside this object; `registry` belongs to it and accepts further collectors.
    `families` are the metrics that are shown, except those of the registry.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        super().__init__()
        self.families = tuple(family for family in vars(self).values() if isinstance(family, Family | ReadFamily))

    def hide(self, names: Container[str]) -> None:
        """Do not show the metrics of these names."""
        self.families = tuple(family for family in self.families if family.name not in names)

    def deprecate(self, names: Container[str], version: str) -> None:
        """Let the metrics of these names say that they are deprecated since that version."""
        for family in self.families:
            if family.name in names:
                family.help = f"(Deprecated since {version}) {family.help}"

    def render(self, *, is_open: bool = False) -> bytes:
        """Return all metrics as text (`CONTENT_TYPE`), or as OpenMetrics with exemplars (`OPEN_CONTENT_TYPE`).

        Cost: 0.7 us per line; a busy scheduler has a few thousand.
        """
        lines = (line for family in self.families for line in family.lines(is_open=is_open))
        generate = open_metrics.generate_latest if is_open else generate_latest
        return "\n".join(lines).encode() + b"\n" + generate(self.registry)

    def reset(self) -> None:
        """Reset counters and histograms; gauges, and values read from other components, stay unchanged."""
        for family in self.families:
            if isinstance(family, Family) and family.kind != "gauge":
                family.reset()

    def value(self, name: str, /, **labels: str) -> float:
        """Return a counter's or gauge's value, or a histogram's number of observations; 0 for an absent series.

        Raises: KeyError for an unknown name or label.
        """
        family = self._family(name)
        if isinstance(family, ReadFamily):
            return family.values().get(tuple(labels[label] for label in family.labels), 0.0)
        series = family.get(tuple(labels[label] for label in family.labels))
        return 0.0 if series is None else series.value

    def values(self, name: str) -> dict[tuple[str, ...], float]:
        """Return the `value` of each series, by label values in the order of the labels.

        Raises: KeyError for an unknown name.
        """
        family = self._family(name)
        if isinstance(family, ReadFamily):
            return dict(family.values())
        return {labels: series.value for labels, series in family.items()}

    def _family(self, name: str) -> Family[Any] | ReadFamily:
        family = next((family for family in self.families if family.name == name), None)
        if family is None:
            raise KeyError(name)
        return family
