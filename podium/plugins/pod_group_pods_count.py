"""PodGroupPodsCount: prefers the placement in which more pods of the group run.

Runs at: PlacementScore, NormalizePlacementScore.
Verdict: Error if no pod has a place anywhere.
Requeue: it rejects no pod.
Cost: constant.
Source: kubernetes pkg/scheduler/framework/plugins/podgrouppodscount/podgroup_pods_count.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster import Snapshot
from podium.framework import contract as fwk


class PodGroupPodsCount(fwk.PlacementScorePlugin):
    """Counts the pods of the group that run already, and those that would."""

    def score_placement(self, group: fwk.ProposedGroup, snapshot: Snapshot) -> int:
        """Return how many pods of the group would run."""
        return group.state.scheduled_count + len(group.pods)

    def normalize_placement_scores(self, scores: Sequence[int]) -> Sequence[int]:
        """Return the percentage of the best placement."""
        best = max(scores)
        if best == 0:
            raise fwk.PluginError("no pods from pod group are assigned to any of the candidate placements")
        return [score * fwk.MAX_NODE_SCORE // best for score in scores]

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: this plugin rejects nothing."""
        return ()
