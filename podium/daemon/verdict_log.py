"""Logs each node's verdict and scores at the verbosities at which kube-scheduler logs them.

Source: kubernetes pkg/scheduler/schedule_one.go (prioritizeNodes: V(10)), plugins/tainttoleration (V(4)), v1.36.2.
Differs: "Plugin rejected node for pod", from verbosity 6, is podium's own: upstream logs the rejections of few plugins.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from podium.cluster import IntArray, Rows
from podium.config import Extender
from podium.framework.contract.questions import ExtenderFailed, ExtenderScores, name_of
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.details import detail_of_node
from podium.framework.cycle.explainer import Explainer
from podium.framework.cycle.scoring import Scores
from podium.lib.log import get_logger
from podium.plugins.taint_toleration import TaintToleration

log = get_logger("scheduler")

_ATTEMPT_VERBOSITY: Final = 4
_VERDICT_VERBOSITY: Final = 6
_SCORE_VERBOSITY: Final = 10
_DETAIL_MESSAGES: Final = defaultdict(
    lambda: "Plugin rejected node for pod", {TaintToleration.name: "node had untolerated taints"}
)


def explainer_for(verbosity: int) -> Explainer | None:
    """Return the explainer for that verbosity; None if it would log nothing, so that attempts have no extra cost."""
    return VerdictLog(verbosity) if verbosity >= _ATTEMPT_VERBOSITY else None


class VerdictLog:
    """Implements `podium.framework.cycle.explainer.Explainer`. Cost: one line for each node and score."""

    def __init__(self, verbosity: int) -> None:
        self._logs_verdicts = verbosity >= _VERDICT_VERBOSITY
        self._logs_scores = verbosity >= _SCORE_VERBOSITY

    def on_begun(self, cycle: Cycle) -> None:
        """Log the pod that is attempted."""
        log.debug("Attempting to schedule pod", pod=cycle.pod.key)

    def on_filtered(self, cycle: Cycle) -> None:
        """Log nodes with untolerated taints, and from verbosity 6 every rejection."""
        pod, snapshot = cycle.pod, cycle.snapshot
        for row, status in cycle.diagnosis.statuses().items():
            node = snapshot.name(row)
            if self._logs_verdicts:
                log.debug(
                    "Plugin rejected node for pod",
                    pod=pod.key,
                    plugin=status.plugin,
                    node=node,
                    code=status.code.label,
                    reason=status.message,
                )
            if detail := detail_of_node(cycle.framework, pod, snapshot, row, status):
                log.debug(_DETAIL_MESSAGES[status.plugin], pod=pod.key, node=node, plugin=status.plugin, detail=detail)

    def on_scored(self, cycle: Cycle, rows: Rows, scores: Scores) -> None:
        """Log each plugin's weighted score of each node, from verbosity 10."""
        if not self._logs_scores:
            return
        for position, row in enumerate(rows.tolist()):
            for plugin, node_scores in scores.plugins.items():
                log.debug(
                    "Plugin scored node for pod",
                    pod=cycle.pod.key,
                    plugin=plugin,
                    node=cycle.snapshot.name(row),
                    score=int(node_scores[position]),
                )

    def on_extended(self, cycle: Cycle, extender: Extender, scores: ExtenderScores) -> None:
        """Log each score that an extender returned, before weighting, from verbosity 10."""
        if not self._logs_scores or isinstance(scores, ExtenderFailed):
            return
        pod, name = cycle.pod.key, name_of(extender)
        for node, score in scores:
            log.debug("Extender scored node for pod", pod=pod, extender=name, node=node, score=score)

    def on_totalled(self, cycle: Cycle, rows: Rows, total: IntArray) -> None:
        """Log each node's final score, from verbosity 10."""
        if not self._logs_scores:
            return
        for row, score in zip(rows.tolist(), total.tolist(), strict=True):
            node = cycle.snapshot.name(row)
            log.debug("Calculated node's final score for pod", pod=cycle.pod.key, node=node, score=score)
