from __future__ import annotations

from typing import Any

import pytest

from podium.config.args import NodeResourcesFitArgs
from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.status import Code, Status, unresolvable, unschedulable
from podium.objects.core import Node, Pod
from podium.plugins.node_resources_fit import NodeResourcesFit
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import STATE, RecordingHandle, filter_nodes, filtered_one_by_one, score_nodes

GPU = "example.com/gpu"
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


def plugin(**args: Any) -> NodeResourcesFit:
    return NodeResourcesFit(NodeResourcesFitArgs(**args), RecordingHandle())


def verdict(requests: dict[str, Any], *, usage: dict[str, Any] | None = None, **shape: Any) -> Status | None:
    """Return the verdict on a pod on the only node, where another pod uses some of it."""
    snapshot = snapshot_of(node("n1", **shape), pod("there", node="n1", requests=usage))
    return filter_nodes(plugin(), pod(requests=requests), snapshot).get("n1")


def test_what_is_free_suffices_to_the_last_unit() -> None:
    assert verdict({"cpu": "3"}, usage={"cpu": "1"}, cpu="4") is None
    assert verdict({"cpu": "3001m"}, usage={"cpu": "1"}, cpu="4") == unschedulable("Insufficient cpu")


def test_what_the_empty_node_lacks_cannot_be_resolved() -> None:
    assert verdict({"cpu": "5"}, cpu="4") == unresolvable("Insufficient cpu")
    assert verdict({GPU: 1}) == unresolvable(f"Insufficient {GPU}")


def test_every_reason_is_given_in_order_and_one_unresolvable_makes_all_so() -> None:
    requests = {GPU: 2, "ephemeral-storage": "2Gi", "memory": "5Gi", "cpu": "2", "example.com/fpga": 1}
    shape = {"cpu": "2", "memory": "8Gi", "allocatable": {"ephemeral-storage": "1Gi", GPU: "2"}, "pods": 1}
    assert verdict(requests, usage={"cpu": "1", "memory": "4Gi", GPU: 1}, **shape) == unresolvable(
        "Too many pods",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient ephemeral-storage",
        "Insufficient example.com/fpga",
        f"Insufficient {GPU}",
    )


def test_a_pod_without_requests_needs_a_place_only() -> None:
    assert verdict({}, usage={"cpu": "8"}, cpu="4") is None
    assert verdict({"cpu": 0, GPU: 0}, usage={"cpu": "8"}, cpu="4") is None
    assert verdict({}, pods=1) == unschedulable("Too many pods")


def test_ignored_extended_resources_are_not_looked_at() -> None:
    snapshot = snapshot_of(node("n1", cpu="1"))
    wanting = pod(requests={GPU: 1, "other.io/a": 1, "cpu": "2"})
    ignoring = plugin(ignored_resources=(GPU, "cpu"), ignored_resource_groups=("other.io",))
    assert filter_nodes(ignoring, wanting, snapshot) == {"n1": unresolvable("Insufficient cpu")}


def test_an_unreadable_request_rejects_the_pod_and_names_the_field() -> None:
    _, status = plugin().pre_filter(STATE, pod(requests={"cpu": "much"}), snapshot_of(node("n1")))
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message.startswith("spec.containers[0].resources.requests[cpu]: ")


def test_more_resources_than_a_verdict_has_bits_are_still_held_against_the_node() -> None:
    names = [f"example.com/r{index:02}" for index in range(70)]
    wanting = pod(requests=dict.fromkeys(names, 1))
    all_but_last = dict.fromkeys(names[:-1], "1")
    snapshot = snapshot_of(node("none"), node("some", allocatable=all_but_last))
    answers = filter_nodes(plugin(), wanting, snapshot)
    assert answers["none"] == unresolvable(*(f"Insufficient {name}" for name in names[:61]))
    assert answers["some"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert filtered_one_by_one(plugin(), wanting, snapshot).keys() == answers.keys()


def test_rows_that_all_have_room_get_no_verdicts() -> None:
    snapshot = snapshot_of(node("n1"), node("n2"))
    assert plugin().filter_rows(STATE, pod(requests={"cpu": "1"}), snapshot, snapshot.order) is None
    assert plugin().pre_filter(STATE, pod(), snapshot) == (None, None)
    assert plugin().pre_score(STATE, pod(), snapshot, snapshot.order) is None


def test_scoring_takes_silent_containers_to_use_a_little() -> None:
    snapshot = snapshot_of(node("n1", cpu="1", memory="1000Mi"), pod("silent", node="n1"))
    # Two pods of 100m and 200 MiB each: (80 + 60) // 2.
    assert score_nodes(plugin(), pod(), snapshot) == {"n1": 70}


def test_an_unreadable_request_fails_scoring() -> None:
    snapshot = snapshot_of(node("n1"))
    status = plugin().pre_score(STATE, pod(requests={"cpu": "much"}), snapshot, snapshot.order)
    assert status is not None
    assert status.code is Code.ERROR


WANTING = pod("mine", requests={"cpu": "1", GPU: 1})


def there(cpu: str = "1", *, on: str = "n1", nominated_node: str = "", **fields: Any) -> Pod:
    return pod("there", node=on, nominated=nominated_node, requests={"cpu": cpu, **fields})


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (there(), None, QUEUE),
        (there(on="", nominated_node="n1"), None, QUEUE),
        (there(on=""), None, SKIP),
        (WANTING, pod("mine", requests={"cpu": "500m"}), QUEUE),
        (there("2"), there("1"), QUEUE),
        (there("1"), there("2"), SKIP),
        (there(memory="2Gi"), there(memory="1Gi"), SKIP),
        (there("2", on=""), there("1", on=""), SKIP),
    ],
)
def test_a_pod_helps_when_it_gives_back_what_is_wanted(old: Pod, new: Pod | None, hint: QueueingHint) -> None:
    assert plugin().after_pod_change(WANTING, old, new) is hint


def machine(cpu: str = "2", gpu: int = 1, **fields: Any) -> Node:
    return node("n1", cpu=cpu, allocatable={GPU: str(gpu)}, **fields)


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, machine(), QUEUE),
        (None, machine(cpu="500m"), SKIP),
        (None, machine(pods=0), SKIP),
        (machine(cpu="1"), machine(), QUEUE),
        (machine(gpu=0), machine(), QUEUE),
        (machine(pods=5), machine(pods=6), QUEUE),
        (machine(memory="1Gi"), machine(memory="2Gi"), SKIP),
        (machine(cpu="3"), machine(), SKIP),
        (machine(gpu=0), machine(cpu="500m"), SKIP),
    ],
)
def test_a_node_helps_when_the_pod_fits_it_empty_and_it_grew(old: Node | None, new: Node, hint: QueueingHint) -> None:
    assert plugin().after_node_change(WANTING, old, new) is hint


def test_hints_look_at_ignored_resources_too() -> None:
    assert plugin(ignored_resources=(GPU,)).after_node_change(WANTING, None, node("n1")) is SKIP


def test_it_registers_for_pods_that_shrink_and_nodes_that_grow() -> None:
    on_assigned, on_own, on_node, on_class = plugin().events_to_register()
    assert (int(on_assigned.event.action), int(on_own.event.action)) == (2 | 1024, 1024)
    assert int(on_node.event.action) == 1 | 4
    assert on_class.event.description == "resource.k8s.io/DeviceClass Add, Update"
