"""The dry runs of PostFilter plugins: pods are removed from a node and added back in a fork of the snapshot.

Owns the fork of the snapshot that one attempt uses, and for each node a clone of the plugins' state. Never chooses
victims.

Source: kubernetes v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods,
RunPreFilterExtensionAddPod, RunPreFilterExtensionRemovePod).
Differs: nodes are tried one after the other in one fork, each change being undone, where upstream copies every node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from weakref import ref

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.pod_usage import PodUsage
from podium.cluster.snapshot import BoolArray
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.dry_runs import NodeDryRun
from podium.framework.contract.status import Code, PluginError, ScheduleError, Status, error_status
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.filter_chain import FilterChain
from podium.framework.cycle.nominated_pods import RowsOfNominations
from podium.objects.core import Pod


class ForkedNodeDryRun:
    """Implements `podium.framework.contract.post_filter.NodeDryRun`."""

    def __init__(self, cycle: Cycle, filters: FilterChain, state: CycleState, snapshot: Snapshot, row: int) -> None:
        """Create a dry run. Args: `state` and `snapshot` are the dry run's own, which `filters` use as well."""
        self._framework = cycle.framework
        self._incoming = cycle.pod
        self._filters = filters
        self.state = state
        self._snapshot = snapshot
        self._row = row
        self._off: dict[str, tuple[Pod, PodUsage]] = {}

    @property
    def node(self) -> NodeInfo:
        """The node's state in the dry run."""
        return self._snapshot.node(self._row)

    def remove(self, pod: Pod) -> None:
        """Take a pod off the node; of a pod on another node only the plugins hear."""
        if self._is_here(pod):
            self._off[pod.uid] = pod, self._snapshot.pod_usage(self._row, pod)
            self._snapshot.remove_pod(self._row, pod.uid)
        self._framework.run_remove_pod(self.state, self._incoming, pod, self._node_of(pod))

    def add(self, pod: Pod) -> None:
        """Put a pod back."""
        if self._is_here(pod):
            self._put_back(pod)
        self._framework.run_add_pod(self.state, self._incoming, pod, self._node_of(pod))

    def _is_here(self, pod: Pod) -> bool:
        return pod.node_name == self._snapshot.name(self._row)

    def _node_of(self, pod: Pod) -> NodeInfo:
        return self.node if self._is_here(pod) else self._snapshot.node(self._snapshot.row_of[pod.node_name])

    def status(self) -> Status | None:
        """Return the filters' status for the incoming pod, or None if it fits."""
        try:
            return self._filters.alone(self._row)
        except ScheduleError as error:
            return error_status(error)

    def undo(self) -> None:
        """Restore the snapshot. The cloned state is dropped, so it need not be restored."""
        for pod, _ in tuple(self._off.values()):
            self._put_back(pod)

    def _put_back(self, pod: Pod) -> None:
        _, usage = self._off.pop(pod.uid)
        self._snapshot.add_pod(self._row, pod, usage)


class ForkedNodesDryRun:
    """Implements `podium.framework.contract.post_filter.NodesDryRun`."""

    def __init__(self, filters: FilterChain, snapshot: Snapshot) -> None:
        self._outside = self._filters = self._usage_filters = filters
        self._snapshot = snapshot

    @property
    def snapshot(self) -> Snapshot:
        """The nodes and pods without the changes of the dry run."""
        return self._snapshot

    @property
    def nominations(self) -> RowsOfNominations:
        """The nominations that count for the incoming pod."""
        return self._outside.nominations

    def name(self, row: int) -> str:
        """Return the node's name."""
        return self._snapshot.name(row)

    def pods(self, row: int) -> Mapping[str, Pod]:
        """Return the pods of a node by uid, without the changes of the dry run."""
        return self._snapshot.pods[row]

    def usage_of(self, rows: Iterable[int], pods: Iterable[Pod]) -> IntArray:
        """Return the usage that each pod adds to its node."""
        return self._snapshot.usage_of(self._snapshot.pod_usages(rows, pods))

    def start(self, rows: Rows, usage: IntArray) -> None:
        """Begin with these rows, without the usage."""
        self._filters = self._outside.where_usage_changes(rows)
        self._usage_filters = self._filters.of_usage()
        self.remove(rows, usage)

    def add(self, rows: Rows, usage: IntArray) -> None:
        """Add usage to each of the rows."""
        self._filters.add_usage(rows, usage)

    def remove(self, rows: Rows, usage: IntArray) -> None:
        """Subtract usage from each of the rows."""
        self._filters.add_usage(rows, -usage)

    def statuses(self, rows: Rows) -> Mapping[int, Status]:
        """Return the rejections of the incoming pod by row. Rows on which it fits are absent."""
        _, rejections = self._filters.filter(rows)
        return {row: status for _, rejection in rejections for row, status in rejection.by_row()}

    def fits(self, rows: Rows) -> BoolArray:
        """Return, for each of the rows, whether the incoming pod still fits."""
        feasible, _ = self._usage_filters.filter(rows)
        fits = np.zeros(len(rows), np.bool_)
        fits[feasible] = True
        return fits


class AfterFiltering:
    """Implements `podium.framework.contract.post_filter.FilteredNodes`.

    Cost: the snapshot is forked on the first dry run.
    """

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle

    def codes(self) -> IntArray:
        """Return the status code by row."""
        return self._cycle.diagnosis.codes()

    def count(self, code: Code) -> int:
        """Return the number of nodes with this status code."""
        return self._cycle.diagnosis.count(code, len(self._cycle.snapshot.order))

    def status(self, row: int) -> Status:
        """Return the status of one row."""
        return self._cycle.diagnosis.status(row)

    def pods(self, row: int) -> Iterable[Pod]:
        """Return the pods on one node."""
        return self._cycle.snapshot.pods[row].values()

    @contextmanager
    def dry_run(self, row: int) -> Iterator[ForkedNodeDryRun]:
        """Begin a dry run on one node; leaving the context undoes it."""
        state, fork = self._cycle.state.clone(), self._fork
        dry_run = ForkedNodeDryRun(self._cycle, self._filters.elsewhere(state, fork), state, fork, row)
        try:
            yield dry_run
        finally:
            dry_run.undo()

    def dry_run_of_nodes(self) -> ForkedNodesDryRun | None:
        """Begin a dry run on many nodes at once; None if a filter depends on single pods."""
        return ForkedNodesDryRun(self._filters, self._cycle.snapshot) if self._filters.depends_on_usage_only else None

    @cached_property
    def _fork(self) -> Snapshot:
        return self._cycle.snapshot.fork()

    @cached_property
    def _filters(self) -> FilterChain:
        return FilterChain.of(self._cycle)


def dry_runs_of(cycle: Cycle) -> Callable[[int], AbstractContextManager[NodeDryRun]]:
    """Return the function behind `podium.framework.Handle.dry_run` for this attempt."""
    # Weak, so that an attempt is freed at once, without the garbage collector.
    reference = ref(cycle)
    nodes: list[AfterFiltering] = []

    def begin(row: int) -> AbstractContextManager[NodeDryRun]:
        attempt = reference()
        if attempt is None:
            raise PluginError("handle.dry_run: the attempt has ended")
        if not nodes:
            nodes.append(AfterFiltering(attempt))
        return nodes[0].dry_run(row)

    return begin
