"""Pods that measured loads do not show yet: when they are forgotten."""

from __future__ import annotations

from podium.plugins.contrib.recent_pods import RecentPods
from podium.testing import RecordingHandle, node, pod, snapshot_of


def test_a_node_whose_pods_are_all_old_is_forgotten_too() -> None:
    """Upstream keeps such a node's pods for ever."""
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z"}
    snapshot = snapshot_of(node("n1"), *(pod(f"p{number}", node="n1") for number in range(3)))
    pods = [pod(f"p{number}", node="n1", status={"conditions": [condition]}) for number in range(3)]
    recent_pods = RecentPods(RecordingHandle(snapshot, pods), 1, lambda _: (1.0,))
    placed_s = 1767225660.0
    assert recent_pods.sums(snapshot, placed_s - 1).sum() == 3
    assert recent_pods.sums(snapshot, placed_s).sum() == 0
    assert recent_pods.sums(snapshot, placed_s - 1).sum() == 0
