from __future__ import annotations

from podium.cluster import Snapshot
from podium.kube.objects import Node, ObjectMeta


def labelled(name: str, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels))


def test_a_resource_seen_for_the_first_time_gets_a_column_of_its_own() -> None:
    snapshot = Snapshot()
    snapshot.put_node(labelled("n1"), {"cpu": 1000, "example.com/gpu": 2}, 10)
    snapshot.put_node(labelled("n2"), {"example.com/fpga": 1}, 10)
    rows = [snapshot.row_of["n1"], snapshot.row_of["n2"]]
    assert snapshot.allocatable("example.com/gpu")[rows].tolist() == [2, 0]
    assert snapshot.allocatable("example.com/fpga")[rows].tolist() == [0, 1]
    assert snapshot.allocatable("cpu")[rows].tolist() == [1000, 0]
    assert snapshot.requested("example.com/gpu")[rows].tolist() == [0, 0]


def test_a_label_column_is_made_once_and_follows_the_nodes() -> None:
    snapshot = Snapshot()
    snapshot.put_node(labelled("n1", zone="a"), {}, 10)
    column = snapshot.label_column("zone")
    snapshot.put_node(labelled("n2", zone="b"), {}, 10)
    snapshot.put_node(labelled("n1"), {}, 10)
    assert snapshot.label_column("zone") is column
    values = {name: column.values[column.ids[row]] for name, row in snapshot.row_of.items()}
    assert values == {"n1": None, "n2": "b"}
