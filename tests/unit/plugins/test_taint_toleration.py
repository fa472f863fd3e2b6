from __future__ import annotations

import pytest

from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.status import unresolvable
from podium.objects.core import Node
from podium.plugins.taint_toleration import TaintToleration
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import STATE, RecordingHandle, filter_nodes, normalize, score_nodes

PLUGIN = TaintToleration(None, RecordingHandle())
REJECTED = unresolvable("node(s) had untolerated taint(s)")
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def test_hard_taints_repel_and_soft_ones_do_not() -> None:
    snapshot = snapshot_of(
        node("free"),
        node("no-schedule", taints=[taint("gpu")]),
        node("no-execute", taints=[taint("down", "NoExecute")]),
        node("soft", taints=[taint("old", "PreferNoSchedule")]),
    )
    assert filter_nodes(PLUGIN, pod(), snapshot) == {"no-schedule": REJECTED, "no-execute": REJECTED}


def test_every_hard_taint_must_be_tolerated() -> None:
    snapshot = snapshot_of(
        node("one", taints=[taint("a", value="x")]), node("two", taints=[taint("a", value="x"), taint("b")])
    )
    tolerating = pod(tolerations=[{"key": "a", "operator": "Equal", "value": "x"}])
    assert filter_nodes(PLUGIN, tolerating, snapshot) == {"two": REJECTED}


def test_taints_that_appear_later_are_held_against_the_same_spec() -> None:
    web = pod()
    assert filter_nodes(PLUGIN, web, snapshot_of(node("n1", taints=[taint("a")]))) == {"n1": REJECTED}
    snapshot = snapshot_of(node("n1", taints=[taint("a", "PreferNoSchedule")]))
    assert filter_nodes(PLUGIN, web, snapshot) == {}
    snapshot.put_node(node("n1", taints=[taint("b")]), {}, 1)
    assert filter_nodes(PLUGIN, web, snapshot) == {"n1": REJECTED}


def test_the_details_have_the_taints_that_the_reason_leaves_out() -> None:
    snapshot = snapshot_of(
        node("one", taints=[taint("old", "PreferNoSchedule"), taint("team", value="a")]),
        node("two", taints=[taint("team", value="a")]),
        node("three", taints=[taint("down", "NoExecute")]),
    )
    assert PLUGIN.rejection_details(pod(), snapshot, snapshot.order) == {
        "untolerated taint team=a:NoSchedule": 2,
        "untolerated taint down:NoExecute": 1,
    }
    tolerating = pod(tolerations=[{"operator": "Exists", "effect": "NoExecute"}])
    assert PLUGIN.rejection_details(tolerating, snapshot, snapshot.order) == {"untolerated taint team=a:NoSchedule": 2}


def test_not_every_one_of_thousands_of_sets_of_taints_is_looked_at() -> None:
    snapshot = snapshot_of(*(node(f"n{number}", taints=[taint(f"t{number}")]) for number in range(300)))
    assert len(PLUGIN.rejection_details(pod(), snapshot, snapshot.order)) == 100


def test_the_score_counts_soft_taints_and_fewer_are_better() -> None:
    snapshot = snapshot_of(
        node("none"),
        node("one", taints=[taint("a", "PreferNoSchedule"), taint("h")]),
        node("three", taints=[taint(key, "PreferNoSchedule") for key in "abc"]),
    )
    assert score_nodes(PLUGIN, pod(), snapshot) == {"none": 0, "one": 1, "three": 3}
    assert normalize(PLUGIN, pod(), snapshot) == {"none": 100, "one": 67, "three": 0}


def test_tolerations_of_hard_effects_do_not_count_for_soft_taints() -> None:
    snapshot = snapshot_of(node("n1", taints=[taint("a", "PreferNoSchedule"), taint("b", "PreferNoSchedule")]))
    tolerating = pod(
        tolerations=[
            {"key": "a", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "b", "operator": "Exists", "effect": "PreferNoSchedule"},
        ]
    )
    assert score_nodes(PLUGIN, tolerating, snapshot) == {"n1": 1}


def test_without_soft_taints_every_node_gets_the_full_score() -> None:
    snapshot = snapshot_of(node("n1"), node("n2"))
    assert PLUGIN.pre_score(STATE, pod(), snapshot, snapshot.order) is None
    assert normalize(PLUGIN, pod(), snapshot) == {"n1": 100, "n2": 100}


CLEAN, TAINTED, SOFT = node("n1"), node("n1", taints=[taint("a")]), node("n1", taints=[taint("a", "PreferNoSchedule")])


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, CLEAN, QUEUE),
        (None, SOFT, QUEUE),
        (None, TAINTED, SKIP),
        (TAINTED, CLEAN, QUEUE),
        (CLEAN, TAINTED, SKIP),
        (SOFT, CLEAN, SKIP),
    ],
)
def test_a_node_helps_when_its_taints_become_tolerable(old: Node | None, new: Node, hint: QueueingHint) -> None:
    assert PLUGIN.after_node_change(pod(), old, new) is hint


def test_only_the_pods_own_tolerations_help() -> None:
    assert PLUGIN.after_toleration_change(pod("a"), pod("a"), pod("a")) is QUEUE
    assert PLUGIN.after_toleration_change(pod("a"), pod("b"), pod("b")) is SKIP


def test_it_registers_for_nodes_and_tolerations() -> None:
    on_node, on_pod = PLUGIN.events_to_register()
    assert int(on_node.event.action) == 1 | 16
    assert on_pod.event.label == "TargetPodUpdatePodToleration"
