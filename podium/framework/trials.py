"""Trying pods out on a node without a trace: the dry runs of PostFilter plugins.

Owns the private world of one attempt: a fork of the snapshot, and for each node a clone of the plugins' state. Never
decides who goes.

Source: kubernetes pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods,
RunPreFilterExtensionAddPod, RunPreFilterExtensionRemovePod), v1.36.2.
Differs: nodes are tried one after the other in one fork, each change being undone, where upstream copies every node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from podium.cluster import IntArray, NodeInfo, Snapshot
from podium.cluster.footprint import footprint_as_far_as_readable
from podium.framework.cycle_state import CycleState
from podium.framework.diagnosis import Diagnosis
from podium.framework.runtime import Framework
from podium.framework.search import Judge, NominatedPods
from podium.framework.status import ScheduleError, Status, error_status
from podium.kube.objects import Pod


class NodeTrial:
    """Implements `podium.framework.interface.Trial`."""

    def __init__(
        self, framework: Framework, judge: Judge, state: CycleState, incoming: Pod, snapshot: Snapshot, row: int
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
        """The node as it is in the private world."""
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
        """How the incoming pod fares."""
        try:
            return self._judge.alone(self._row)
        except ScheduleError as error:
            return error_status(error)

    def undo(self) -> None:
        """Leave the snapshot as it was; the state is not needed any more."""
        for pod in tuple(self._off.values()):
            self._put_back(pod)

    def _put_back(self, pod: Pod) -> None:
        del self._off[pod.uid]
        self._snapshot.add_pod(self._row, pod, footprint_as_far_as_readable(pod))


class AfterFiltering:
    """Implements `podium.framework.interface.FilteredNodes`.

    Cost: the fork is made with the first trial.
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
        """Try things out on one node."""
        state, fork = self._state.clone(), self._fork
        trial = NodeTrial(self._framework, self._judge.elsewhere(state, fork), state, self._pod, fork, row)
        try:
            yield trial
        finally:
            trial.undo()

    @cached_property
    def _fork(self) -> Snapshot:
        return self._snapshot.fork()

    @cached_property
    def _judge(self) -> Judge:
        return Judge(self._framework, self._state, self._pod, self._snapshot, self._nominated)
