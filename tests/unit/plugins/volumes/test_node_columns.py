from __future__ import annotations

import pytest

from podium.client.informer import Informer
from podium.objects.resource_types import CSI_NODES
from podium.objects.storage import CSINode
from podium.plugins.volumes.node_columns import NodeColumn, change_log_of
from tests.builders import cache_of, node
from tests.unit.plugins.clusters import Listed
from tests.unit.plugins.storage import csi_node


class NodeColumnBench:
    """Three nodes, what is said of them, and how often that has been looked at."""

    def __init__(self) -> None:
        self.informer: Informer[CSINode] = Informer(CSI_NODES, lambda name, error: pytest.fail(str(error)))
        self.cache = cache_of(node("n1"), node("n2"), node("n3"))
        self.asked: list[str] = []

    def drivers(self, name: str) -> int:
        self.asked.append(name)
        csi_node_found = self.informer.get(name)
        return 0 if csi_node_found is None else len(csi_node_found.spec.drivers)

    def column(self) -> NodeColumn[CSINode]:
        return NodeColumn(change_log_of(self.informer), lambda item: item.metadata.name, self.drivers)

    def by_name(self, column: NodeColumn[CSINode]) -> dict[str, int]:
        self.asked.clear()
        snapshot = self.cache.snapshot()
        numbers = column.over(snapshot)
        return {name: int(numbers[row]) for name, row in snapshot.row_of.items()}


def test_only_nodes_of_which_something_has_changed_are_looked_at_again() -> None:
    bench = NodeColumnBench()
    column = bench.column()
    assert bench.by_name(column) == {"n1": 0, "n2": 0, "n3": 0}
    bench.informer.put(csi_node("n2", {"a": 1, "b": 1}))
    bench.informer.put(csi_node("n9", {"a": 1}))
    assert bench.by_name(column) == {"n1": 0, "n2": 2, "n3": 0}
    assert bench.asked == ["n2"]
    bench.cache.remove_node("n2")
    bench.cache.put_node(node("n9"))
    assert bench.by_name(column) == {"n1": 0, "n3": 0, "n9": 1}
    assert set(bench.asked) == {"n9"}
    bench.by_name(column)
    assert bench.asked == []


def test_another_cluster_and_too_many_changes_begin_anew() -> None:
    bench = NodeColumnBench()
    column = bench.column()
    bench.by_name(column)
    for _ in range(5000):
        bench.informer.put(csi_node("n2", {"a": 1}))
        bench.informer.drop(csi_node("n2"))
    assert bench.by_name(column) == {"n1": 0, "n2": 0, "n3": 0}
    assert len(bench.asked) == 3
    bench.cache = NodeColumnBench().cache
    bench.by_name(column)
    assert len(bench.asked) == 3


def test_where_a_lister_does_not_tell_all_are_looked_at_each_time() -> None:
    bench = NodeColumnBench()
    column: NodeColumn[CSINode] = NodeColumn(change_log_of(Listed(())), lambda item: item.metadata.name, bench.drivers)
    for _ in range(2):
        bench.by_name(column)
        assert sorted(bench.asked) == ["n1", "n2", "n3"]
