from collections import Counter

import msgspec
import pytest

from benchmarks.workloads import NAMESPACE, SCHEDULER_NAME, WORKLOADS, ZONES, node
from podium.kube.objects import Node, Pod
from podium.kube.requests import node_allocatable


@pytest.mark.parametrize("name", WORKLOADS)
def test_pods_of_a_workload_wait_for_the_measured_scheduler(name: str) -> None:
    pods = [msgspec.convert(WORKLOADS[name].pod(number), Pod) for number in range(3)]
    assert len({each.key for each in pods}) == 3
    assert {each.metadata.namespace for each in pods} == {NAMESPACE}
    assert {each.spec.scheduler_name for each in pods} == {SCHEDULER_NAME}
    assert {each.node_name for each in pods} == {""}


def test_a_workload_adds_to_the_plain_pod() -> None:
    plain, affine = WORKLOADS["plain"].pod(0)["spec"], WORKLOADS["node-affinity"].pod(0)["spec"]
    assert {**plain, "affinity": affine["affinity"]} == affine


def test_nodes_take_turns_in_the_zones() -> None:
    zones = Counter(node(number)["metadata"]["labels"]["topology.kubernetes.io/zone"] for number in range(9))
    assert zones == dict.fromkeys(ZONES, 3)


def test_no_two_nodes_share_name_or_addresses() -> None:
    nodes = [node(number) for number in (*range(600), *range(14_400, 15_000))]
    assert len({each["metadata"]["name"] for each in nodes}) == 1_200
    assert len({each["spec"]["podCIDR"] for each in nodes}) == 1_200
    assert len({each["status"]["addresses"][0]["address"] for each in nodes}) == 1_200


def test_a_node_has_room_for_three_hundred_pods_by_cpu_and_takes_110() -> None:
    allocatable, allowed_pods = node_allocatable(msgspec.convert(node(1), Node))
    assert allocatable["cpu"] == 32_000
    assert allowed_pods == 110
