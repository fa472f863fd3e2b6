"""LowRiskOverCommitment: prefers nodes where pods that use up to their limits would hardly exceed the node.

Runs at: PreScore, Score.
Verdict: none.
Requeue: none.
Cost: a gather of eight columns; for each node whose pods or metrics have changed, one step for each pod on it, and up
to four evaluations of a distribution.
Source: sigs.k8s.io/scheduler-plugins pkg/trimaran/lowriskovercommitment and beta (2026-08).
Differs: requests of other resources are not looked at: upstream panics where a pod requests one of Kubernetes' own
domain and has no limits.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.framework import contract as fwk
from podium.lib.incomplete_beta import incomplete_beta
from podium.objects.core import Pod, PodSpec, once_per_spec
from podium.objects.errors import FieldError
from podium.objects.meta import Int64, ResourceList
from podium.objects.node_metrics import CPU_LOAD, MEMORY_LOAD
from podium.objects.requests import whole_amounts
from podium.objects.resource_names import CPU, MEMORY
from podium.plugins.contrib.load_args import LoadArgs
from podium.plugins.contrib.load_columns import FloatArray, LoadScorePlugin, round_half_away
from podium.plugins.contrib.load_variation_risk_balancing import mean_and_deviation
from podium.plugins.contrib.pod_sums import PodSums

_LOADS: Final = ((CPU_LOAD, CPU), (MEMORY_LOAD, MEMORY))
_WINDOW: Final = 5
_WEIGHT: Final = 0.5
_SMALLEST: Final = 5e-324
_DEVIATION_PART_MAX: Final = 0.99
_RISKS_KEPT: Final = 100_000


class LowRiskOverCommitmentArgs(LoadArgs, frozen=True, kw_only=True):
    """The plugin's args; names and defaults are upstream's.

    Attributes:
        smoothing_window_size: how many windows of measurements a deviation stands for; 5 if it is not above 0.
        risk_limit_weights: for cpu and memory, how much the risk of limits counts against that of measured use, from 0
            to 1; 0.5 for others and for what is missing.
    """

    smoothing_window_size: Int64 = _WINDOW
    risk_limit_weights: dict[str, float] = msgspec.field(default_factory=dict)


class LowRiskOverCommitment(fwk.PreScorePlugin, LoadScorePlugin):
    """Scores by the risk of cpu or memory: how far limits exceed the node, and how often use exceeds requests.

    Shape: as those of every `LoadScorePlugin`.
    """

    Args = LowRiskOverCommitmentArgs
    args: LowRiskOverCommitmentArgs

    def __init__(self, args: LowRiskOverCommitmentArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        window = args.smoothing_window_size if args.smoothing_window_size > 0 else _WINDOW
        self._smoothing = math.sqrt(window)
        weights = {name: args.risk_limit_weights.get(name, _WEIGHT) for name in (CPU, MEMORY)}
        self._weights = {name: weight if 0 <= weight <= 1 else _WEIGHT for name, weight in weights.items()}
        self._sums = PodSums(4, _amounts_on_node)

    def pre_score(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> fwk.Status | None:
        """Return Error if a quantity of the pod cannot be parsed."""
        try:
            _demand(pod.spec)
        except FieldError as error:
            return fwk.error_status(error)
        return None

    def scores_by_load(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the scores; 0 for a pod without cpu and memory, and for nodes without metrics."""
        demand = _demand(pod.spec)
        if not any(demand):
            return np.zeros(len(rows), np.int64)
        sums = self._sums.over(snapshot, rows)
        worst = np.zeros(len(rows))
        for at, (type_, resource) in enumerate(_LOADS):
            capacity = snapshot.allocatable(resource).take(rows).astype(float)
            requests, limits = sums[at].astype(float), sums[at + 2].astype(float)
            loads = self.loads.over(snapshot, rows, type_)
            means, deviations = mean_and_deviation(loads, capacity, 0.0)
            is_measured = ~np.isnan(loads.mean)
            by_load = self._load_risks(is_measured, means, deviations, capacity, requests, limits)
            by_limit = _limit_risks(capacity, requests + demand[at], limits + demand[at + 2])
            weight = self._weights[resource]
            worst = np.maximum(worst, np.clip(weight * by_limit + (1 - weight) * by_load, 0.0, 1.0))
        scores = round_half_away((1 - worst) * fwk.MAX_NODE_SCORE)
        return np.where(self.loads.has_node(snapshot, rows), scores, 0)

    def _load_risks(
        self,
        is_measured: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
        means: FloatArray,
        deviations: FloatArray,
        capacity: FloatArray,
        requests: FloatArray,
        limits: FloatArray,
    ) -> FloatArray:
        risks = np.zeros(len(capacity))
        for at in np.flatnonzero(is_measured).tolist():
            amount = capacity.item(at)
            mean, deviation = (means.item(at), deviations.item(at)) if amount > 0 else (0.0, 0.0)
            risks[at] = _load_risk(mean, deviation * self._smoothing, amount, requests.item(at), limits.item(at))
        return risks


