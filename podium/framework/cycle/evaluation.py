"""One scheduling attempt over all nodes, with everything it has found: what people ask for who want to know why.

The same steps as `schedule`, with nothing left out for speed: every node is judged, and every one that fits is scored.
Extenders are not asked.
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
    """What PostFilter came to: a status that is not success, and what is to be done."""

    status: Status | None
    result: PostFilterResult | None


@dataclass(frozen=True, slots=True)
class FullEvaluation:
    """Everything about one attempt. `scores` are there where a node fits, `help` where none does."""

    judged: FilterResult
    diagnosis: Diagnosis
    scores: Scores | None
    help: Help | None

    @property
    def winner(self) -> int | None:
        """The row that a search which begins at the first node and looks at all would choose."""
        return int(self.judged.rows[choose(self.scores.total)]) if self.scores is not None else None

    @property
    def post_filter_message(self) -> str:
        """What PostFilter adds to the reasons of a pod that fits nowhere."""
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
