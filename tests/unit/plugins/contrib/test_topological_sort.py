"""TopologicalSort: a strict order that keeps groups together, in the order of their topology."""

from __future__ import annotations

import itertools

import msgspec

from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.profile.plugin_args import typed_args
from podium.objects.core import Pod
from podium.objects.times import format_time
from podium.plugins.contrib.app_groups import GROUP_LABEL, WORKLOAD_LABEL, AppGroup
from podium.plugins.contrib.topological_sort import TopologicalSort
from podium.testing import RecordingHandle, check_contract
from tests.builders import pod, snapshot_of

START_S = 1_700_000_000.0


def group(*selectors: str, name: str = "shop", namespace: str = "default") -> AppGroup:
    """A group that starts its workloads in this order."""
    order = [{"workload": {"selector": selector}, "index": index} for index, selector in enumerate(selectors)]
    metadata = {"name": name, "namespace": namespace}
    return msgspec.convert({"metadata": metadata, "status": {"topologyOrder": order}}, AppGroup)


def member(name: str, workload: str, at_s: float, of: str = "shop", priority: int = 0, node: str = "") -> Pod:
    labels = {GROUP_LABEL: of, WORKLOAD_LABEL: workload}
    created = {"creationTimestamp": format_time(START_S + at_s)}
    return pod(name, labels=labels, priority=priority, node=node, metadata=created)


def plain(name: str, at_s: float, priority: int = 0) -> Pod:
    return pod(name, priority=priority, metadata={"creationTimestamp": format_time(START_S + at_s)})


def order(groups: list[AppGroup], *pods: Pod, args: object = None) -> list[str]:
    """The waiting pods in the order of the queue, which they entered when they were created."""
    handle = RecordingHandle(snapshot_of(), [*groups, *pods])
    plugin = TopologicalSort(typed_args(TopologicalSort, args), handle)
    at_s = {item.uid: float(index) for index, item in enumerate(pods)}
    infos = [QueuedPodInfo(item, START_S + at_s[item.uid]) for item in pods if not item.node_name]
    in_order = sorted(infos, key=plugin.sort_key)
    assert all(plugin.less(a, b) and not plugin.less(b, a) for a, b in itertools.combinations(in_order, 2))
    assert plugin.events_to_register() == ()
    return [info.pod.metadata.name for info in in_order]


def test_it_keeps_the_contract() -> None:
    check_contract(TopologicalSort)


def test_pods_of_a_group_go_in_the_order_of_its_topology_whatever_the_order_of_the_list() -> None:
    pods = [member("c", "cache", 0), member("w", "web", 1), member("d", "db", 2), member("o", "other", 3)]
    assert order([group("db", "web", "cache")], *pods) == ["o", "d", "w", "c"]


def test_two_pods_of_one_workload_go_by_time() -> None:
    assert order([group("db")], member("d-2", "db", 0), member("d-1", "db", 1)) == ["d-2", "d-1"]


def test_priority_counts_before_the_topology() -> None:
    pods = [member("low", "db", 0), member("high", "web", 1, priority=5), plain("highest", 2, priority=9)]
    assert order([group("db", "web")], *pods) == ["highest", "high", "low"]


def test_a_group_stays_together_at_the_place_of_its_first_waiting_pod() -> None:
    pods = [plain("x", 0), member("w", "web", 1), plain("y", 2), member("d", "db", 3), plain("z", 4)]
    assert order([group("db", "web")], *pods) == ["x", "d", "w", "y", "z"]


def test_pods_with_a_node_do_not_hold_the_place_of_their_group() -> None:
    pods = [member("running", "db", 0, node="n1"), plain("x", 1), member("w", "web", 2)]
    assert order([group("db", "web")], *pods) == ["x", "w"]


def test_groups_of_the_same_age_do_not_mix() -> None:
    pods = [member("a-2", "web", 0, "a"), member("b-2", "web", 0, "b"), member("b-1", "db", 0, "b")]
    pods.append(member("a-1", "db", 0, "a"))
    groups = [group("db", "web", name=name) for name in "ab"]
    assert order(groups, *pods) == ["a-1", "a-2", "b-1", "b-2"]


def test_without_the_group_its_pods_go_by_time() -> None:
    pods = [member("w", "web", 0), member("d", "db", 1)]
    assert order([], *pods) == ["w", "d"]
    elsewhere = [group("db", "web", namespace="other")]
    assert order(elsewhere, *pods) == ["w", "d"]
    assert order(elsewhere, *pods, args={"namespaces": ["x", "other"]}) == ["d", "w"]


def test_a_pod_without_a_creation_time_counts_from_when_it_was_queued() -> None:
    undated = pod("u", labels={GROUP_LABEL: "shop", WORKLOAD_LABEL: "db"})
    assert order([group("db")], plain("x", 0), undated, plain("y", 2)) == ["x", "u", "y"]
