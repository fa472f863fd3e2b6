"""Turns a recorded attempt into the explanation of its pod's placement."""

from __future__ import annotations

from podium.engine.explanation import Blocker, Explanation, Group, NodeScore, group_blockers
from podium.engine.flight_recorder.attempts import Details, RecordedAttempt

SCORES_MAX = 20
"""The number of best nodes whose scores are listed."""


def explain_attempt(attempt: RecordedAttempt, details: Details, node_name: str = "") -> Explanation:
    """Explain the attempt. It has recorded only the first blocker of each node.

    Args:
        node_name: a node whose scores are listed even if it is not among the best.

    Cost: one step for each node that was examined.
    """
    blockers = {node: (Blocker(plugin, text),) for node, (plugin, text) in details.rejections.items()}
    groups = group_blockers(blockers)
    unlisted_count = attempt.node_count - len(blockers)
    if details.rejected_all is not None and unlisted_count > 0:
        plugin, text = details.rejected_all
        groups = (*groups, Group(plugin, text, (), unlisted_count))
        if node_name and node_name not in details.totals:
            blockers.setdefault(node_name, (Blocker(plugin, text),))
    return Explanation(
        pod=f"{attempt.namespace}/{attempt.name}",
        bound_to="",
        node=attempt.node or None,
        node_count=attempt.node_count,
        gates=(),
        blockers=blockers,
        groups=groups,
        one_edit_away=None,
        scores=_scores(attempt, details, node_name),
        message=attempt.message,
        asked=node_name,
    )


def _scores(attempt: RecordedAttempt, details: Details, node_name: str) -> tuple[NodeScore, ...]:
    """Return the scores of the best nodes, the winner first, and of the node in question."""
    totals, places = details.totals, {node: index for index, node in enumerate(details.totals)}
    best = sorted(totals, key=lambda node: (node != attempt.node, -totals[node], node))
    names = best[:SCORES_MAX] + [node for node in best[SCORES_MAX:] if node == node_name]
    return tuple(
        NodeScore(node, totals[node], {plugin: values[places[node]] for plugin, values in details.plugins.items()})
        for node in names
    )
