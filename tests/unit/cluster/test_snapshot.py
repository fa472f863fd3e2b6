from __future__ import annotations

import numpy as np
import pytest

from podium.cluster import Cache, HostPort, PodUsage, Snapshot, pod_usage
from podium.cluster.matching.lookup import Lookup
from podium.cluster.snapshot import TAINT_SETS_KEPT
from podium.objects.core import Node
from podium.objects.meta import ObjectMeta
from tests.builders import node, pod

PORT = HostPort("0.0.0.0", "TCP", 80)


def no_broken(item, error) -> None:
    raise AssertionError(f"{item.key}: {error}")


@pytest.fixture
def cache() -> Cache:
    return Cache(no_broken)


def names(snapshot: Snapshot) -> list[str]:
    return [snapshot.name(row) for row in snapshot.order]


def values(snapshot: Snapshot, key: str) -> dict[str, str | None]:
    column = snapshot.label_column(key)
    return {name: column.values[column.ids[row]] for name, row in snapshot.row_of.items()}


def test_columns_hold_what_nodes_offer_and_pods_request(cache):
    cache.put_node(node("n1", cpu="4", memory="8Gi", pods=10))
    cache.add_pod(pod("a", cpu="100m", memory="1Gi", node="n1"))
    cache.add_pod(pod("b", node="n1"))
    snapshot = cache.snapshot()
    row = snapshot.row_of["n1"]
    assert len(snapshot) == 1
    assert snapshot.allocatable("cpu")[row] == 4000
    assert snapshot.allowed_pods[row] == 10
    assert snapshot.pod_count[row] == 2
    assert snapshot.requested("cpu")[row] == 100
    assert snapshot.requested("memory")[row] == 1024**3
    assert snapshot.nonzero_requested("cpu")[row] == 100 + 100
    assert snapshot.nonzero_requested("memory")[row] == 1024**3 + 200 * 1024**2


def test_a_snapshot_goes_through_all_nodes_in_their_order_and_no_empty_row(cache):
    for name in ("n1", "n2", "n3"):
        cache.put_node(node(name))
    assert [node.name for node in cache.snapshot()] == ["n1", "n2", "n3"]
    cache.remove_node("n1")
    snapshot = cache.snapshot()
    assert [node.name for node in snapshot] == names(snapshot) == ["n2", "n3"]
    with pytest.raises(AssertionError, match="row 0 has no node"):
        [snapshot.node(row).name for row in range(len(snapshot))]


def test_view_of_one_node_reads_the_columns(cache):
    cache.put_node(node("n1", cpu="4", pods=10, labels={"app": "x"}, allocatable={"example.com/gpu": 8}))
    cache.add_pod(pod("a", cpu="1", requests={"example.com/gpu": 2}, node="n1"))
    snapshot = cache.snapshot()
    info = snapshot.node(snapshot.row_of["n1"])
    assert (info.name, info.labels, info.allowed_pods) == ("n1", {"app": "x"}, 10)
    assert (info.allocatable("cpu"), info.requested("cpu"), info.nonzero_requested("cpu")) == (4000, 1000, 1000)
    assert (info.allocatable("example.com/gpu"), info.nonzero_requested("example.com/gpu")) == (8, 2)
    assert [pod_on_node.metadata.name for pod_on_node in info.pods] == ["a"]
    assert repr(info) == "NodeInfo('n1')"


def test_resource_that_nobody_knows_is_zero_everywhere(cache):
    cache.put_node(node("n1"))
    snapshot = cache.snapshot()
    assert list(snapshot.allocatable("example.com/gpu")[snapshot.order]) == [0]
    assert list(snapshot.requested("example.com/gpu")[snapshot.order]) == [0]


@pytest.mark.parametrize("first", ["node", "pod"])
def test_resource_has_columns_from_when_a_node_offers_it(cache, first):
    asking = pod("a", cpu="1", requests={"example.com/gpu": 3}, node="n1")
    cache.put_node(node("n1"))
    if first == "pod":
        cache.add_pod(asking)
    snapshot = cache.snapshot()
    assert snapshot.requested("example.com/gpu")[snapshot.row_of["n1"]] == 0
    cache.put_node(node("n2", allocatable={"example.com/gpu": 4}))
    if first == "node":
        cache.add_pod(asking)
    snapshot = cache.snapshot()
    assert snapshot.requested("example.com/gpu")[snapshot.row_of["n1"]] == 3
    assert snapshot.requested("cpu")[snapshot.row_of["n1"]] == 1000
    assert snapshot.allocatable("example.com/gpu")[snapshot.row_of["n2"]] == 4
    cache.remove_pod(asking)
    snapshot = cache.snapshot()
    assert snapshot.requested("example.com/gpu")[snapshot.row_of["n1"]] == 0


