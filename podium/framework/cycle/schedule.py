"""One scheduling attempt: a pure function from pod and snapshot to a decision.

The caller carries the decision out: assume, reserve, permit, bind; or requeue the pod, nominate it and record an Event.
`attempt` yields the requests to extenders; `schedule` runs an attempt without extenders.

Source: kubernetes pkg/scheduler/schedule_one.go (schedulingCycle, schedulePod), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from podium.cluster import IntArray, Rows, Snapshot
from podium.config import Extender
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.interface import PostFilterResult
from podium.framework.contract.status import Code, ScheduleError, Status, error_status
from podium.framework.cycle.details import details_of
from podium.framework.cycle.diagnosis import Diagnosis, FitError
from podium.framework.cycle.explainer import Explainer
from podium.framework.cycle.extenders import (
    NO_EXTENDERS,
    Extenders,
    Steps,
    choose_at_random,
    run_unasked,
    score_by_extenders,
)
from podium.framework.cycle.nominated_pods import NominatedPods
from podium.framework.cycle.post_filter import run_post_filter
from podium.framework.cycle.scoring import Pick, choose, score_nodes, total_scores
from podium.framework.cycle.search import Rotation, find_feasible
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod

NO_NODES = "no nodes available to schedule pods"


@dataclass(frozen=True, slots=True)
class Suggested:
    """The pod should be bound to this node."""

    node_name: str
    row: int
    evaluated_nodes: int
    feasible_nodes: int


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    """No node fits. `post_filter` is the result of PostFilter; None if the nomination stays as it is."""

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
    """Decide where the pod goes, without extenders.

    Args: as `attempt`.
    """
    return run_unasked(attempt(framework, state, pod, snapshot, nominated, rotation, percentage_of_nodes_to_score))


def attempt(
    framework: Framework,
    state: CycleState,
    pod: Pod,
    snapshot: Snapshot,
    nominated: NominatedPods,
    rotation: Rotation,
    percentage_of_nodes_to_score: int,
    extenders: Extenders = NO_EXTENDERS,
    pick: Pick = choose,
    explainer: Explainer | None = None,
) -> Steps[Decision]:
    """Decide where the pod goes, calling the extenders that are interested in it.

    Args:
        percentage_of_nodes_to_score: the configuration's top-level value, for profiles without their own.
        rotation: advanced by the number of examined nodes.
        snapshot: must not change until the attempt ends.
        pick: chooses a node by the total scores, if no extender scored.
        explainer: receives every verdict and score, if it is given.
    """
    if not len(snapshot):
        return Failed(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error=ScheduleError(NO_NODES)))
    own = framework.percentage_of_nodes_to_score
    percentage = percentage_of_nodes_to_score if own is None else own
    diagnosis = Diagnosis(table_size=len(snapshot.nodes))
    try:
        feasible = yield from find_feasible(
            framework, state, pod, snapshot, nominated, rotation, percentage, diagnosis, extenders
        )
        if explainer is not None:
            explainer.judged(framework, pod, snapshot, diagnosis)
        if len(feasible.rows) > 1:
            feasible.rows.setflags(write=False)
            if explainer is None:
                total = total_scores(framework, state, pod, snapshot, feasible.rows)
            else:
                total = _explained_scores(explainer, framework, state, pod, snapshot, feasible.rows)
            asked = extenders.interested_in(pod)
            if asked:
                position = yield from _best(asked, pod, snapshot, feasible.rows, total, extenders.random, explainer)
            else:
                if explainer is not None:
                    explainer.totalled(pod, snapshot, feasible.rows, total)
                position = pick(total)
            row = int(feasible.rows[position])
        elif len(feasible.rows) == 1:
            row = int(feasible.rows[0])
        else:
            helped, status = yield from run_post_filter(
                framework, state, pod, snapshot, nominated, diagnosis, extenders.interested_in(pod)
            )
            details = details_of(framework, pod, snapshot, diagnosis)
            return DoesNotFit(FitError(len(snapshot), diagnosis, status.message if status else "", details), helped)
    except ScheduleError as error:
        return Failed(error_status(error))
    return Suggested(snapshot.name(row), row, feasible.examined, len(feasible.rows))


def _explained_scores(
    explainer: Explainer, framework: Framework, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
) -> IntArray:
    scores = score_nodes(framework, state, pod, snapshot, rows)
    explainer.scored(pod, snapshot, rows, scores)
    return scores.total


def _best(
    extenders: Sequence[Extender],
    pod: Pod,
    snapshot: Snapshot,
    rows: Rows,
    total: IntArray,
    random: Random,
    explainer: Explainer | None,
) -> Steps[int]:
    """The position of the winning node after the extenders' scores are added."""
    total, is_scored = yield from score_by_extenders(extenders, pod, snapshot, rows, total)
    if explainer is not None:
        explainer.totalled(pod, snapshot, rows, total)
    position = choose_at_random(total, is_scored, random)
    return choose(total) if position is None else position
