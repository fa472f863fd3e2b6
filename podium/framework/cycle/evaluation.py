"""One scheduling attempt over all nodes with its full result, for explaining a decision.

Runs the same steps as `schedule` without its short cuts: every node is filtered, and every feasible node is scored.
Extenders are not called.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.cluster import Snapshot
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.interface import PostFilterResult
from podium.framework.contract.status import Status
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.extenders import run_unasked
from podium.framework.cycle.nominated_pods import NominatedPods
from podium.framework.cycle.post_filter import run_post_filter
from podium.framework.cycle.scoring import Scores, choose, score_nodes
from podium.framework.cycle.search import FilterResult, judge_all
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod


@dataclass(frozen=True, slots=True)
class Help:
    """The outcome of PostFilter: its status, and the nomination and victims if there are any."""

    status: Status | None
    result: PostFilterResult | None


@dataclass(frozen=True, slots=True)
class FullEvaluation:
    """The full result of one attempt. `scores` is set if a node fits, `help` if none does."""

    judged: FilterResult
    diagnosis: Diagnosis
    scores: Scores | None
    help: Help | None

    @property
    def winner(self) -> int | None:
        """The row that a search over all nodes, starting at the first one, would choose."""
        return int(self.judged.rows[choose(self.scores.total)]) if self.scores is not None else None

    @property
    def post_filter_message(self) -> str:
        """The message that PostFilter adds if the pod fits on no node."""
        status = self.help.status if self.help is not None else None
        return status.message if status is not None else ""


def evaluate_all(
    framework: Framework, state: CycleState, pod: Pod, snapshot: Snapshot, nominated: NominatedPods
) -> FullEvaluation:
    """Make one attempt.

    Raises:
        ScheduleError: a plugin failed.
    """
    diagnosis = Diagnosis(table_size=len(snapshot.nodes))
    judged = judge_all(framework, state, pod, snapshot, nominated, diagnosis)
    if len(judged.rows):
        return FullEvaluation(judged, diagnosis, score_nodes(framework, state, pod, snapshot, judged.rows), None)
    result, status = run_unasked(run_post_filter(framework, state, pod, snapshot, nominated, diagnosis))
    return FullEvaluation(judged, diagnosis, None, Help(status, result))