class _Demand(NamedTuple):
    """What a pod adds to a node. Units: millicores and bytes. Limits are at least the requests."""

    cpu_milli: int
    memory_bytes: int
    cpu_limit_milli: int
    memory_limit_bytes: int


@once_per_spec
def _demand(spec: PodSpec) -> _Demand:
    """Return the pod's demand. Raises: FieldError."""
    requests = _peak(spec, "requests")
    limits = _peak(spec, "limits")
    cpu, memory = requests.get(CPU, 0), requests.get(MEMORY, 0)
    return _Demand(cpu, memory, max(limits.get(CPU, 0), cpu), max(limits.get(MEMORY, 0), memory))


def _peak(spec: PodSpec, side: Literal["requests", "limits"]) -> dict[str, int]:
    """Return what the containers need together at most, sidecars as other init containers, and the overhead."""
    total = {CPU: 0, MEMORY: 0}

    def amounts(resources: ResourceList, path: str) -> dict[str, int]:
        compute = {name: raw for name, raw in resources.items() if name in total}
        return dict(whole_amounts(compute, path))

    for index, container in enumerate(spec.containers):
        path = f"spec.containers[{index}].resources.{side}"
        for name, amount in amounts(getattr(container.resources, side), path).items():
            total[name] += amount
    for index, container in enumerate(spec.init_containers):
        path = f"spec.initContainers[{index}].resources.{side}"
        for name, amount in amounts(getattr(container.resources, side), path).items():
            total[name] = max(total[name], amount)
    for name, amount in amounts(spec.overhead, "spec.overhead").items():
        total[name] += amount
    return total


def _amounts_on_node(pod: Pod) -> _Demand:
    try:
        return _demand(pod.spec)
    except FieldError:
        return _Demand(0, 0, 0, 0)


def _limit_risks(capacity: FloatArray, requests: FloatArray, limits: FloatArray) -> FloatArray:
    """Return by how much of the over-commitment the limits exceed the node."""
    with np.errstate(divide="ignore", invalid="ignore"):
        risks = (limits - capacity) / (limits - np.minimum(requests, capacity))
    return np.where(limits > capacity, risks, 0.0)


@lru_cache(maxsize=_RISKS_KEPT)
def _load_risk(mean: float, deviation: float, capacity: float, requests: float, limits: float) -> float:
    """Return how probable it is that measured use exceeds the requests of the pods on a node.

    Args:
        mean, deviation: of the use, as parts of the capacity.
        capacity, requests, limits: of the resource, without the pod that is scored.
    """
    variance_max = mean * (1 - mean) if 0 < mean < 1 else 0.0
    deviation = min(deviation, math.sqrt(_DEVIATION_PART_MAX * variance_max))
    requests = min(requests, capacity)
    threshold = min(max(requests / capacity, 0.0), 1.0) if capacity > 0 else 0.0
    fit = _parameters(mean, deviation)
    if mean == 0:
        within = 1.0
    elif deviation == 0:
        within = 1.0 if mean <= threshold else 0.0
    else:
        within = 0.0 if fit is None else _share(fit, threshold)
    if limits < capacity and requests <= limits:
        limit_share = limits / capacity
        if limit_share == 0:
            within = 1.0
        elif fit is not None and (share := _share(fit, limit_share)) > 0:
            within = min(max(within / share, 0.0), 1.0)
    return 1 - within


def _parameters(mean: float, deviation: float) -> tuple[float, float] | None:
    """Return the parameters of a beta distribution with that mean and deviation; None if there is none."""
    variance = (deviation * deviation + mean * mean) - mean * mean
    largest = mean * (1 - mean)
    if variance < 0 or variance >= largest:
        return None
    quotient = max(largest / variance - 1, _SMALLEST) if variance > 0 else math.inf
    return None if math.isinf(quotient) else (mean * quotient, (1 - mean) * quotient)


def _share(fit: tuple[float, float], threshold: float) -> float:
    """Return the share of the distribution below the threshold; 0 if it cannot be computed."""
    a, b = fit
    if a <= 0 or b <= 0:
        return 0.0
    share = incomplete_beta(a, b, threshold)
    return share if 0 <= share <= 1 else 0.0
