"""PodState: prefers nodes where pods are terminating, and avoids those that pods are nominated to.

Runs at: Score.
Verdict: none.
Requeue: none.
Cost: two look-ups of counters that are kept up to date, and one step for each node with nominated pods.
Source: sigs.k8s.io/scheduler-plugins pkg/podstate/pod_state.go (for Kubernetes 1.35).
"""

from __future__ import annotations

from typing import Final

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.pod_counts import PodQuery
from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.objects.selectors import EVERYTHING
from podium.plugins.contrib.calculations import min_max

_ALL: Final = PodQuery(None, EVERYTHING)
_STAYING: Final = PodQuery(None, EVERYTHING, include_terminating=False)


class PodState(fwk.TableScorePlugin, fwk.ScorePlugin):
    """Scores by the number of terminating pods, less the number of nominated ones."""

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Score with terminating minus nominated pods. The pod itself counts where it is nominated."""
        scores: IntArray = snapshot.pod_counts.matching(_ALL) - snapshot.pod_counts.matching(_STAYING)
        nominator = self.handle.nominator
        for name in nominator.node_names():
            if (row := snapshot.row_of.get(name)) is not None:
                scores[row] -= len(nominator.pods(name))
        return scores.take(rows)

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Score as `score_rows`, for one node."""
        terminating = sum(pod_on_node.is_terminating for pod_on_node in node.pods)
        return terminating - len(self.handle.nominator.pods(node.name))

    def normalize_scores(self, state: fwk.CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Scale to 0..MAX_NODE_SCORE. Nodes that are all alike get 0."""
        return min_max(scores)

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: the plugin rejects no node."""
        return ()
