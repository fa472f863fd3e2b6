"""A decision in words, and its scores as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from podium.cli.pages.sections import Table

if TYPE_CHECKING:
    from podium.recording.entries import Decision

NODES_SHOWN: Final = 20


def told(decision: Decision) -> str:
    """The decision in a few words."""
    if decision.node:
        return f"pod {decision.pod} to node {decision.node}, of {decision.feasible} feasible nodes"
    room = f"; room is to be made on {decision.nominated}" if decision.nominated else ""
    return f"pod {decision.pod} to no node{room}"


def score_table(title: str, scores: Mapping[str, Mapping[str, int]], chosen: Sequence[str]) -> list[Table]:
    """The best nodes with their scores by plugin; nothing if there are none.

    Args:
        chosen: nodes that are shown in any case; the first one is marked.
    """
    if not scores:
        return []
    ordered = sorted(scores, key=lambda node: (-sum(scores[node].values()), node))
    shown = [node for at, node in enumerate(ordered) if at < NODES_SHOWN or node in chosen]
    plugins = list(dict.fromkeys(name for node in ordered for name in scores[node]))
    rows = [(node, sum(scores[node].values()), *(scores[node].get(name) for name in plugins)) for node in shown]
    marked = [shown.index(chosen[0])] if chosen and chosen[0] in shown else []
    left_out = len(ordered) - len(shown)
    note = f"{left_out} nodes with lower scores are left out." if left_out else ""
    return [Table(title, ("Node", "Total", *plugins), rows, marked, note)]
