"""Compares the node that another scheduler chose for a pod with podium's evaluation of all nodes. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.engine.evaluation import Evaluation
from podium.framework.cycle.search import count_to_find
from podium.objects.core import Pod


class Verdict(enum.Enum):
    """The relation of podium's evaluation to the other scheduler's choice."""

    SAME_NODE = "same node"
    SAME_SCORE = "same score"
    """Several nodes have the top score; both schedulers choose any of them."""
    LOWER_SCORE = "lower score"
    REFUSED = "refused"
    """One of podium's filters rejects the chosen node, or no such node was known."""
    FAILED = "failed"
    """podium's attempt ended with an error."""

    @property
    def agrees(self) -> bool:
        """The chosen node is one that podium could have chosen as well."""
        return self in (Verdict.SAME_NODE, Verdict.SAME_SCORE)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The other scheduler's choice in podium's evaluation.

    Attributes:
        node: the other scheduler's choice.
        choice: podium's choice among all nodes; None if no node fits.
        score, best_score: the total scores of the two; None if they were not scored.
        by_plugin: the advantage of podium's choice in each plugin's score; plugins without one are left out.
        plugin: the plugin behind a disagreement: it rejects the node, or favours podium's choice most.
        reasons: why the node was rejected, or why the attempt failed.
        feasible, better: the numbers of feasible nodes, and of those that podium scored higher.
        may_be_sampled: a search over a sample of the nodes may have missed all better ones.
    """

    verdict: Verdict
    node: str
    choice: str | None = None
    score: int | None = None
    best_score: int | None = None
    by_plugin: Mapping[str, int] = field(default_factory=dict)
    plugin: str = ""
    reasons: tuple[str, ...] = ()
    feasible: int = 0
    better: int = 0
    may_be_sampled: bool = False

    @property
    def gap(self) -> int:
        """The advantage of podium's choice in total score."""
        return 0 if self.score is None or self.best_score is None else self.best_score - self.score

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values, without empty members."""
        members = {
            "chosen": self.node,
            "verdict": self.verdict.value,
            "podium": self.choice,
            "score": self.score,
            "podium_score": self.best_score,
            "gap": self.gap or None,
            "plugin": self.plugin or None,
            "by_plugin": dict(self.by_plugin) or None,
            "reasons": list(self.reasons) or None,
            "feasible_nodes": self.feasible,
            "better_nodes": self.better or None,
        }
        return {name: value for name, value in members.items() if value is not None}


def compare(evaluation: Evaluation, pod: Pod, node: str, percentage_of_nodes_to_score: int = 0) -> Comparison:
    """Compare the node with podium's evaluation of the pod.

    Args:
        percentage_of_nodes_to_score: the share of nodes that the other scheduler searches; 0 means adaptive.
    """
    search, snapshot = evaluation.found, evaluation.snapshot
    choice, rows, row = evaluation.node, search.filter_result.rows, snapshot.row_of.get(node)
    if row is None:
        reason = ("the node was not known",)
        return Comparison(Verdict.REFUSED, node, choice, reasons=reason, feasible=len(rows))
    positions = (rows == row).nonzero()[0]
    if not len(positions):
        status = search.diagnosis.statuses().get(row) or search.filter_result.rejection
        plugin = "" if status is None else status.plugin
        reasons = () if status is None else tuple(status.all_reasons)
        return Comparison(Verdict.REFUSED, node, choice, plugin=plugin, reasons=reasons, feasible=len(rows))
    assert search.scores is not None
    assert choice is not None
    position, total = int(positions[0]), search.scores.total
    score, best = int(total[position]), int(total.max())
    if node == choice or pod.status.nominated_node_name == node:
        # A nominated node is tried first, and alone.
        return Comparison(Verdict.SAME_NODE, node, node, score, score, feasible=len(rows))
    if score == best:
        return Comparison(Verdict.SAME_SCORE, node, choice, score, best, feasible=len(rows))
    choice_position = int((rows == snapshot.row_of[choice]).nonzero()[0][0])
    gaps = {
        name: int(scores[choice_position]) - int(scores[position]) for name, scores in search.scores.plugins.items()
    }
    better = int((total > score).sum())
    sample_size = count_to_find(len(snapshot.order), percentage_of_nodes_to_score)
    return Comparison(
        Verdict.LOWER_SCORE,
        node,
        choice,
        score,
        best,
        {name: gap for name, gap in gaps.items() if gap},
        max(gaps, key=lambda name: gaps[name], default=""),
        feasible=len(rows),
        better=better,
        may_be_sampled=sample_size < len(rows) and sample_size <= len(rows) - better,
    )
