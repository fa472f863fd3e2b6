"""One scheduling attempt over all nodes with its full result, for explaining a decision.

Runs the same steps as `schedule` without its short cuts: every node is filtered, and every feasible node is scored.
Extenders are not called.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.post_filter import PostFilterResult
from podium.framework.contract.status import Status
from podium.framework.contract.steps import run_unasked
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.node_dry_runs import AfterFiltering
from podium.framework.cycle.post_filter import run_post_filter
from podium.framework.cycle.scoring import Scores, choose, score_nodes
from podium.framework.cycle.search import FilterResult, filter_all


@dataclass(frozen=True, slots=True)
class Help:
    """The outcome of PostFilter: its status, and the nomination and victims if there are any."""

    status: Status | None
    result: PostFilterResult | None


@dataclass(frozen=True, slots=True)
class FullEvaluation:
    """The full result of one attempt. `scores` is set if a node fits, `help` if none does; `state` is the plugins'."""

    state: CycleState
    filtered: FilterResult
    diagnosis: Diagnosis
    scores: Scores | None
    help: Help | None

    @property
    def winner(self) -> int | None:
        """The row that a search over all nodes, starting at the first one, would choose."""
        return int(self.filtered.rows[choose(self.scores.total)]) if self.scores is not None else None

    @property
    def post_filter_message(self) -> str:
        """The message that PostFilter adds if the pod fits on no node."""
        status = self.help.status if self.help is not None else None
        return status.message if status is not None else ""


def evaluate_all(cycle: Cycle) -> FullEvaluation:
    """Make one attempt.

    Raises:
        ScheduleError: a plugin failed.
    """
    filtered, diagnosis = filter_all(cycle), cycle.diagnosis
    if len(filtered.rows):
        return FullEvaluation(cycle.state, filtered, diagnosis, score_nodes(cycle, filtered.rows), None)
    result, status = run_unasked(run_post_filter(cycle, AfterFiltering(cycle)))
    return FullEvaluation(cycle.state, filtered, diagnosis, None, Help(status, result))
