"""One scheduling attempt over all nodes with its full result, for explaining a decision.

Runs the same steps as `schedule` without its short cuts: every node is filtered, and every feasible node is scored.
Extenders are not called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.post_filter import PostFilterResult
from podium.framework.contract.status import Code, Status
from podium.framework.contract.steps import run_unasked
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.node_dry_runs import AfterFiltering
from podium.framework.cycle.post_filter import message_of, run_post_filter
from podium.framework.cycle.scoring import Scores, choose, score_nodes
from podium.framework.cycle.search import FilterResult, filter_all
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit

_NOT_LOOKED_AT: Final = Status(
    Code.UNSCHEDULABLE, ("whether preemption helps was not found out: the time limit is over",)
)


@dataclass(frozen=True, slots=True)
class Help:
    """The outcome of PostFilter: its status, and the nomination and victims if there are any."""

    status: Status | None
    result: PostFilterResult | None


@dataclass(frozen=True, slots=True)
class FullEvaluation:
    """The full result of one attempt. `scores` is set if a node fits, `help` if none does; `state` is the plugins'.

    Attributes:
        is_partial: the time was up before PostFilter had ended.
    """

    state: CycleState
    filter_result: FilterResult
    diagnosis: Diagnosis
    scores: Scores | None
    help: Help | None
    is_partial: bool = False

    @property
    def winner(self) -> int | None:
        """The row that a search over all nodes, starting at the first one, would choose."""
        return int(self.filter_result.rows[choose(self.scores.total)]) if self.scores is not None else None

    @property
    def post_filter_message(self) -> str:
        """The message that PostFilter adds if the pod fits on no node."""
        return message_of(self.help.result, self.help.status) if self.help is not None else ""


def evaluate_all(cycle: Cycle, limit: TimeLimit = UNLIMITED) -> FullEvaluation:
    """Make one attempt.

    Args:
        limit: when to end without the result of PostFilter.

    Raises:
        ScheduleError: a plugin failed.
    """
    feasible, diagnosis = filter_all(cycle), cycle.diagnosis
    if len(feasible.rows):
        return FullEvaluation(cycle.state, feasible, diagnosis, score_nodes(cycle, feasible.rows), None)
    try:
        limit.check()
        result, status = run_unasked(run_post_filter(cycle, AfterFiltering(cycle)), limit.check)
    except TimeIsUpError:
        limit.is_noticed = True
        return FullEvaluation(cycle.state, feasible, diagnosis, None, Help(_NOT_LOOKED_AT, None), is_partial=True)
    return FullEvaluation(cycle.state, feasible, diagnosis, None, Help(status, result))