def test_resource_that_a_node_no_longer_offers_is_zero(cache):
    cache.put_node(node("n1", allocatable={"example.com/gpu": 4}))
    cache.snapshot()
    cache.put_node(node("n1"))
    snapshot = cache.snapshot()
    assert snapshot.allocatable("example.com/gpu")[snapshot.row_of["n1"]] == 0
    assert snapshot.allocatable("cpu")[snapshot.row_of["n1"]] == 4000


def test_more_nodes_than_there_is_room_for_make_room(cache):
    for index in range(40):
        cache.put_node(node(f"n{index}", labels={"app": f"{index}"}))
        cache.add_pod(pod(f"p{index}", cpu=str(index), node=f"n{index}"))
        if index == 3:
            assert values(cache.snapshot(), "app") == {f"n{index}": f"{index}" for index in range(4)}
    snapshot = cache.snapshot()
    assert names(snapshot) == [f"n{index}" for index in range(40)]
    assert list(snapshot.requested("cpu")[snapshot.order]) == [index * 1000 for index in range(40)]
    assert values(snapshot, "app") == {f"n{index}": f"{index}" for index in range(40)}


def test_row_of_a_node_that_left_is_given_to_the_next_and_keeps_nothing(cache):
    full = node("n1", labels={"app": "x"}, taints=["k:NoSchedule"], unschedulable=True, images={"app": 1})
    cache.put_node(full)
    cache.add_pod(pod("a", cpu="1", host_ports=[80], node="n1"))
    snapshot = cache.snapshot()
    row = snapshot.row_of["n1"]
    assert values(snapshot, "app") == {"n1": "x"}
    cache.remove_node("n1")
    cache.snapshot()
    assert snapshot.order.size == 0
    assert snapshot.host_ports.conflicting_rows(PORT) == []
    assert snapshot.images.get("app") is None
    cache.put_node(node("n2"))
    assert cache.snapshot().row_of == {"n2": row}
    assert values(snapshot, "app") == {"n2": None}
    assert not snapshot.unschedulable[row]
    assert snapshot.taint_sets[snapshot.taint_set[row]] == ()
    assert snapshot.pod_count[row] == snapshot.requested("cpu")[row] == 0
    assert list(snapshot.node(row).pods) == []


def test_nodes_of_equal_taints_share_a_taint_set(cache):
    cache.put_node(node("n1", taints=["k=v:NoSchedule"]))
    cache.put_node(node("n2", taints=["k=v:NoSchedule"]))
    cache.put_node(node("n3", taints=["k=v:NoExecute"]))
    snapshot = cache.snapshot()
    first, second, third = (snapshot.taint_set[snapshot.row_of[name]] for name in ("n1", "n2", "n3"))
    assert first == second != third
    assert [taint.effect for taint in snapshot.taint_sets[third]] == ["NoExecute"]


def test_node_update_changes_its_row(cache):
    cache.put_node(node("n1", labels={"app": "x"}, images={"old": 1}))
    assert values(cache.snapshot(), "app") == {"n1": "x"}
    cache.put_node(node("n1", cpu="8", labels={"app": "y"}, unschedulable=True, images={"new": 1}))
    snapshot = cache.snapshot()
    row = snapshot.row_of["n1"]
    assert values(snapshot, "app") == {"n1": "y"}
    assert snapshot.unschedulable[row]
    assert snapshot.allocatable("cpu")[row] == 8000
    assert snapshot.images.get("old") is None
    assert snapshot.images.get("new").is_on(row)


def test_change_of_zone_shows_in_the_order_only_when_a_node_comes_or_goes(cache):
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        cache.put_node(node(name, zone=zone))
    assert names(cache.snapshot()) == ["a1", "b1", "a2"]
    cache.put_node(node("a1", zone="b"))
    assert names(cache.snapshot()) == ["a1", "b1", "a2"]
    cache.put_node(node("c1", zone="c"))
    assert names(cache.snapshot()) == ["a2", "b1", "c1", "a1"]


def test_order_cannot_be_written_to(cache):
    cache.put_node(node("n1"))
    with pytest.raises(ValueError, match="read-only"):
        cache.snapshot().order[0] = 5


