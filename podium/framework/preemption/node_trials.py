"""The dry runs of PostFilter plugins: pods are removed from a node and added back in a fork of the snapshot.

Owns the fork of the snapshot that one attempt uses, and for each node a clone of the plugins' state. Never chooses
victims.

Source: kubernetes pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods,
RunPreFilterExtensionAddPod, RunPreFilterExtensionRemovePod), v1.36.2.
Differs: nodes are tried one after the other in one fork, each change being undone, where upstream copies every node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.pod_usage import pod_usage_as_far_as_readable
from podium.cluster.snapshot import BoolArray
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.interface import Basis
from podium.framework.contract.status import ScheduleError, Status, error_status
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.nominated_pods import NominatedPods
from podium.framework.cycle.search import FilterRun
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod


class NodeTrial:
    """Implements `podium.framework.contract.interface.Trial`."""

    def __init__(
        self, framework: Framework, judge: FilterRun, state: CycleState, incoming: Pod, snapshot: Snapshot, row: int
    ) -> None:
        self._framework = framework
        self._judge = judge
        self._state = state
        self._incoming = incoming
        self._snapshot = snapshot
        self._row = row
        self._off: dict[str, Pod] = {}

    @property
    def node(self) -> NodeInfo:
        """The node as it is in the dry run."""
        return self._snapshot.node(self._row)

    def remove(self, pod: Pod) -> None:
        """Take a pod off the node."""
        self._snapshot.remove_pod(self._row, pod.uid)
        self._off[pod.uid] = pod
        self._framework.run_remove_pod(self._state, self._incoming, pod, self.node)

    def add(self, pod: Pod) -> None:
        """Put a pod back."""
        self._put_back(pod)
        self._framework.run_add_pod(self._state, self._incoming, pod, self.node)

    def status(self) -> Status | None:
        """The filters' status for the incoming pod; None if it fits."""
        try:
            return self._judge.alone(self._row)
        except ScheduleError as error:
            return error_status(error)

    def undo(self) -> None:
        """Restore the snapshot. The cloned state is dropped, so it need not be restored."""
        for pod in tuple(self._off.values()):
            self._put_back(pod)

    def _put_back(self, pod: Pod) -> None:
        del self._off[pod.uid]
        self._snapshot.add_pod(self._row, pod, pod_usage_as_far_as_readable(pod))


class ManyTrials:
    """Implements `podium.framework.contract.interface.Trials`."""

    def __init__(self, judge: FilterRun, snapshot: Snapshot) -> None:
        self._outside = judge
        self._snapshot = snapshot

    @cached_property
    def _judge(self) -> FilterRun:
        return self._outside.where_usage_changes()

    @cached_property
    def _judge_of_usage(self) -> FilterRun:
        return self._judge.of_usage()

    def bases(self, rows: Sequence[int]) -> Sequence[Basis]:
        """The node of each row, the pods on it, and the pods nominated to it."""
        nodes, pods, promised = self._snapshot.nodes, self._snapshot.pods, self._outside.promised
        return [(nodes[row], pods[row], tuple(promised.get(row, ()))) for row in rows]

    def name(self, row: int) -> str:
        """The node's name."""
        return self._snapshot.name(row)

    def pods(self, row: int) -> Mapping[str, Pod]:
        """The pods of a node by uid, without the changes of the dry run."""
        return self._snapshot.pods[row]

    def usage_of(self, rows: Iterable[int], pods: Iterable[Pod]) -> IntArray:
        """The usage that each pod adds to its node."""
        pod_usages = self._snapshot.pod_usages
        return self._snapshot.usage_of([pod_usages(row)[pod.uid] for row, pod in zip(rows, pods, strict=True)])

    def add(self, rows: Rows, usage: IntArray) -> None:
        """Add usage to each of the rows."""
        self._judge.add_usage(rows, usage)

    def remove(self, rows: Rows, usage: IntArray) -> None:
        """Subtract usage from each of the rows."""
        self._judge.add_usage(rows, -usage)

    def statuses(self, rows: Rows) -> Mapping[int, Status]:
        """The rejections of the incoming pod by row. Rows on which it fits are absent."""
        _, rejected = self._judge.judge(rows)
        return {row: status for _, rejection in rejected for row, status in rejection.by_row()}

    def fits(self, rows: Rows) -> BoolArray:
        """Whether the incoming pod still fits on each of the rows."""
        passed, _ = self._judge_of_usage.judge(rows)
        fits = np.zeros(len(rows), np.bool_)
        fits[passed] = True
        return fits


class AfterFiltering:
    """Implements `podium.framework.contract.interface.FilteredNodes`.

    Cost: the snapshot is forked on the first dry run.
    """

    def __init__(
        self,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        snapshot: Snapshot,
        nominated: NominatedPods,
        diagnosis: Diagnosis,
    ) -> None:
        self._framework = framework
        self._state = state
        self._pod = pod
        self._snapshot = snapshot
        self._nominated = nominated
        self._diagnosis = diagnosis

    def codes(self) -> IntArray:
        """The status code by row."""
        return self._diagnosis.codes()

    def status(self, row: int) -> Status:
        """The status of one row."""
        return self._diagnosis.status(row)

    @contextmanager
    def trial(self, row: int) -> Iterator[NodeTrial]:
        """Begin a dry run on one node; leaving the context undoes it."""
        state, fork = self._state.clone(), self._fork
        trial = NodeTrial(self._framework, self._judge.elsewhere(state, fork), state, self._pod, fork, row)
        try:
            yield trial
        finally:
            trial.undo()

    def trials(self) -> ManyTrials | None:
        """Begin a dry run on many nodes at once; None if a filter depends on single pods."""
        return ManyTrials(self._judge, self._snapshot) if self._judge.goes_by_usage else None

    @cached_property
    def _fork(self) -> Snapshot:
        return self._snapshot.fork()

    @cached_property
    def _judge(self) -> FilterRun:
        return FilterRun(self._framework, self._state, self._pod, self._snapshot, self._nominated)
