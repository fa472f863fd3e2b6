from __future__ import annotations

from podium.cluster.pod_changes import PodChange, undone
from tests.builders import pod


def change(number: int) -> PodChange:
    return PodChange(number, pod(f"p{number}"), 1)


def test_undone_takes_back_the_latest_first() -> None:
    assert [(pod_change.row, pod_change.sign) for pod_change in undone([change(0), change(1)])] == [(1, -1), (0, -1)]
