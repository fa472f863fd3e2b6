"""The extension points for pod groups: placements are generated and scored.

Source: staging kube-scheduler/framework/interface.go, v1.36.2.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from podium.cluster import Snapshot
from podium.cluster.pod_groups import PodGroupState
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.pod_groups import Placement, ProposedGroup
from podium.framework.contract.status import Status


class PlacementGeneratePlugin(Plugin):
    """Divides the nodes into placements, in each of which a whole pod group is tried."""

    @abstractmethod
    def generate_placements(
        self, key: str, state: PodGroupState, snapshot: Snapshot
    ) -> tuple[Sequence[Placement], Status | None]:
        """Return the placements for the group of that key, or why there are none."""


class PlacementScorePlugin(Plugin):
    """Scores placements in which a pod group can be scheduled."""

    @abstractmethod
    def score_placement(self, group: ProposedGroup, snapshot: Snapshot) -> int:
        """Return the placement's score, higher is better. Any exception fails the attempt."""

    def normalize_placement_scores(self, scores: Sequence[int]) -> Sequence[int]:
        """Normalise the scores of all placements to 0..MAX_NODE_SCORE. By default they are left as they are."""
        return scores
