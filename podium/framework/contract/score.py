"""The extension points that compare feasible nodes: PreScore and Score.

Scoring has two forms, as filtering. A plugin with both must give the same scores in both.

Source: staging kube-scheduler/framework/interface.go, v1.36.2.
Differs: scores are returned, and a failure to score is raised; the table form is podium's own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import Status
from podium.objects.core import Pod, PodSpec

MAX_NODE_SCORE = 100
"""Normalised scores lie between 0 and this."""


class PreScorePlugin(Plugin):
    """Looks at the feasible nodes once, before they are scored."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> Status | None:
        """Prepare the scoring, or return Skip to skip this plugin's Score."""


class Scoring(Plugin):
    """The common base of both forms of scoring."""

    def normalize_scores(self, state: CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Normalise the scores of the feasible nodes to 0..MAX_NODE_SCORE. By default they are left as they are.

        Shape: as `scores`, one entry per feasible node.
        """
        return scores

    def score_basis(self, spec: PodSpec, snapshot: Snapshot) -> Hashable:
        """Return the cluster-wide input of a node-scoped score. Cached scores stay valid while it is unchanged."""
        return None


class ScorePlugin(Scoring):
    """Scores feasible nodes, one at a time."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return the node's score, higher is better. Any exception fails the attempt."""


class TableScorePlugin(Scoring):
    """Scores feasible nodes, all at once."""

    @abstractmethod
    def score_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return an int64 score for each of the rows. Shape: one entry per row of `rows`."""
