"""LoadVariationRiskBalancing: prefers nodes whose measured use is low and varies little, in cpu and in memory.

Runs at: Score.
Verdict: none.
Requeue: none.
Cost: a gather of eight columns.
Source: sigs.k8s.io/scheduler-plugins pkg/trimaran/loadvariationriskbalancing and resourcestats.go (2026-08).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.objects.node_metrics import CPU_LOAD, MEMORY_LOAD
from podium.objects.resource_names import CPU, MEMORY
from podium.plugins.contrib.calculations import simple_requests
from podium.plugins.contrib.load_args import LoadArgs
from podium.plugins.contrib.load_columns import FloatArray, LoadArrays, LoadScorePlugin, round_half_away

LOADS: Final = ((CPU_LOAD, CPU, 1.0), (MEMORY_LOAD, MEMORY, 1.0 / 1024.0 / 1024.0))
"""The types of loads with their resources, and the factors to millicores and MiB."""


class LoadVariationRiskBalancingArgs(LoadArgs, frozen=True, kw_only=True):
    """The plugin's args; names and defaults are upstream's.

    Attributes:
        safe_variance_margin: multiplies the deviation; 1 if it is negative.
        safe_variance_sensitivity: the deviation is raised to the inverse of this; 1 if it is negative.
    """

    safe_variance_margin: float = 1.0
    safe_variance_sensitivity: float = 1.0


class LoadVariationRiskBalancing(LoadScorePlugin):
    """Scores by the mean of expected use and its deviation, of the resource for which that is worse.

    Shape: as those of every `LoadScorePlugin`.
    """

    Args = LoadVariationRiskBalancingArgs
    args: LoadVariationRiskBalancingArgs

    def __init__(self, args: LoadVariationRiskBalancingArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self._margin = args.safe_variance_margin if args.safe_variance_margin >= 0 else 1.0
        sensitivity = args.safe_variance_sensitivity if args.safe_variance_sensitivity >= 0 else 1.0
        self._exponent = math.inf if sensitivity == 0 else 1 / sensitivity

    def scores_by_load(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the lower of both resources' scores; 0 for nodes without metrics of either type."""
        requests = simple_requests(pod.spec)
        worst = np.full(len(rows), np.nan)
        for type_, resource, factor in LOADS:
            loads = self.loads.over(snapshot, rows, type_)
            capacity = snapshot.allocatable(resource).take(rows).astype(np.float64) * factor
            worst = np.fmin(worst, self._score(loads, capacity, max(requests.get(resource, 0) * factor, 0.0)))
        return round_half_away(np.nan_to_num(worst, nan=0.0))

    def _score(self, loads: LoadArrays, capacity: FloatArray, request: float) -> FloatArray:
        """Return the score by one resource; NaN for nodes without metrics of its type."""
        mean, deviation = mean_and_deviation(loads, capacity, request)
        deviation = np.power(deviation, self._exponent)
        with np.errstate(invalid="ignore"):
            deviation = np.clip(deviation * self._margin, 0.0, 1.0)
        scores = (1 - (mean + deviation) / 2) * fwk.MAX_NODE_SCORE
        return np.where(np.isnan(loads.mean), np.nan, np.where(capacity <= 0, 0.0, scores))


def mean_and_deviation(loads: LoadArrays, capacity: FloatArray, request: float) -> tuple[FloatArray, FloatArray]:
    """Return the mean use with a request, and its deviation, as parts of the capacity from 0 to 1.

    Shape: one entry per row; NaN where there is no load, or no capacity.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        usage = np.clip(loads.mean * capacity / 100, 0.0, capacity)
        spread = np.clip(loads.deviation * capacity / 100, 0.0, capacity)
        return np.clip((usage + request) / capacity, 0.0, 1.0), np.clip(spread / capacity, 0.0, 1.0)
