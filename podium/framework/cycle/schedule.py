"""One scheduling attempt: a pure function from pod and snapshot to a decision.

The caller carries the decision out: assume, reserve, permit, bind; or requeue the pod, nominate it and record an Event.
`attempt` yields the requests to extenders; `schedule` runs an attempt without extenders.

Source: kubernetes pkg/scheduler/schedule_one.go (schedulingCycle, schedulePod), v1.36.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import msgspec

from podium.cluster import IntArray, Rows
from podium.framework.contract.post_filter import PostFilterResult
from podium.framework.contract.status import Code, ScheduleError, Status, error_status
from podium.framework.contract.steps import Steps, run_unasked
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.details import details_of
from podium.framework.cycle.diagnosis import FitError
from podium.framework.cycle.explainer import Explainer
from podium.framework.cycle.extenders import (
    NO_EXTENDERS,
    Extenders,
    choose_among_scored,
    find_feasible_asking,
    score_by_extenders,
)
from podium.framework.cycle.node_dry_runs import AfterFiltering
from podium.framework.cycle.post_filter import message_of, run_post_filter
from podium.framework.cycle.scoring import Pick, choose, score_nodes, total_scores
from podium.framework.cycle.search import Rotation, Sampling, find_feasible

NO_NODES = "no nodes available to schedule pods"


class Suggested(msgspec.Struct, frozen=True):
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


def schedule(cycle: Cycle, rotation: Rotation, percentage_of_nodes_to_score: int) -> Decision:
    """Decide where the pod goes, without extenders.

    Args: as `attempt`.
    """
    return run_unasked(attempt(cycle, rotation, percentage_of_nodes_to_score))


def attempt(
    cycle: Cycle,
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
        pick: chooses a node by the total scores, if no extender scored.
        explainer: receives every verdict and score, if it is given.
    """
    framework, snapshot = cycle.framework, cycle.snapshot
    if explainer is not None:
        explainer.on_begun(cycle)
    node_count = len(snapshot.order)
    if not node_count:
        return Failed(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error=ScheduleError(NO_NODES)))
    profile_percentage = framework.percentage_of_nodes_to_score
    percentage = percentage_of_nodes_to_score if profile_percentage is None else profile_percentage
    sampling = Sampling(rotation, percentage, is_one_enough=not framework.scorers and not extenders.have_a_say)
    interested = extenders.interested_in(cycle.pod)
    try:
        if interested:
            feasible = yield from find_feasible_asking(cycle, sampling, interested)
            cycle.filtered_at_s = framework.clock.monotonic()
        else:
            feasible = yield from find_feasible(cycle, sampling)
        if explainer is not None:
            explainer.on_filtered(cycle)
        rows = feasible.rows
        if len(rows) > 1:
            rows.setflags(write=False)
            total = total_scores(cycle, rows) if explainer is None else _explained_scores(cycle, rows, explainer)
            choose_position = pick
            if interested:
                total, is_scored = yield from score_by_extenders(interested, cycle, rows, total, explainer)
                cycle.scored_at_s = framework.clock.monotonic()
                choose_position = partial(choose_among_scored, is_scored, extenders.random)
                if cycle.scored is not None:
                    cycle.scored.extended = total
            if explainer is not None:
                explainer.on_totalled(cycle, rows, total)
            position = choose_position(total)
            row = int(rows[position])
            if cycle.scored is not None:
                cycle.scored.chosen = total.item(position)
        elif len(rows) == 1:
            row = int(rows[0])
        else:
            outcome, status = yield from run_post_filter(cycle, AfterFiltering(cycle), interested)
            error = FitError(node_count, cycle.diagnosis, message_of(outcome, status), details_of(cycle))
            return DoesNotFit(error, outcome)
    except ScheduleError as error:
        return Failed(error_status(error))
    return Suggested(snapshot.name(row), row, feasible.examined_count, len(rows))


def _explained_scores(cycle: Cycle, rows: Rows, explainer: Explainer) -> IntArray:
    scores = score_nodes(cycle, rows)
    explainer.on_scored(cycle, rows, scores)
    return scores.total
