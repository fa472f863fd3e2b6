import itertools

import msgspec
import pytest

from benchmarks.etcd import stored
from benchmarks.realistic import APPS, node, running_pod
from podium.objects.core import Node, Pod


def size(wire: object) -> int:
    return len(msgspec.json.encode(wire))


def test_a_node_has_about_ten_kilobytes() -> None:
    assert size(stored(node(4_999))) == pytest.approx(10_000, rel=0.15)


def test_pods_have_two_to_eight_kilobytes() -> None:
    sizes = [size(stored(running_pod(number, 50))) for number in range(50)]
    assert 1_500 < min(sizes) < 2_500
    assert 6_500 < max(sizes) < 8_500


def test_replicas_differ_by_name_and_node_alone() -> None:
    one, replica = (msgspec.convert(running_pod(number, 50), Pod) for number in (7, 7 + APPS))
    assert one.key != replica.key
    assert one.spec is replica.spec


def test_pods_run_on_the_nodes_in_turn() -> None:
    names = [msgspec.convert(node(number), Node).name for number in range(3)]
    pods = [msgspec.convert(running_pod(number, 3), Pod) for number in range(5)]
    assert [each.node_name for each in pods] == list(itertools.islice(itertools.cycle(names), 5))
    assert {each.status.phase for each in pods} == {"Running"}
