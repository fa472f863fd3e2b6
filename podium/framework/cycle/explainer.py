"""Callbacks that report how each node fared in an attempt, for verbose logs."""

from __future__ import annotations

from typing import Protocol

from podium.cluster import IntArray, Rows
from podium.config import Extender
from podium.framework.contract.questions import ExtenderScores
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.scoring import Scores


class Explainer(Protocol):
    """Observes each step of each attempt. It must not change the attempt; it may be slow."""

    def on_begun(self, cycle: Cycle) -> None:
        """Note that an attempt begins."""
        ...

    def on_filtered(self, cycle: Cycle) -> None:
        """Note that every examined node has been filtered. Nodes that are not in the diagnosis fit."""
        ...

    def on_scored(self, cycle: Cycle, rows: Rows, scores: Scores) -> None:
        """Note the plugins' scores of the feasible nodes."""
        ...

    def on_extended(self, cycle: Cycle, extender: Extender, scores: ExtenderScores) -> None:
        """Note an extender's scores by node name, or its failure."""
        ...

    def on_totalled(self, cycle: Cycle, rows: Rows, total: IntArray) -> None:
        """Note the total scores, including those of extenders."""
        ...
