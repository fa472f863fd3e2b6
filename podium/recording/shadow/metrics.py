"""The metrics of a shadow."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podium.engine.cluster import Cluster
from podium.objects.core import Pod
from podium.recording.shadow.comparison import Comparison
from podium.recording.shadow.report import Disagreement
from podium.recording.shadow.shadow import Listener
from podium.telemetry.families import counter, exponential, histogram, read_gauge
from podium.telemetry.process_metrics import ProcessMetrics

_PREFIX = "podium_shadow"


class ShadowMetrics(ProcessMetrics, Listener):
    """The metric families of one shadow."""

    def __init__(self) -> None:
        self._compared = counter(
            f"{_PREFIX}_pods_compared_total",
            "Pods that the other scheduler bound, by what podium makes of the chosen node.",
            "verdict",
        )
        self._not_compared = counter(
            f"{_PREFIX}_pods_not_compared_total",
            "Pods that the other scheduler bound, and that were not compared.",
            "reason",
        )
        self._disagreements = counter(
            f"{_PREFIX}_disagreements_total",
            "Disagreements that were looked at again, by the reason and the plugin behind them.",
            "reason",
            "plugin",
        )
        self._evaluation_s = histogram(
            f"{_PREFIX}_evaluation_duration_seconds",
            "How long podium took to filter and score all nodes for a pod.",
            exponential(0.0005, 2, 14),
        )
        self._binding_s = histogram(
            f"{_PREFIX}_binding_duration_seconds",
            "How long it took from when a pending pod was first seen until its binding was.",
            exponential(0.001, 2, 18),
        )
        self._unsettled = read_gauge(
            f"{_PREFIX}_unsettled_disagreements", "Disagreements that are still to be looked at again."
        )
        super().__init__(
            self._compared,
            self._not_compared,
            self._disagreements,
            self._evaluation_s,
            self._binding_s,
            self._unsettled,
        )

    def read_unsettled(self, read: Callable[[], float]) -> None:
        """Set the function that returns the number of unsettled disagreements."""
        self._unsettled.read_from(read)

    def on_comparison(self, comparison: Comparison, *, evaluation_s: float, binding_s: float) -> None:
        """Count a comparison."""
        self._compared[(comparison.verdict.value,)].add()
        self._evaluation_s[()].observe(evaluation_s)
        self._binding_s[()].observe(binding_s)

    def on_skip(self, reason: str) -> None:
        """Count a binding that was not compared."""
        self._not_compared[(reason,)].add()

    def on_disagreement(self, disagreement: Disagreement, pod: Pod, states: Mapping[str, Cluster]) -> None:
        """Count a disagreement."""
        self._disagreements[disagreement.reason.value, disagreement.comparison.plugin].add()
