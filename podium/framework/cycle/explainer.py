"""Who is told how each node fared in an attempt, where somebody wants to know that much."""

from __future__ import annotations

from typing import Protocol

from podium.cluster import IntArray, Rows, Snapshot
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.scoring import Scores
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod


class Explainer(Protocol):
    """Told of each step of each attempt; changes nothing about it, and may take its time."""

    def begun(self, pod: Pod) -> None:
        """An attempt at the pod begins."""
        ...

    def judged(self, framework: Framework, pod: Pod, snapshot: Snapshot, diagnosis: Diagnosis) -> None:
        """Every node that was looked at has been judged; those that are not in the diagnosis fit."""
        ...

    def scored(self, pod: Pod, snapshot: Snapshot, rows: Rows, scores: Scores) -> None:
        """The plugins have scored the nodes that fit."""
        ...

    def totalled(self, pod: Pod, snapshot: Snapshot, rows: Rows, total: IntArray) -> None:
        """Everything that counts has been added up."""
        ...
