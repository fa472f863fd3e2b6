"""PodState: where pods leave there will be room, and where pods are nominated there will be none."""

from __future__ import annotations

from typing import Any

from podium.cluster import Snapshot
from podium.framework.contract.plugin import Scope
from podium.objects.core import Pod
from podium.plugins.contrib.pod_state import PodState
from podium.testing import RecordingHandle, check_contract
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import normalized, scored, scored_one_by_one

LEAVING = [pod(f"leaving-{number}", node="a", terminating=True) for number in range(2)]


def made(snapshot: Snapshot, *nominated: Pod) -> PodState:
    return PodState(None, RecordingHandle(snapshot, nominated))


def raw(snapshot: Snapshot, *nominated: Pod) -> dict[str, int]:
    plugin = made(snapshot, *nominated)
    table = scored(plugin, pod(), snapshot)
    assert scored_one_by_one(plugin, pod(), snapshot) == table
    return table


def test_it_keeps_the_contract() -> None:
    check_contract(PodState)


def test_terminating_pods_count_for_a_node_and_nominated_ones_against_it() -> None:
    snapshot = snapshot_of(node("a"), node("b"), node("c"), *LEAVING, pod("stays", node="b"))
    assert raw(snapshot, pod("later", nominated="c")) == {"a": 2, "b": 0, "c": -1}
    assert normalized(made(snapshot, pod("later", nominated="c")), pod(), snapshot) == {"a": 100, "b": 33, "c": 0}


def test_the_pod_itself_counts_where_it_is_nominated() -> None:
    snapshot = snapshot_of(node("a"), node("b"))
    itself = pod("new", nominated="a")
    assert scored(made(snapshot, itself), itself, snapshot) == {"a": -1, "b": 0}


def test_a_nomination_to_a_node_that_is_gone_counts_nowhere() -> None:
    assert raw(snapshot_of(node("a")), pod("later", nominated="gone")) == {"a": 0}


def test_equal_nodes_get_nothing() -> None:
    snapshot = snapshot_of(node("a"), node("b"))
    assert normalized(made(snapshot), pod(), snapshot) == {"a": 0, "b": 0}


def test_scores_follow_what_happens_in_a_fork() -> None:
    snapshot = snapshot_of(node("a"), node("b"), *LEAVING)
    plugin = made(snapshot)
    world = snapshot.fork()
    world.remove_pod(world.row_of["a"], LEAVING[0].uid)
    assert scored(plugin, pod(), world) == {"a": 1, "b": 0}
    assert scored(plugin, pod(), snapshot) == {"a": 2, "b": 0}


def test_it_looks_at_the_whole_cluster_and_waits_for_nothing() -> None:
    plugin: Any = made(snapshot_of())
    assert plugin.score_scope(pod().spec) is Scope.CLUSTER
    assert plugin.events_to_register() == ()