def test_pod_is_not_put_on_a_node_twice(cache):
    cache.put_node(node("n1"))
    cache.add_pod(pod("a", node="n1"))
    snapshot = cache.snapshot()
    with pytest.raises(AssertionError, match="default/a is on n1 already"):
        snapshot.add_pod(0, pod("a"), pod_usage(pod("a")))


# ---------------------------------------------------------------- forks


@pytest.fixture
def original(cache) -> Snapshot:
    cache.put_node(node("n1", labels={"app": "x"}))
    cache.put_node(node("n2"))
    cache.add_pod(pod("a", cpu="1", host_ports=[80], node="n1"))
    return cache.snapshot()


def test_fork_sees_its_own_changes_and_leaves_no_trace(original):
    fork = original.fork()
    incoming_pod = pod("b", cpu="2", memory="1Ki", host_ports=[80])
    fork.add_pod(1, incoming_pod, pod_usage(incoming_pod))
    assert fork.remove_pod(0, "uid-a").metadata.name == "a"
    assert list(fork.requested("cpu")[fork.order]) == [0, 2000]
    assert list(fork.requested("memory")[fork.order]) == [0, 1024]
    assert fork.host_ports.conflicting_rows(PORT) == [1]
    assert [len(fork.node(row).pods) for row in fork.order] == [0, 1]

    assert list(original.requested("cpu")[original.order]) == [1000, 0]
    assert list(original.requested("memory")[original.order]) == [0, 0]
    assert list(original.pod_count[original.order]) == [1, 0]
    assert original.host_ports.conflicting_rows(PORT) == [0]
    assert [len(original.node(row).pods) for row in original.order] == [1, 0]


def test_fork_does_not_see_pods_that_come_to_the_original_later(cache, original):
    fork = original.fork()
    cache.add_pod(pod("later", cpu="1", host_ports=[81], node="n2"))
    cache.snapshot()
    assert list(fork.requested("cpu")[fork.order]) == [1000, 0]
    assert fork.host_ports.conflicting_rows(HostPort("0.0.0.0", "TCP", 81)) == []
    assert [len(fork.node(row).pods) for row in fork.order] == [1, 0]


def test_fork_of_a_fork_is_a_cluster_of_its_own(original):
    fork = original.fork()
    fork.remove_pod(0, "uid-a")
    inner = fork.fork()
    inner.add_pod(0, pod("c", cpu="3"), pod_usage(pod("c", cpu="3")))
    assert [snapshot.requested("cpu")[0] for snapshot in (original, fork, inner)] == [1000, 0, 3000]


def test_label_column_built_on_a_fork_serves_the_original(original):
    assert values(original.fork(), "app") == values(original, "app") == {"n1": "x", "n2": None}


def test_nodes_come_to_a_fork_change_there_and_leave_it_without_a_trace(original):
    fork = original.fork()
    fork.put_node(node("n3", images={"app": 7}), {"cpu": 3000, "example.com/gpu": 1}, 1)
    fork.put_node(node("n2", labels={"app": "y"}), {"cpu": 5000}, 1)
    fork.drop_node("n1")
    fork.settle()
    assert (names(fork), names(original)) == (["n2", "n3"], ["n1", "n2"])
    assert values(fork, "app") == {"n2": "y", "n3": None}
    assert values(original, "app") == {"n1": "x", "n2": None}
    assert list(fork.allocatable("cpu")[fork.order]) == [5000, 3000]
    assert list(original.allocatable("example.com/gpu")[original.order]) == [0, 0]
    assert (original.images.get("app"), list(original.requested("cpu")[original.order])) == (None, [1000, 0])
    assert fork.host_ports.conflicting_rows(PORT) == []
    assert original.host_ports.conflicting_rows(PORT) == [0]


def test_nodes_of_a_fork_of_usage_alone_cannot_change(original):
    with pytest.raises(AssertionError, match="usage"):
        original.fork_usage().drop_node("n1")


def test_replacing_a_pod_by_one_with_other_requests_recounts(original):
    original.replace_pod(0, pod("a", cpu="3"), pod_usage(pod("a", cpu="3")))
    assert original.requested("cpu")[0] == 3000
    assert original.pod_count[0] == 1
    assert original.host_ports.conflicting_rows(PORT) == []


