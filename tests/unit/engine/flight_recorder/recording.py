"""A flight recorder, and attempts for it to hear of."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.engine.flight_recorder import FlightRecorder
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import Code, Status
from podium.framework.cycle.diagnosis import Diagnosis, FitError
from podium.framework.cycle.schedule import DoesNotFit, Suggested
from podium.framework.cycle.scored import Scored
from podium.framework.profile.rejection import Rejection
from podium.objects.core import Pod
from tests.builders import pod

_Rows: TypeAlias = "Sequence[int] | NDArray[np.int64]"
TAINTED = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("had taints",), "TaintToleration")
FULL = Status(Code.UNSCHEDULABLE, ("Insufficient cpu",), "NodeResourcesFit")


class Cluster:
    """Nodes by row; `""` is a row without a node."""

    def __init__(self, *names: str) -> None:
        self.change(*names)

    def change(self, *names: str) -> None:
        nodes = [SimpleNamespace(name=name) if name else None for name in names]
        order = np.flatnonzero([bool(name) for name in names])
        self.snapshot = SimpleNamespace(nodes=nodes, order=order, is_fork=False)


def queue_info(pod: Pod, attempts: int = 1) -> QueuedPodInfo:
    info = QueuedPodInfo(pod, 0.0, attempts=attempts)
    info.transitions.record(5.0, "UnscheduledPodAdd", "gone", "active")
    info.transitions.record(6.0, "Pop", "active", "in flight")
    return info


def rejection(rows: _Rows, status: Status, number: int = 1) -> Rejection:
    return Rejection(np.array(rows), np.full(len(rows), number), {number: status})


def cycle(cluster: Cluster, pod: Pod, *rejections: Rejection, scores: Scored | None = None) -> Any:
    diagnosis = Diagnosis(len(cluster.snapshot.nodes), list(rejections))
    framework = SimpleNamespace(name="podium")
    return SimpleNamespace(pod=pod, snapshot=cluster.snapshot, diagnosis=diagnosis, scored=scores, framework=framework)


def scores(rows: _Rows, **plugins: _Rows) -> Scored:
    computed = {name: (1, (np.array(values) % 101).astype(np.int8)) for name, values in plugins.items()}
    return Scored(np.array(rows, np.uint16), computed)


def place(
    recorder: FlightRecorder,
    cluster: Cluster,
    pod: Pod,
    row: int = 0,
    *rejections: Rejection,
    scores: Scored | None = None,
    at_s: float = 1.0,
) -> None:
    """The pod is to go to the node of that row."""
    decision = Suggested(cluster.snapshot.nodes[row].name, row, len(cluster.snapshot.order), 1)
    recorder.on_decision(queue_info(pod), cycle(cluster, pod, *rejections, scores=scores), decision, at_s, 0.001)


def reject(recorder: FlightRecorder, cluster: Cluster, pod: Pod, *rejections: Rejection, at_s: float = 1.0) -> None:
    """The pod fits on no node."""
    target = cycle(cluster, pod, *rejections)
    error = FitError(len(cluster.snapshot.order), target.diagnosis)
    recorder.on_decision(queue_info(pod), target, DoesNotFit(error, None), at_s, 0.001)
    recorder.on_failure(pod, "unschedulable", error.message, 0.002)


def numbered_pod(number: int) -> Pod:
    return pod(f"web-{number}")
