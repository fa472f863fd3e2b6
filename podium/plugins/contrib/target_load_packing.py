"""TargetLoadPacking: fills nodes up to a target of measured cpu use, and avoids those above it.

Runs at: Score.
Verdict: none.
Requeue: none.
Cost: a gather of three columns, and one step for each pod that was placed since the metrics were measured.
Source: sigs.k8s.io/scheduler-plugins pkg/trimaran/targetloadpacking and handler.go (2026-08).
Differs: upstream counts every running pod as just placed when it starts; podium counts a pod from the time in its
status, so that a restart changes nothing. The args belong to their profile: upstream keeps the last profile's for all.
Scores are kept within 0 and 100, which a target above 100 or a negative load leaves upstream. A multiplier that is
infinite or no number is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.framework import contract as fwk
from podium.objects.core import Container, Pod
from podium.objects.errors import FieldError
from podium.objects.meta import Int64, ResourceList
from podium.objects.node_metrics import CPU_LOAD
from podium.objects.requests import whole_amounts
from podium.objects.resource_names import CPU
from podium.plugins.contrib.load_args import LoadArgs
from podium.plugins.contrib.load_columns import CapacityColumn, LoadScorePlugin, round_half_away
from podium.plugins.contrib.recent_pods import RecentPods

_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_UNSEEN_S: Final = 60
"""A pod that was placed later than this before the end of the metrics' window does not show in them yet."""


class TargetLoadPackingArgs(LoadArgs, frozen=True, kw_only=True):
    """The plugin's args; names and defaults are upstream's.

    Attributes:
        default_requests: the cpu that a container without requests and limits is expected to use.
        default_requests_multiplier: a container without a limit is expected to use this many times its request.
        target_utilization: the cpu use in percent that gives the highest score.
    """

    default_requests: ResourceList = msgspec.field(default_factory=lambda: {CPU: "1000m"})
    default_requests_multiplier: str = "1.5"
    target_utilization: Int64 = 40

    def problems(self) -> Iterable[str]:
        """Return what cannot be read, besides what every plugin of measured loads refuses."""
        yield from super().problems()
        try:
            whole_amounts(self.default_requests, "defaultRequests")
        except FieldError as error:
            yield str(error)
        text = self.default_requests_multiplier
        if _NUMBER.fullmatch(text) is None or math.isinf(float(text)):
            yield f"unable to parse DefaultRequestsMultiplier: {text!r} is not a finite number"


class TargetLoadPacking(LoadScorePlugin):
    """Scores by the cpu use that is to be expected with the pod: best at the target, worst at 100 %.

    Shape: as those of every `LoadScorePlugin`.
    """

    Args = TargetLoadPackingArgs
    args: TargetLoadPackingArgs

    def __init__(self, args: TargetLoadPackingArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self._target = float(args.target_utilization if args.target_utilization > 0 else 40)
        self._multiplier = float(args.default_requests_multiplier)
        self._default_milli = whole_amounts(args.default_requests, "defaultRequests").get(CPU, 0)
        self._capacity = CapacityColumn(CPU)
        self._recent_pods = RecentPods(handle, 1, self._recent_amounts)

    def scores_by_load(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the scores; 0 for nodes without an average or latest cpu load, and above 100 %."""
        report, target = self.loads.report, self._target
        assert report is not None
        utilization = self.loads.over(snapshot, rows, CPU_LOAD).last
        capacity = self._capacity.over(snapshot, rows)
        unseen = self._recent_pods.sums(snapshot, report.window.end - _UNSEEN_S)[0].take(rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            used_milli = utilization / 100 * capacity
            prediction = np.where(
                capacity == 0, 0.0, 100 * (used_milli + self._predicted_milli(pod) + unseen) / capacity
            )
            above = target * (100 - prediction) / (100 - target)
        below = (100 - target) * prediction / target + target
        scores = np.where(prediction > 100, 0.0, np.where(prediction > target, above, below))
        scores = np.where(np.isnan(utilization), 0.0, scores)
        return round_half_away(scores.clip(0.0, fwk.MAX_NODE_SCORE))

    def _recent_amounts(self, pod: Pod) -> tuple[int]:
        try:
            return (self._predicted_milli(pod),)
        except FieldError:
            return (0,)

    def _predicted_milli(self, pod: Pod) -> int:
        """Return the cpu that the pod is expected to use. Raises: FieldError."""
        overhead = whole_amounts(pod.spec.overhead, "spec.overhead").get(CPU, 0)
        return overhead + sum(
            self._predicted_of(container, f"spec.containers[{index}].resources")
            for index, container in enumerate(pod.spec.containers)
        )

    def _predicted_of(self, container: Container, path: str) -> int:
        limits = whole_amounts(container.resources.limits, f"{path}.limits")
        if CPU in limits:
            return limits[CPU]
        requests = whole_amounts(container.resources.requests, f"{path}.requests")
        if CPU in requests:
            return int(round_half_away(np.array([requests[CPU] * self._multiplier]))[0])
        return self._default_milli