def test_replacing_a_pod_by_one_with_the_same_requests_keeps_the_counts(original):
    twin = pod("a", cpu="1", host_ports=[80], labels={"new": "label"})
    usage = pod_usage(twin)
    original.replace_pod(0, twin, PodUsage(dict(usage.requests), 1000, usage.nonzero_memory_bytes, usage.host_ports))
    assert list(original.node(0).pods) == [twin]
    assert original.requested("cpu")[0] == 1000


# ---------------------------------------------------------------- without a cache


def node_with_labels(name: str, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels))


def test_a_resource_seen_for_the_first_time_gets_a_column_of_its_own() -> None:
    snapshot = Snapshot()
    snapshot.put_node(node_with_labels("n1"), {"cpu": 1000, "example.com/gpu": 2}, 10)
    snapshot.put_node(node_with_labels("n2"), {"example.com/fpga": 1}, 10)
    rows = [snapshot.row_of["n1"], snapshot.row_of["n2"]]
    assert snapshot.allocatable("example.com/gpu")[rows].tolist() == [2, 0]
    assert snapshot.allocatable("example.com/fpga")[rows].tolist() == [0, 1]
    assert snapshot.allocatable("cpu")[rows].tolist() == [1000, 0]
    assert snapshot.requested("example.com/gpu")[rows].tolist() == [0, 0]


def test_a_label_column_is_made_once_and_follows_the_nodes() -> None:
    snapshot = Snapshot()
    snapshot.put_node(node_with_labels("n1", zone="a"), {}, 10)
    column = snapshot.label_column("zone")
    snapshot.put_node(node_with_labels("n2", zone="b"), {}, 10)
    snapshot.put_node(node_with_labels("n1"), {}, 10)
    assert snapshot.label_column("zone") is column
    values = {name: column.values[column.ids[row]] for name, row in snapshot.row_of.items()}
    assert values == {"n1": None, "n2": "b"}


def test_rows_behind_the_row_end_have_never_had_a_node(cache):
    for name in ("n1", "n2", "n3"):
        cache.put_node(node(name))
    snapshot = cache.snapshot()
    assert snapshot.row_end == 3 == 1 + max(snapshot.row_of.values())
    cache.remove_node("n3")
    cache.put_node(node("n4"))
    assert cache.snapshot().row_end == 3


def test_usage_can_be_added_to_a_fork_without_pods_and_without_a_trace(cache):
    for name in ("n1", "n2"):
        cache.put_node(node(name, cpu="4", pods=10, allocatable={"example.com/gpu": 8}))
    cache.add_pod(pod("a", cpu="1", node="n1"))
    original = cache.snapshot()
    rows = np.array([original.row_of[name] for name in ("n1", "n2", "n1")])
    usages = [
        pod_usage(pod(cpu=cpu, requests=also)) for cpu, also in (("1", {}), ("2", {"example.com/gpu": 2}), ("3", {}))
    ]
    usage = original.usage_of(usages)
    fork = original.fork_usage()
    fork.add_usage(rows, usage)
    assert fork.requested("cpu")[rows[:2]].tolist() == [5000, 2000]
    assert fork.nonzero_requested("cpu")[rows[:2]].tolist() == [5000, 2000]
    assert fork.requested("example.com/gpu")[rows[:2]].tolist() == [0, 2]
    assert fork.pod_count[rows[:2]].tolist() == [3, 1]
    assert original.requested("cpu")[rows[:2]].tolist() == [1000, 0]
    assert original.pod_count[rows[:2]].tolist() == [1, 0]
    fork.add_usage(rows, -usage)
    assert fork.requested("cpu")[rows[:2]].tolist() == [1000, 0]


def test_usage_of_nothing_has_no_column(cache):
    assert cache.snapshot().usage_of([]).shape[1] == 0


def test_taint_sets_that_no_node_has_any_more_are_forgotten(cache):
    untolerated = Lookup(lambda taints: any(taint.key == "stays" for taint in taints), np.bool_)
    cache.put_node(node("n1", taints=["stays:NoSchedule"]))
    cache.put_node(node("n2"))
    for number in range(4 * TAINT_SETS_KEPT):
        cache.put_node(node("n3", taints=[f"leaves={number}:NoSchedule"]))
        snapshot = cache.snapshot()
        mask = untolerated.over(snapshot.taint_sets).take(snapshot.taint_set)
        assert [bool(mask[snapshot.row_of[name]]) for name in ("n1", "n2", "n3")] == [True, False, False]
    assert len(snapshot.taint_sets) <= TAINT_SETS_KEPT + 1
