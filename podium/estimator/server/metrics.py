"""The estimator's metrics, under upstream's names.

Source: karmada pkg/estimator/server/metrics/metrics.go, v1.18.
Differs: only the step Total is measured, and plugins are not measured one by one, since they run together.
"""

from __future__ import annotations

from typing import Literal

from podium.telemetry.families import counter, exponential, histogram
from podium.telemetry.process_metrics import ProcessMetrics

Question = Literal["MaxAvailableReplicas", "MaxAvailableComponentSets", "GetUnschedulableReplicas"]

_PREFIX = "karmada_scheduler_estimator"


class EstimatorMetrics(ProcessMetrics):
    """The metric families of one server."""

    def __init__(self) -> None:
        self._requests = counter(
            f"{_PREFIX}_estimating_request_total", "Estimates that were asked for, by result.", "result", "type"
        )
        self._duration_s = histogram(
            f"{_PREFIX}_estimating_algorithm_duration_seconds",
            "Time of an estimate.",
            exponential(0.001, 2, 10),
            "result",
            "type",
            "step",
        )
        super().__init__(self._requests, self._duration_s)

    def answered(self, question: Question, seconds: float, *, is_error: bool) -> None:
        """Record one answered request."""
        result = "error" if is_error else "success"
        self._requests[result, question].add()
        self._duration_s[result, question, "Total"].observe(seconds)
