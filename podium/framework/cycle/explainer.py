"""Callbacks that report how each node fared in an attempt, for verbose logs."""

from __future__ import annotations

from typing import Protocol

from podium.cluster import IntArray, Rows, Snapshot
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.scoring import Scores
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod


class Explainer(Protocol):
    """Observes each step of each attempt. It must not change the attempt; it may be slow."""

    def begun(self, pod: Pod) -> None:
        """An attempt at the pod begins."""
        ...

    def judged(self, framework: Framework, pod: Pod, snapshot: Snapshot, diagnosis: Diagnosis) -> None:
        """Every examined node has been filtered. Nodes that are not in the diagnosis fit."""
        ...

    def scored(self, pod: Pod, snapshot: Snapshot, rows: Rows, scores: Scores) -> None:
        """The plugins have scored the feasible nodes."""
        ...

    def totalled(self, pod: Pod, snapshot: Snapshot, rows: Rows, total: IntArray) -> None:
        """The total scores are known, including those of extenders."""
        ...
