"""One scheduling attempt over all nodes, with everything it has found: what people ask for who want to know why.

The same steps as `schedule`, with nothing left out for speed: every node is judged, and every one that fits is scored.
Extenders are not asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.cluster import Snapshot
from podium.framework.cycle_state import CycleState
from podium.framework.diagnosis import Diagnosis
from podium.framework.extenders import run_unasked
from podium.framework.interface import PostFilterResult
from podium.framework.post_filter import run_post_filter
from podium.framework.promises import NominatedPods
from podium.framework.runtime import Framework
from podium.framework.scoring import Scores, choose, score_nodes
from podium.framework.search import Judged, judge_all
from podium.framework.status import Status
from podium.objects.core import Pod


@dataclass(frozen=True, slots=True)
class Help:
    """What PostFilter came to: a status that is not success, and what is to be done."""

    status: Status | None
    result: PostFilterResult | None


@dataclass(frozen=True, slots=True)
class Survey:
    """Everything about one attempt. `scores` are there where a node fits, `help` where none does."""

    judged: Judged
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


def survey(framework: Framework, state: CycleState, pod: Pod, snapshot: Snapshot, nominated: NominatedPods) -> Survey:
    """Make one attempt.

    Raises:
        ScheduleError: a plugin failed.
    """
    diagnosis = Diagnosis(table_size=len(snapshot.nodes))
    judged = judge_all(framework, state, pod, snapshot, nominated, diagnosis)
    if len(judged.rows):
        return Survey(judged, diagnosis, score_nodes(framework, state, pod, snapshot, judged.rows), None)
    result, status = run_unasked(run_post_filter(framework, state, pod, snapshot, nominated, diagnosis))
    return Survey(judged, diagnosis, None, Help(status, result))
