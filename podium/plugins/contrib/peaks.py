"""Peaks: prefers nodes whose power draw the pod raises least.

Runs at: Score.
Verdict: none.
Requeue: none.
Cost: a gather of two columns, and two exponentials for each node.
Source: sigs.k8s.io/scheduler-plugins pkg/trimaran/peaks (2026-08).
Differs: the keys may also be spelt as those of other plugins (`watcherAddress`, `nodePowerModel`). Power models come
from the configuration only: upstream also looks for a file that the environment names, and loses what it reads there
unless the map is there and empty. A rise beyond the range of int64 counts as its limit; upstream's wraps around to the
best.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec
import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.framework import contract as fwk
from podium.objects.core import Pod, PodSpec
from podium.objects.node_metrics import CPU_LOAD, WATCHER, MetricsSource
from podium.objects.requests import pod_requests
from podium.objects.resource_names import CPU
from podium.plugins.contrib.calculations import reverse_min_max
from podium.plugins.contrib.load_args import Seconds
from podium.plugins.contrib.load_columns import CapacityColumn, FloatArray, LoadScorePlugin
from podium.plugins.contrib.plugin_args import PluginArgs

_SCALE: Final = 1e15
_LIMIT: Final = float(2**63 - 1024)


class PowerModel(msgspec.Struct, frozen=True):
    """A node's power draw, `k0 + k1 * e**(k2 * u)` at a cpu use of u percent. `k0` has no effect on differences."""

    k0: float = 0.0
    k1: float = 0.0
    k2: float = 0.0


class PeaksArgs(PluginArgs, frozen=True, kw_only=True, rename=None):
    """The plugin's args, which upstream spells `WatcherAddress` and `NodePowerModel`.

    Attributes:
        watcher_address: the URL of a load watcher, which must be given.
        node_power_model: the model of each node, by name.
        when_stale, stale_after_seconds: podium's own, as for the other plugins of measured loads.
    """

    watcher_address: str = ""
    node_power_model: dict[str, PowerModel] = msgspec.field(default_factory=dict)
    when_stale: Literal["score", "skip"] = "score"
    stale_after_seconds: Seconds = 300.0

    def problems(self) -> Iterable[str]:
        """Return upstream's words about args without a load watcher."""
        if not self.watcher_address:
            yield "invalid MetricProvider.Type, got ; WatcherAddress: required"

    def source(self) -> MetricsSource:
        """Return the load watcher."""
        return MetricsSource(WATCHER, self.watcher_address)


class Peaks(LoadScorePlugin):
    """Scores by the rise of a node's power draw at the cpu use that is to be expected with the pod.

    Shape: as those of every `LoadScorePlugin`.
    """

    Args = PeaksArgs
    args: PeaksArgs

    def __init__(self, args: PeaksArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self._capacity = CapacityColumn(CPU)

    def scores_by_load(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the rises, scaled.

        0 for nodes without a model or a cpu load, and for those that would exceed 100 %: this is best, if others rise.
        """
        request_milli = _request_milli(pod.spec)
        utilization = self.loads.over(snapshot, rows, CPU_LOAD).first
        capacity = self._capacity.over(snapshot, rows)
        k1, k2 = self._models(snapshot, rows)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            prediction = 100 * (utilization / 100 * capacity + request_milli) / capacity
            prediction = np.where(capacity == 0, 0.0, prediction)
            rises = k1 * (np.exp(k2 * prediction) - np.exp(k2 * utilization)) * _SCALE
        rises = np.where(prediction > 100, 0.0, np.nan_to_num(rises, nan=0.0))
        return rises.clip(-_LIMIT, _LIMIT).astype(np.int64)

    def normalize_scores(self, state: fwk.CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Give the least rise the highest score."""
        return reverse_min_max(scores)

    def _models(self, snapshot: Snapshot, rows: Rows) -> tuple[FloatArray, FloatArray]:
        none, models = PowerModel(), self.args.node_power_model
        of_rows: Sequence[PowerModel] = [models.get(snapshot.name(row), none) for row in rows.tolist()]
        return np.array([model.k1 for model in of_rows]), np.array([model.k2 for model in of_rows])


def _request_milli(spec: PodSpec) -> int:
    """Return the requested cpu. Overhead only adds to what the containers request."""
    without_overhead = msgspec.structs.replace(spec, overhead={}) if spec.overhead else spec
    return pod_requests(spec).get(CPU, 0) if pod_requests(without_overhead).get(CPU, 0) else 0
