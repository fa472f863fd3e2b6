"""Measured loads and capacities as columns of the snapshot, and scoring by them.

Owns which value belongs to which row. Never knows what a score means.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework import contract as fwk
from podium.lib.change_log import ChangeLog
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.meta import ResourceList
from podium.objects.node_metrics import MetricsSource, NodeMetricsReport
from podium.objects.requests import whole_amounts

FloatArray: TypeAlias = NDArray[np.float64]


class LoadArrays(NamedTuple):
    """As `objects.node_metrics.Loads`, for rows of a snapshot. Shape: one entry per row."""

    first: FloatArray
    last: FloatArray
    mean: FloatArray
    deviation: FloatArray


class LoadColumns:
    """The loads of the nodes in a report, by row.

    Shape: results have one entry per row that is asked for.
    Cost: one look-up for each node when the report or the nodes have changed; then a gather for each use.
    """

    def __init__(self, metrics: fwk.NodeMetrics) -> None:
        self._metrics = metrics
        self._report: NodeMetricsReport | None = None
        self._nodes: ChangeLog[int] | None = None
        self._nodes_end = -1
        self._positions: IntArray = np.zeros(0, np.int64)
        self._arrays: dict[str, FloatArray] = {}

    @property
    def report(self) -> NodeMetricsReport | None:
        """The latest report."""
        return self._metrics.report

    def over(self, snapshot: Snapshot, rows: Rows, type_: str) -> LoadArrays:
        """Return the loads of one type; NaN for nodes without, and for all of them without a report."""
        self._follow(snapshot)
        arrays = self._arrays.get(type_)
        if arrays is None:
            report = self._report
            loads = () if report is None else report.loads(type_)
            # Position -1, of nodes that are not in the report, is the last column.
            arrays = np.full((4, 1 + (len(loads[0]) if loads else 0)), np.nan)
            for array, values in zip(arrays, loads, strict=False):
                array[:-1] = values
            self._arrays[type_] = arrays
        return LoadArrays(*arrays[:, self._positions.take(rows)])

    def has_node(self, snapshot: Snapshot, rows: Rows) -> NDArray[np.bool_]:
        """Return for each row whether the report has its node."""
        self._follow(snapshot)
        is_there: NDArray[np.bool_] = self._positions.take(rows) >= 0
        return is_there

    def _follow(self, snapshot: Snapshot) -> None:
        report, nodes = self._metrics.report, snapshot.node_changes
        is_same = report is self._report
        if is_same and nodes is self._nodes and nodes.end == self._nodes_end:
            return
        if not is_same:
            self._report, self._arrays = report, {}
        self._nodes, self._nodes_end = nodes, nodes.end
        entries = () if report is None else report.data.by_name.items()
        position_of = {name: at for at, (name, node) in enumerate(entries) if node.metrics is not None}
        positions = (-1 if node is None else position_of.get(node.name, -1) for node in snapshot.nodes)
        self._positions = np.fromiter(positions, np.int64, len(snapshot.nodes))


class CapacityColumn:
    """The capacity of each node, by row, cpu in thousandths; 0 for one that cannot be read.

    Shape: one entry per row that is asked for.
    """

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._nodes: ChangeLog[int] | None = None
        self._nodes_end = -1
        self._column: FloatArray = np.zeros(0)

    def over(self, snapshot: Snapshot, rows: Rows) -> FloatArray:
        """Return the capacities of the rows. Cost: one pass over the nodes after nodes have changed."""
        nodes = snapshot.node_changes
        if nodes is not self._nodes or nodes.end != self._nodes_end:
            self._nodes, self._nodes_end = nodes, nodes.end
            capacities = (0 if node is None else self._amount(node.status.capacity) for node in snapshot.nodes)
            self._column = np.fromiter(capacities, np.float64, len(snapshot.nodes))
        return self._column.take(rows)

    def _amount(self, capacity: ResourceList) -> int:
        try:
            return whole_amounts({self._resource: capacity.get(self._resource, 0)}, "")[self._resource]
        except FieldError:
            return 0


def round_half_away(values: FloatArray) -> IntArray:
    """Return the nearest integers, halves away from zero, as Go rounds. Shape: as `values`."""
    integers = np.trunc(values)
    result: IntArray = (integers + np.sign(values) * (np.abs(values - integers) >= 0.5)).astype(np.int64)
    return result


class StalenessArgs(Protocol):
    """The args that every plugin of measured loads has."""

    @property
    def when_stale(self) -> str:
        """`score` or `skip`."""
        ...

    @property
    def stale_after_seconds(self) -> float:
        """The age from which metrics are old."""
        ...

    def source(self) -> MetricsSource:
        """Return where the loads are read."""
        ...


class LoadScorePlugin(fwk.TableScorePlugin, fwk.ScorePlugin):
    """Scores nodes by their measured loads. Its answers change with the metrics, so none is cached.

    Shape: scores have one entry per row that is asked for.
    """

    args: StalenessArgs

    def __init__(self, args: StalenessArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self.metrics = handle.node_metrics(args.source())
        self.loads = LoadColumns(self.metrics)

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Score by the latest metrics; 0 for all nodes without any, or if they are stale and `whenStale` is `skip`.

        Raises:
            ScheduleError: a quantity of the pod cannot be parsed.
        """
        is_skipped = self.args.when_stale == "skip" and self.metrics.is_stale(self.args.stale_after_seconds)
        if is_skipped or self.metrics.report is None:
            return np.zeros(len(rows), np.int64)
        try:
            return self.scores_by_load(pod, snapshot, rows)
        except FieldError as error:
            raise fwk.ScheduleError(str(error)) from error

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Score one node as `score_rows`."""
        return int(self.score_rows(state, pod, node.snapshot, np.array([node.row], np.intp))[0])

    def notes(self) -> Sequence[str]:
        """Return what it decides by."""
        return [self.metrics.note(self.args.stale_after_seconds if self.args.when_stale == "skip" else None)]

    @abstractmethod
    def scores_by_load(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the scores by the latest report, however old. Raises: FieldError for a quantity of the pod."""
