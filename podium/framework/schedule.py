"""One scheduling attempt: a pure function from pod and snapshot to a decision.

The caller carries the decision out: assume, reserve, permit, bind; or put the pod back, nominate, tell.

Source: kubernetes pkg/scheduler/schedule_one.go (schedulingCycle, schedulePod), v1.36.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from podium.cluster import Snapshot
from podium.framework.cycle_state import CycleState
from podium.framework.diagnosis import Diagnosis, FitError
from podium.framework.interface import PostFilterResult
from podium.framework.runtime import Framework
from podium.framework.scoring import choose, score_nodes
from podium.framework.search import NominatedPods, Rotation, ScheduleError, find_feasible
from podium.framework.status import Code, Status, error_status
from podium.kube.objects import Pod

NO_NODES = "no nodes available to schedule pods"


@dataclass(frozen=True, slots=True)
class Suggested:
    """The pod goes to this node."""

    node_name: str
    row: int
    evaluated_nodes: int
    feasible_nodes: int


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    """No node will do. `post_filter` is what was done about it, None where nothing was to change."""

    error: FitError
    post_filter: PostFilterResult | None


@dataclass(frozen=True, slots=True)
class Failed:
    """No decision was reached."""

    status: Status


Decision: TypeAlias = Suggested | DoesNotFit | Failed


def schedule(
    framework: Framework,
    state: CycleState,
    pod: Pod,
    snapshot: Snapshot,
    nominated: NominatedPods,
    rotation: Rotation,
    percentage_of_nodes_to_score: int,
) -> Decision:
    """Decide where the pod goes.

    Args:
        percentage_of_nodes_to_score: the configuration's top-level value, for profiles without their own.
        rotation: moved on by the number of nodes that were looked at.
    """
    if not len(snapshot):
        return Failed(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error=ScheduleError(NO_NODES)))
    own = framework.percentage_of_nodes_to_score
    percentage = percentage_of_nodes_to_score if own is None else own
    diagnosis = Diagnosis(table_size=len(snapshot.nodes))
    try:
        feasible = find_feasible(framework, state, pod, snapshot, nominated, rotation, percentage, diagnosis)
        if len(feasible.rows) > 1:
            scores = score_nodes(framework, state, pod, snapshot, feasible.rows)
            row = int(feasible.rows[choose(scores.total)])
        elif len(feasible.rows) == 1:
            row = int(feasible.rows[0])
        else:
            return _run_post_filter(framework, state, pod, snapshot, diagnosis)
    except ScheduleError as error:
        return Failed(error_status(error))
    return Suggested(snapshot.name(row), row, feasible.examined, len(feasible.rows))


def _run_post_filter(
    framework: Framework, state: CycleState, pod: Pod, snapshot: Snapshot, diagnosis: Diagnosis
) -> DoesNotFit:
    """Let the PostFilter plugins help, in order: the first that succeeds, or that says nothing will, ends it."""
    if not framework.post_filter:
        return DoesNotFit(FitError(len(snapshot), diagnosis), PostFilterResult(""))
    started_s = framework.clock.monotonic()
    kept: PostFilterResult | None = None
    reasons: list[str] = []
    outcome: Status | None = None
    for plugin in framework.post_filter:
        try:
            result, status = plugin.post_filter(state, pod, snapshot, diagnosis)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            result, status = None, error_status(f'running PostFilter plugin "{plugin.name}": {error}')
        outcome = status
        kept = result if result is not None else kept
        if status is None or status.code is Code.SUCCESS:
            reasons = []
            break
        reasons = [*reasons, *status.all_reasons]
        if status.code is not Code.UNSCHEDULABLE:
            reasons = list(status.all_reasons)
            break
    framework.observe("PostFilter", outcome, started_s)
    return DoesNotFit(FitError(len(snapshot), diagnosis, ", ".join(reasons)), kept)
