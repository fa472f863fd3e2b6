from __future__ import annotations

from typing import Any

import pytest

from podium.config import NEWEST
from podium.insight.evaluate.events import Change, events_of
from podium.objects.meta import ObjectMeta
from podium.objects.storage import StorageClass
from podium.objects.workloads import PodDisruptionBudget
from tests.builders import node, pod

PENDING, BOUND, NOMINATED = pod("a"), pod("a", node="n1"), pod("a", nominated="n1")
LABELLED = pod("a", node="n1", labels={"app": "web"})
CLASS = StorageClass(metadata=ObjectMeta(name="fast"))


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        (None, PENDING, ["UnscheduledPodAdd"]),
        (None, BOUND, ["AssignedPodAdd"]),
        (PENDING, BOUND, ["AssignedPodAdd"]),
        (BOUND, None, ["AssignedPodDelete"]),
        (NOMINATED, None, ["AssignedPodDelete"]),
        (PENDING, None, []),
        (BOUND, LABELLED, ["AssignedPodUpdatePodLabel"]),
        (None, node("n1"), ["NodeAdd"]),
        (node("n1"), None, ["NodeDelete"]),
        (node("n1"), node("n1"), []),
        (node("n1", unschedulable=True), node("n1"), ["NodeUpdateNodeTaint"]),
        (node("n1", cpu="1"), node("n1", cpu="2", zone="a"), ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"]),
        (None, CLASS, ["storage.k8s.io/StorageClassAdd"]),
        (CLASS, CLASS, ["storage.k8s.io/StorageClassUpdate"]),
        (CLASS, None, ["storage.k8s.io/StorageClassDelete"]),
        (None, PodDisruptionBudget(), []),
    ],
)
def test_a_change_is_the_events_that_may_requeue_pods(old: Any, new: Any, labels: list[str]) -> None:
    assert [event.label for event in events_of(Change(old, new), NEWEST)] == labels
