from collections import Counter

import msgspec

from benchmarks.nodes import ZONES, node
from podium.objects.core import Node
from podium.objects.requests import node_allocatable


def test_nodes_take_turns_in_the_zones() -> None:
    zones = Counter(node(number)["metadata"]["labels"]["topology.kubernetes.io/zone"] for number in range(9))
    assert zones == dict.fromkeys(ZONES, 3)


def test_no_two_nodes_share_name_or_addresses() -> None:
    nodes = [node(number) for number in (*range(600), *range(14_400, 15_000))]
    assert len({node["metadata"]["name"] for node in nodes}) == 1_200
    assert len({node["spec"]["podCIDR"] for node in nodes}) == 1_200
    assert len({node["status"]["addresses"][0]["address"] for node in nodes}) == 1_200


def test_a_node_has_room_for_three_hundred_pods_by_cpu_and_takes_110() -> None:
    allocatable, allowed_pods = node_allocatable(msgspec.convert(node(1), Node))
    assert allocatable["cpu"] == 32_000
    assert allowed_pods == 110
