"""The metrics of a fleet's server."""

from __future__ import annotations

from typing import Literal

from podium.telemetry.families import counter, exponential, histogram
from podium.telemetry.process_metrics import ProcessMetrics

Result = Literal["fits", "none", "error"]


class FleetMetrics(ProcessMetrics):
    """The metric families of one server."""

    def __init__(self) -> None:
        self._requests = counter(
            "podium_fleet_requests_total", "Workloads that were asked about, by interface and result.", "api", "result"
        )
        self._duration_s = histogram(
            "podium_fleet_request_duration_seconds",
            "Time of an answer about a workload.",
            exponential(0.001, 2, 14),
            "api",
        )
        super().__init__(self._requests, self._duration_s)

    def count_answer(self, api: str, result: Result, seconds: float) -> None:
        """Record one answered request."""
        self._requests[api, result].add()
        self._duration_s[(api,)].observe(seconds)
