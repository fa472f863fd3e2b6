import itertools

import msgspec
import pytest

from benchmarks.etcd import as_stored
from benchmarks.realistic import APPS, node, running_pod
from podium.objects.core import Node, Pod


def json_bytes(manifest: object) -> int:
    return len(msgspec.json.encode(manifest))


def test_the_json_of_a_node_has_about_ten_kilobytes() -> None:
    assert json_bytes(as_stored(node(4_999))) == pytest.approx(10_000, rel=0.15)


def test_the_json_of_pods_has_two_to_eight_kilobytes() -> None:
    sizes = [json_bytes(as_stored(running_pod(number, 50))) for number in range(50)]
    assert 1_500 < min(sizes) < 2_500
    assert 6_500 < max(sizes) < 8_500


def test_replicas_differ_only_in_name_and_node() -> None:
    first, replica = (msgspec.convert(running_pod(number, 50), Pod) for number in (7, 7 + APPS))
    assert first.key != replica.key
    assert first.spec is replica.spec


def test_pods_are_assigned_to_the_nodes_round_robin() -> None:
    names = [msgspec.convert(node(number), Node).name for number in range(3)]
    pods = [msgspec.convert(running_pod(number, 3), Pod) for number in range(5)]
    assert [pod.node_name for pod in pods] == list(itertools.islice(itertools.cycle(names), 5))
    assert {pod.status.phase for pod in pods} == {"Running"}
