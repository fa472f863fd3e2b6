"""Writes the result of an attempt as JSON values, in the format of kube-scheduler's recorded answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.cluster import Snapshot
from podium.framework.contract.status import Code, Status
from podium.framework.cycle.diagnosis import FitError
from podium.framework.cycle.evaluation import FullEvaluation, Help
from podium.framework.cycle.scoring import Scores
from podium.framework.cycle.search import FilterResult
from podium.objects.core import Pod


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One scheduling attempt for a pod over all nodes.

    Attributes:
        found: every verdict and score.
        snapshot: the nodes as they were, by row.
    """

    found: FullEvaluation
    snapshot: Snapshot

    @property
    def node(self) -> str | None:
        """The node that a search over all nodes, starting at the first one, chooses; None if no node fits."""
        return None if self.found.winner is None else self.snapshot.name(self.found.winner)

    @property
    def victims(self) -> tuple[Pod, ...]:
        """The pods that preemption would evict; none if it does not help."""
        result = None if self.found.help is None else self.found.help.result
        return () if result is None or not result.nominated_node_name else tuple(result.victims)

    def verdict_on(self, pod: Pod) -> str:
        """Return the outcome for the pod in one clause."""
        fitting = len(self.found.filter_result.rows)
        if self.node is None:
            message = FitError(len(self.snapshot), self.found.diagnosis).message
            return f"{pod.key} fits on no node: {message}"
        return f"{pod.key} fits on {fitting:,} of {len(self.snapshot):,} nodes and would go to {self.node}"

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON values, in the format that `podium evaluate` prints."""
        return as_answer(self.found, self.snapshot)


def as_answer(evaluation: FullEvaluation, snapshot: Snapshot) -> dict[str, Any]:
    """Return the full evaluation as JSON values."""
    filter_result, node_count = evaluation.filter_result, len(snapshot)
    answer: dict[str, Any] = {"prefilter": as_status(filter_result.rejection)}
    if filter_result.names is not None:
        answer["prefilter_nodes"] = sorted(filter_result.names)
    statuses = evaluation.diagnosis.statuses()
    answer["filter"] = {snapshot.name(row): as_status(status) for row, status in sorted(statuses.items())}
    answer["feasible"] = sorted(snapshot.name(row) for row in filter_result.rows.tolist())
    if evaluation.scores is not None:
        answer["scores"] = _scores(filter_result, evaluation.scores, snapshot)
    if evaluation.help is not None:
        answer["fit_error"] = FitError(node_count, evaluation.diagnosis).message
        answer["message"] = FitError(node_count, evaluation.diagnosis, evaluation.post_filter_message).message
        answer |= _help(evaluation.help)
    return answer | ({"partial": True} if evaluation.is_partial else {})


def as_status(status: Status | None) -> dict[str, Any]:
    """Return a status as JSON values; None is success."""
    if status is None:
        return {"code": Code.SUCCESS.label}
    answer: dict[str, Any] = {"code": status.code.label}
    if status.plugin:
        answer["plugin"] = status.plugin
    if status.all_reasons:
        answer["reasons"] = list(status.all_reasons)
    return answer


def _scores(filter_result: FilterResult, scores: Scores, snapshot: Snapshot) -> dict[str, Any]:
    """Return the total score by node, with each plugin's share."""
    plugins = list(scores.plugins)
    parts = np.stack([scores.plugins[name] for name in plugins], axis=1).tolist() if plugins else []
    answer = {}
    for position, (row, total) in enumerate(zip(filter_result.rows.tolist(), scores.total.tolist(), strict=True)):
        by_plugin = dict(zip(plugins, parts[position], strict=True)) if plugins else {}
        answer[snapshot.name(row)] = {"total": total, "plugins": by_plugin}
    return answer


def _help(help_: Help) -> dict[str, Any]:
    status = as_status(help_.status)
    if help_.status is None and help_.result is not None and help_.result.message:
        status["reasons"] = [help_.result.message]
    answer: dict[str, Any] = {"postfilter": status}
    if help_.result is not None and help_.result.nominated_node_name:
        answer["nominated"] = help_.result.nominated_node_name
        # As upstream: a victim that is being deleted already is not deleted again.
        answer["victims"] = sorted(victim.key for victim in help_.result.victims if not victim.is_terminating)
    return answer
