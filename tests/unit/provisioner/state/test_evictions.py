"""Which pods of a node that goes are placed elsewhere now."""

from __future__ import annotations

from typing import Any

import pytest

from podium.objects.times import format_time
from podium.provisioner.state.evictions import Evictions
from podium.provisioner.state.reading import read_objects
from tests.unit.provisioner.clusters import NOW, Document, as_pod, owned_by, pod

WEB = {"app": "web"}


def budget(name: str = "web", **spec: Any) -> Document:
    selector = {"matchLabels": WEB}
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": selector, **spec},
    }


def moves(document: Document, *budgets: Document) -> bool:
    return Evictions(read_objects(budgets).budgets, NOW).is_currently_reschedulable(as_pod(document))


def running(**fields: Any) -> Document:
    return pod("a", node="n1", labels=WEB, **fields)


@pytest.mark.parametrize(
    ("text", "started_s_ago", "is_movable"),
    [("true", 0, False), ("1h", 60, False), ("1h", 3601, True), ("soon", 0, True), ("-1h", 0, True)],
)
def test_an_annotation_protects_a_pod(text: str, started_s_ago: float, is_movable: bool) -> None:
    status = {"phase": "Running", "startTime": format_time(NOW - started_s_ago)}
    protected = {"annotations": {"karpenter.sh/do-not-disrupt": text}}
    assert moves(running(metadata=protected, status=status)) is is_movable


def test_pods_that_stay_with_their_node_do_not_move() -> None:
    assert moves(running())
    assert not moves(running(metadata=owned_by("DaemonSet", "agent")))
    assert not moves(running(metadata=owned_by("Node", "n1", "v1")))
    assert not moves(running(status={"phase": "Failed"}))


def test_of_the_pods_that_are_being_deleted_only_those_of_stateful_sets_come_back() -> None:
    deletion = {"deletionTimestamp": "2026-05-01T00:00:00Z"}
    assert not moves(running(metadata=deletion))
    assert moves(running(metadata={**deletion, **owned_by("StatefulSet", "db")}))


@pytest.mark.parametrize(
    ("spec", "is_movable"),
    [
        ({"maxUnavailable": 0}, False),
        ({"maxUnavailable": "0%"}, False),
        ({"minAvailable": "100%"}, False),
        ({"maxUnavailable": 1}, True),
        ({"minAvailable": 3}, True),
    ],
)
def test_a_budget_that_never_lets_a_pod_go_holds_it(spec: Document, is_movable: bool) -> None:
    assert moves(running(), budget(**spec)) is is_movable


def test_two_budgets_hold_a_pod() -> None:
    assert not moves(running(), budget("one", maxUnavailable=1), budget("two", maxUnavailable=1))


def test_a_pod_that_is_not_ready_may_go() -> None:
    unready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    lenient = budget(maxUnavailable=0, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert moves(running(status=unready), lenient)
    assert not moves(running(status=unready), budget(maxUnavailable=0))
