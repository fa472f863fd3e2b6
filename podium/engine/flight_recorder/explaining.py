"""A recorded attempt as the explanation of where its pod went, or why it went nowhere."""

from __future__ import annotations

from podium.engine.explanation import Blocker, Explanation, Group, NodeScore, grouped
from podium.engine.flight_recorder.attempts import Details, RecordedAttempt

SCORES_MAX = 20
"""So many of the best nodes are told with their scores."""


def explain_attempt(attempt: RecordedAttempt, details: Details, asked: str = "") -> Explanation:
    """What the attempt found out. Of a node's blockers an attempt knows the first.

    Args:
        asked: a node whose scores are told whatever its place.

    Cost: one step for each node that was looked at.
    """
    blockers = {node: (Blocker(plugin, text),) for node, (plugin, text) in details.rejected.items()}
    groups = grouped(blockers)
    others = attempt.node_count - len(blockers)
    if details.rejected_all is not None and others > 0:
        plugin, text = details.rejected_all
        groups = (*groups, Group(plugin, text, (), others))
        if asked and asked not in details.totals:
            blockers.setdefault(asked, (Blocker(plugin, text),))
    return Explanation(
        pod=f"{attempt.namespace}/{attempt.name}",
        bound_to="",
        node=attempt.node or None,
        node_count=attempt.node_count,
        gates=(),
        blockers=blockers,
        groups=groups,
        one_edit_away=None,
        scores=_scores(attempt, details, asked),
        message=attempt.message,
        asked=asked,
    )


def _scores(attempt: RecordedAttempt, details: Details, asked: str) -> tuple[NodeScore, ...]:
    """The best nodes, the winner first, and the node that was asked about."""
    totals, places = details.totals, {node: at for at, node in enumerate(details.totals)}
    best = sorted(totals, key=lambda node: (node != attempt.node, -totals[node], node))
    shown = best[:SCORES_MAX] + [node for node in best[SCORES_MAX:] if node == asked]
    return tuple(
        NodeScore(node, totals[node], {plugin: values[places[node]] for plugin, values in details.plugins.items()})
        for node in shown
    )
