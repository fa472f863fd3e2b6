"""NodeLoad: keeps pods off nodes that are hot, and prefers idle ones, by measured cpu, memory or any expression.

Runs at: Filter, Score, Reserve.
Verdict: UnschedulableAndUnresolvable for a node above a threshold.
Requeue: new metrics show a node below its thresholds, or a node is added.
Cost: a gather of three columns by load; and one step for each pod that was placed since the metrics were measured.
Source: none; it is podium's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec
import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework import contract as fwk
from podium.lib.change_log import ChangeLog
from podium.objects.core import Pod, PodSpec
from podium.objects.errors import FieldError
from podium.objects.node_metrics import (
    CPU_LOAD,
    MEMORY_LOAD,
    PROMETHEUS,
    MetricsQuery,
    MetricsSource,
    NodeMetricsReport,
)
from podium.objects.requests import pod_requests
from podium.objects.resource_names import CPU, MEMORY
from podium.plugins.contrib.load_args import MetricProvider, Seconds, default_source
from podium.plugins.contrib.load_columns import CapacityColumn, FloatArray, LoadColumns
from podium.plugins.contrib.plugin_args import PluginArgs
from podium.plugins.contrib.recent_pods import RecentPods
from podium.plugins.shared.hints import queue_if

_RESOURCES: Final = {CPU: CPU_LOAD, MEMORY: MEMORY_LOAD}
_EXPRESSIONS: Final = {CPU: "instance:node_cpu:ratio", MEMORY: "instance:node_memory_utilisation:ratio"}
_LOADS_MAX: Final = 10
_HAIR: Final = 1e-9
_CHANGES_KEPT: Final = 1 << 10

_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e18)]


class MeasuredLoad(msgspec.Struct, frozen=True, rename="camel"):
    """One kind of load: `cpu`, `memory`, or a name of one's own with an expression.

    Attributes:
        expr: a PromQL expression with one series for each node; by default the use in percent, by the rules of
            node-exporter's mixin.
        node_label: the label of the series with the node's name.
        threshold: a node whose load is above takes no more pods; None for no limit.
        full: the load at which the score is 0; it is 100 at a load of 0.
        weight: of this load in the score; 0 for none.
    """

    name: str
    expr: str = ""
    node_label: str = "node"
    threshold: _Amount | None = None
    full: Annotated[float, msgspec.Meta(gt=0, le=1e18)] = 100.0
    weight: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1

    def __post_init__(self) -> None:
        """Refuse a load that nothing measures. Raises: ValueError."""
        if not self.expr and self.name not in _RESOURCES:
            raise ValueError(f"{self.name!r} has no expr, and only cpu and memory need none")

    @property
    def type(self) -> str:
        """The type of its values in a report."""
        return self.name if self.expr and self.name not in _RESOURCES else _RESOURCES[self.name]

    @property
    def query(self) -> MetricsQuery:
        """What Prometheus is asked for."""
        if self.expr:
            return MetricsQuery(self.expr, self.type, node_label=self.node_label)
        return MetricsQuery(_EXPRESSIONS[self.name], self.type, factor=100.0)


_DEFAULT_LOADS: Final = (MeasuredLoad(CPU, threshold=85.0), MeasuredLoad(MEMORY, threshold=90.0))


class NodeLoadArgs(PluginArgs, frozen=True, kw_only=True):
    """The plugin's args.

    Attributes:
        loads: by default cpu up to 85 % and memory up to 90 %.
        settling_seconds: how long after a pod was placed the metrics show it; until then its requests are added.
        when_stale, stale_after_seconds: with `skip`, while there are no metrics or only older ones, all nodes pass and
            score alike; with `score`, the last ones count.
    """

    metric_provider: MetricProvider = MetricProvider()
    watcher_address: str | None = None
    loads: Annotated[tuple[MeasuredLoad, ...], msgspec.Meta(min_length=1, max_length=_LOADS_MAX)] = _DEFAULT_LOADS
    settling_seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 120.0
    when_stale: Literal["score", "skip"] = "skip"
    stale_after_seconds: Seconds = 300.0

    def problems(self) -> Iterable[str]:
        """Return which loads are there twice, and which expressions nothing evaluates."""
        types = [load.type for load in self.loads]
        if len(set(types)) < len(types):
            yield f"loads: {max(types, key=types.count)!r} is there twice"
        try:
            source = self.source()
        except ValueError as error:
            yield str(error)
            return
        if source.type != PROMETHEUS and any(load.expr for load in self.loads):
            yield "loads: an expr needs metricProvider.type Prometheus"

    def source(self) -> MetricsSource:
        """Return where the loads are read. Raises: ValueError if nothing is named."""
        queries = tuple(load.query for load in self.loads)
        return default_source(self.watcher_address, self.metric_provider, queries)


class NodeLoad(fwk.TableFilterPlugin, fwk.FilterPlugin, fwk.TableScorePlugin, fwk.ScorePlugin, fwk.ReservePlugin):
    """Rejects nodes above a threshold; scores by the part of each load that is free with the pod."""

    Args = NodeLoadArgs
    args: NodeLoadArgs

    def __init__(self, args: NodeLoadArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self.metrics = handle.node_metrics(args.source())
        self._recent_pods = RecentPods(handle, len(args.loads), self._requests)
        self._use = NodeUse(args, self.metrics, self._recent_pods)
        self._skipped: ChangeLog[int] = ChangeLog()
        # No pod requests the empty name, which stands for a load that is no resource.
        self._resources = [load.name if load.name in _RESOURCES else "" for load in args.loads]
        self._last_amounts: tuple[PodSpec | None, Sequence[int]] = None, ()
        self._rejections = [
            fwk.unresolvable(f"node(s) were above {load.threshold or 0.0:g}{_unit(load)} of {load.name}, as measured")
            for load in args.loads
        ]

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register new metrics, and added nodes."""
        return (
            fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD),
            fwk.on(
                fwk.EventResource.NODE_METRICS,
                fwk.ActionType.ADD,
                fwk.ActionType.UPDATE,
                hint=self.after_report,
                scope=fwk.HintScope.SPEC,
            ),
        )

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return USAGE: loads count pods that were just placed."""
        return fwk.Scope.USAGE

    score_scope = filter_scope

    def outside_changes(self, snapshot: Snapshot) -> ChangeLog[int]:
        """Return the rows on which pods were placed or have settled; another log after a report."""
        use = self._current_use(snapshot)
        return self._skipped if use is None else use.changed_rows

    def after_report(self, pod: Pod, old: NodeMetricsReport | None, new: NodeMetricsReport | None) -> fwk.QueueingHint:
        """Queue if a node is below its thresholds now that was above one."""
        return queue_if(old is None or new is None or bool(self._hot_nodes(old) - self._hot_nodes(new)))

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return for each row the number of the first load that is above its threshold, counted from 1.

        Shape: one entry per row.
        """
        if (use := self._current_use(snapshot)) is None:
            return None
        verdicts: IntArray = use.verdicts.take(rows)
        return verdicts if verdicts.any() else None

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return UnschedulableAndUnresolvable: preemption does not cool a node at once."""
        return self._rejections[verdict - 1]

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success or UnschedulableAndUnresolvable."""
        if (use := self._current_use(node.snapshot)) is None:
            return None
        verdict = use.verdicts.item(node.row)
        return self.explain(state, pod, verdict) if verdict else None

    def rejection_details(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> Mapping[str, int]:
        """Return how high the loads are that keep the pod off these nodes, and how old the metrics are."""
        if (report := self.metrics.report) is None:
            return {}
        self._use.follow(report, snapshot)
        loads = self._use.loads()[:, rows]
        age_s = self.metrics.age_s
        age = "" if age_s is None else f", measured {age_s:.0f} s ago"
        details = {}
        for at, load in enumerate(self.args.loads):
            values = loads[at, loads[at] > (np.inf if load.threshold is None else load.threshold)]
            if len(values):
                extent = f"{values.min():.0f}" if len(values) == 1 else f"{values.min():.0f} to {values.max():.0f}"
                details[f"{load.name} at {extent}{_unit(load)}{age}"] = len(values)
        return details

    def reserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> fwk.Status | None:
        """Count the pod on its node at once, so that a burst of pods does not go to one node."""
        self._recent_pods.assume(pod, node_name)
        return None

    def unreserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> None:
        """Stop counting the pod."""
        self._recent_pods.forget(pod)

    def notes(self) -> Sequence[str]:
        """Return what it decides by."""
        return [self.metrics.note(self.args.stale_after_seconds if self.args.when_stale == "skip" else None)]

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the weighted mean of what is free of each load; 0 for a load that is not measured on a node.

        Shape: one entry per row.

        Raises:
            ScheduleError: a quantity of the pod cannot be parsed.
        """
        if (use := self._current_use(snapshot)) is None:
            return np.zeros(len(rows), np.int64)
        return use.scores(rows, self._demanded_amounts(pod))

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Score one node as `score_rows`."""
        if (use := self._current_use(node.snapshot)) is None:
            return 0
        return use.score(node.row, self._demanded_amounts(pod))

    def _demanded_amounts(self, pod: Pod) -> Sequence[int]:
        spec, amounts = self._last_amounts
        # Most pods that follow each other are replicas, and each is asked about twice.
        if pod.spec is spec:
            return amounts
        try:
            return self._amounts(pod)
        except FieldError as error:
            raise fwk.ScheduleError(str(error)) from error

    def _current_use(self, snapshot: Snapshot) -> NodeUse | None:
        """Return what is in use by the latest report; None if there is none, or if it is to be skipped for its age."""
        report = self.metrics.report
        if report is None:
            return None
        # Without the time at which it was read, as in a question from a file, a report has no age.
        may_be_stale = report.fetched_s is not None and self.args.when_stale == "skip"
        if may_be_stale and self.metrics.is_stale(self.args.stale_after_seconds):
            return None
        self._use.follow(report, snapshot)
        return self._use

    def _amounts(self, pod: Pod) -> Sequence[int]:
        """Return the pod's request for each load; 0 for one that is no resource. Raises: FieldError."""
        requests = pod_requests(pod.spec)
        amounts = [requests.get(name, 0) for name in self._resources]
        self._last_amounts = pod.spec, amounts
        return amounts

    def _requests(self, pod: Pod) -> Sequence[int]:
        spec, amounts = self._last_amounts
        if pod.spec is spec:
            return amounts
        try:
            return self._amounts(pod)
        except FieldError:
            return [0] * len(self.args.loads)

    def _hot_nodes(self, report: NodeMetricsReport) -> set[str]:
        names, hot = list(report.data.by_name), set()
        for load in self.args.loads:
            if load.threshold is not None:
                means = report.loads(load.type).mean
                hot |= {name for name, mean in zip(names, means, strict=True) if mean > load.threshold}
        return hot


def _unit(load: MeasuredLoad) -> str:
    return "" if load.expr else " %"


class NodeUse:
    """What is in use of each load on each node: as measured, and by pods that the metrics do not show yet.

    Shape: arrays of several loads have a row for each; columns are the snapshot's rows, or those that are asked for.
    Units: cpu in millicores and memory in bytes, so that requests can be added; other loads as they are.

    Attributes:
        verdicts: the number of the first load above its threshold, counted from 1; 0 if none is.
        changed_rows: the log of changed rows; another one once all rows have changed.
    """

    def __init__(self, args: NodeLoadArgs, metrics: fwk.NodeMetrics, recent_pods: RecentPods) -> None:
        self._args = args
        total = sum(load.weight for load in args.loads) or 1
        self._weights = [load.weight / total * fwk.MAX_NODE_SCORE for load in args.loads]
        self._recent_pods = recent_pods
        self._columns = LoadColumns(metrics)
        self._capacities = {resource: CapacityColumn(resource) for resource in _RESOURCES}
        self._thresholds = np.array([[np.inf if load.threshold is None else load.threshold] for load in args.loads])
        self._full = np.array([[load.full] for load in args.loads])
        self._report: NodeMetricsReport | None = None
        self._nodes: ChangeLog[int] | None = None
        self._nodes_end = -1
        self._measured: FloatArray = np.zeros((len(args.loads), 0))
        self._unit: FloatArray = self._measured
        self._limits: FloatArray = self._measured
        self._rows: FloatArray = np.zeros((0, 4 * len(args.loads)))
        """Of each row, what the four columns have for each load: side by side, since rows are read one by one."""
        self._recent: FloatArray = self._measured
        self._share_of_unit: FloatArray = self._measured
        self._free: FloatArray = self._measured
        self.verdicts: IntArray = np.zeros(0, np.int64)
        self.changed_rows: ChangeLog[int] = ChangeLog(_CHANGES_KEPT)

    def loads(self) -> FloatArray:
        """Return the loads in the unit of their thresholds; NaN where one is not measured."""
        loads: FloatArray = (self._measured + self._recent) / self._unit
        return loads

    def scores(self, rows: Rows, requests: Sequence[int]) -> IntArray:
        """Return the weighted sum of the parts from 0 to 1 of each load that are free with these requests.

        A load that is not measured on a node has no free part.
        """
        total = np.zeros(len(rows))
        for at, (request, weight) in enumerate(zip(requests, self._weights, strict=True)):
            free = self._free[at].take(rows) - request * self._share_of_unit[at].take(rows)
            total += weight * free.clip(0.0, 1.0)
        # A hair above, so that a sum of parts that is a whole number is not rounded down.
        scores: IntArray = (total + _HAIR).astype(np.int64)
        return scores

    def score(self, row: int, requests: Sequence[int]) -> int:
        """Return what `scores` has for the row; for one row, plain Python is ten times as fast as NumPy."""
        values, total = self._rows[row].tolist(), 0.0
        for at, (request, weight) in enumerate(zip(requests, self._weights, strict=True)):
            free = values[4 * at + 3] - request * values[4 * at + 2]
            total += weight * (0.0 if free < 0.0 else 1.0 if free > 1.0 else free)
        return int(total + _HAIR)

    def follow(self, report: NodeMetricsReport, snapshot: Snapshot) -> None:
        """Compute the columns again where the report, the nodes, or the recently placed pods have changed."""
        nodes = snapshot.node_changes
        is_same = report is self._report and nodes is self._nodes and nodes.end == self._nodes_end
        # Asked several times for each pod. A pod settles with a new report only.
        if is_same and not self._recent_pods.changes:
            return
        self._recent = self._recent_pods.sums(snapshot, report.window.end - self._args.settling_seconds)
        changed_rows = self._recent_pods.changed_rows
        if not is_same:
            self._report, self._nodes, self._nodes_end = report, nodes, nodes.end
            self._measure(snapshot)
        if not is_same or changed_rows is None:
            self._update()
            self.changed_rows = ChangeLog(_CHANGES_KEPT)
            return
        for row in changed_rows:
            self._update_row(row)
            self.changed_rows.append(row)

    def _measure(self, snapshot: Snapshot) -> None:
        rows = np.arange(len(snapshot.nodes), dtype=np.intp)
        # One unit of cpu and memory is a hundredth of the node: the loads are in percent.
        self._unit = np.array([self._unit_of(load, rows, snapshot) for load in self._args.loads])
        means = np.array([self._columns.over(snapshot, rows, load.type).mean for load in self._args.loads])
        shares = np.nan_to_num(1 / (self._unit * self._full), nan=0.0)
        columns = np.array((means * self._unit, self._unit * self._thresholds, shares, np.zeros_like(means)))
        self._rows = columns.transpose(2, 1, 0).reshape(len(rows), 4 * len(means))
        columns = self._rows.reshape(len(rows), len(means), 4).transpose(2, 1, 0)
        self._measured, self._limits, self._share_of_unit, self._free = columns
        self.verdicts = np.zeros(len(rows), np.int64)

    def _update(self) -> None:
        usage = self._measured + self._recent
        is_above = usage > self._limits
        self.verdicts[:] = np.where(is_above.any(axis=0), is_above.argmax(axis=0) + 1, 0)
        self._free[:] = np.where(np.isnan(usage), 0.0, 1 - usage * self._share_of_unit)

    def _update_row(self, row: int) -> None:
        """Do what `_update` does for the row; for one row, plain Python is ten times as fast as NumPy."""
        verdict, values = 0, self._rows[row].tolist()
        for at, recent in enumerate(self._recent_pods.sums_of(row)):
            measured, limit, share, _ = values[4 * at : 4 * at + 4]
            usage = measured + recent
            if usage > limit and not verdict:
                verdict = at + 1
            # A load that is not measured is NaN, the only number that differs from itself.
            self._rows[row, 4 * at + 3] = 1 - usage * share if usage == usage else 0.0
        self.verdicts[row] = verdict

    def _unit_of(self, load: MeasuredLoad, rows: Rows, snapshot: Snapshot) -> FloatArray:
        if load.name not in _RESOURCES:
            return np.ones(len(rows))
        capacity = self._capacities[load.name].over(snapshot, rows)
        return np.where(capacity > 0, capacity / 100, np.nan)
