from __future__ import annotations

from podium.framework.contract.filter import PreFilterResult
from podium.framework.contract.status import unresolvable
from podium.plugins.node_name import NodeName
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import STATE, RecordingHandle, filter_nodes

PLUGIN = NodeName(None, RecordingHandle())
REJECTED = unresolvable("node(s) didn't match the requested node name")


def test_only_the_named_node_passes() -> None:
    snapshot = snapshot_of(node("n1"), node("n2"))
    assert filter_nodes(PLUGIN, pod(node="n1"), snapshot) == {"n2": REJECTED}


def test_only_the_named_node_is_looked_at() -> None:
    snapshot = snapshot_of(node("n1"), node("n2"))
    assert PLUGIN.pre_filter(STATE, pod(node="n1"), snapshot) == (PreFilterResult(frozenset({"n1"})), None)
    assert PLUGIN.pre_filter(STATE, pod(), snapshot) == (None, None)


def test_a_name_that_no_node_has_rejects_all() -> None:
    snapshot = snapshot_of(node("n1"), node("n2"))
    assert filter_nodes(PLUGIN, pod(node="gone"), snapshot) == {"n1": REJECTED, "n2": REJECTED}


def test_a_pod_without_a_node_name_goes_anywhere() -> None:
    assert filter_nodes(PLUGIN, pod(), snapshot_of(node("n1"))) == {}


def test_any_new_node_may_help() -> None:
    assert [(registration.event.label, registration.hint) for registration in PLUGIN.events_to_register()] == [
        ("NodeAdd", None)
    ]
