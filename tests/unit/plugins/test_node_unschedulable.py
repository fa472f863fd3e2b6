from __future__ import annotations

import pytest

from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.status import unresolvable
from podium.objects.core import Node
from podium.plugins.node_unschedulable import NodeUnschedulable
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import STATE, RecordingHandle, filter_nodes

PLUGIN = NodeUnschedulable(None, RecordingHandle())
CORDONED, OPEN = node("n1", unschedulable=True), node("n1")
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


def test_cordoned_nodes_are_rejected() -> None:
    snapshot = snapshot_of(CORDONED, node("n2"))
    assert filter_nodes(PLUGIN, pod(), snapshot) == {"n1": unresolvable("node(s) were unschedulable")}


@pytest.mark.parametrize(
    "toleration",
    [
        {"operator": "Exists"},
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    ],
)
def test_a_pod_that_tolerates_the_cordon_may_go_there(toleration: dict[str, str]) -> None:
    assert filter_nodes(PLUGIN, pod(tolerations=[toleration]), snapshot_of(CORDONED)) == {}


def test_a_toleration_of_another_effect_does_not_help() -> None:
    tolerating = pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoExecute"}])
    assert set(filter_nodes(PLUGIN, tolerating, snapshot_of(CORDONED))) == {"n1"}


def test_without_a_cordoned_row_there_is_nothing_to_say() -> None:
    snapshot = snapshot_of(node("n1"), node("n2", unschedulable=True))
    rows = snapshot.order[:1]
    assert PLUGIN.filter_rows(STATE, pod(), snapshot, rows) is None


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [(None, OPEN, QUEUE), (None, CORDONED, SKIP), (CORDONED, OPEN, QUEUE), (OPEN, OPEN, SKIP), (OPEN, CORDONED, SKIP)],
)
def test_a_node_helps_when_it_becomes_schedulable(old: Node | None, new: Node, hint: QueueingHint) -> None:
    assert PLUGIN.after_node_change(pod(), old, new) is hint


def test_a_toleration_helps_the_pod_that_got_it() -> None:
    old, new = pod("mine"), pod("mine", tolerations=[{"operator": "Exists"}])
    assert PLUGIN.after_toleration_change(old, old, new) is QUEUE
    assert PLUGIN.after_toleration_change(old, old, old) is SKIP
    assert PLUGIN.after_toleration_change(pod("other"), old, new) is SKIP


def test_it_registers_for_nodes_and_tolerations() -> None:
    assert [
        registration.event.label
        for registration in PLUGIN.events_to_register()
        if registration.event.resource.value == "TargetPod"
    ] == ["TargetPodUpdatePodToleration"]
    assert int(PLUGIN.events_to_register()[0].event.action) == 1 | 16
