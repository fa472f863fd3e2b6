"""A decision in words, and its scores as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from podium.cli.pages.sections import Table

if TYPE_CHECKING:
    from podium.recording.entries import Decision

NODES_SHOWN: Final = 20


def decision_text(decision: Decision) -> str:
    """Describe the decision in a few words."""
    if decision.node:
        return f"pod {decision.pod} to node {decision.node}, of {decision.feasible} feasible nodes"
    room = f"; room is to be made on {decision.nominated}" if decision.nominated else ""
    return f"pod {decision.pod} to no node{room}"


def score_table(title: str, scores: Mapping[str, Mapping[str, int]], nodes: Sequence[str]) -> list[Table]:
    """Tabulate the best nodes with their scores by plugin; return no table without scores.

    Args:
        nodes: nodes that are shown in any case; the first one is marked.
    """
    if not scores:
        return []
    ranking = sorted(scores, key=lambda node: (-sum(scores[node].values()), node))
    names = [node for rank, node in enumerate(ranking) if rank < NODES_SHOWN or node in nodes]
    plugins = list(dict.fromkeys(name for node in ranking for name in scores[node]))
    rows = [(node, sum(scores[node].values()), *(scores[node].get(name) for name in plugins)) for node in names]
    marked_rows = [names.index(nodes[0])] if nodes and nodes[0] in names else []
    left_out = len(ranking) - len(names)
    note = f"{left_out} nodes with lower scores are left out." if left_out else ""
    return [Table(title, ("Node", "Total", *plugins), rows, marked_rows, note)]
