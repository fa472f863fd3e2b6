from __future__ import annotations

from typing import Any

from podium.framework.preemption.lowest_priorities import LowestPriorities
from tests.builders import node, pod, snapshot_of


class LookedAt(dict[str, Any]):
    looks = 0

    def values(self) -> Any:
        type(self).looks += 1
        return super().values()


def test_each_row_has_the_lowest_priority_of_its_pods():
    snapshot = snapshot_of(
        node("n1"), node("n2"), pod("a", priority=5, node="n1"), pod("b", priority=-2, node="n1"), pod("c", node="n2")
    )
    assert LowestPriorities().of(snapshot)[[snapshot.row_of["n1"], snapshot.row_of["n2"]]].tolist() == [-2, 0]


def test_a_row_without_pods_has_a_higher_priority_than_any_pod():
    assert LowestPriorities().of(snapshot_of(node("n1")))[0] > 2**31


def test_only_rows_whose_pods_have_changed_are_looked_at_again():
    snapshot, lowest = snapshot_of(node("n1"), node("n2"), pod("a", priority=5, node="n1")), LowestPriorities()
    row, second_row = snapshot.row_of["n1"], snapshot.row_of["n2"]
    snapshot.pods[row], snapshot.pods[second_row] = LookedAt(snapshot.pods[row]), LookedAt()
    lowest.of(snapshot)
    assert LookedAt.looks == 2
    snapshot.remove_pod(row, next(iter(snapshot.pods[row])))
    assert (lowest.of(snapshot)[[row, second_row]] > 2**31).all()
    assert LookedAt.looks == 2
    snapshot.put_node(node("n3"), {}, 110)
    assert lowest.of(snapshot)[snapshot.row_of["n3"]] > 2**31


def test_another_snapshot_is_looked_at_by_itself():
    full, empty, lowest = snapshot_of(node("n1"), pod("a", node="n1")), snapshot_of(node("n1")), LowestPriorities()
    assert [int(lowest.of(snapshot)[0]) == 0 for snapshot in (full, empty, full)] == [True, False, True]
