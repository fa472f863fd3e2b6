from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from podium.framework.contract.post_filter import Bases
from podium.framework.contract.status import ScheduleError, Status, unschedulable
from podium.framework.contract.steps import run_unasked
from podium.framework.preemption import victim_cache
from podium.framework.preemption.candidates import Budgets, Candidate, Importance
from podium.framework.preemption.victim_cache import VictimCache
from podium.objects.core import Pod
from tests.builders import pod
from tests.unit.framework.rooms import DB, IMPORTANCE, NO_BUDGETS, NOW_S, budget, pod_on_node

INCOMING = pod("new", priority=100)


class Rooms:
    """Nodes with room for nobody beside the incoming pod. Implements `NodesDryRun`; remembers which rows were tried."""

    def __init__(self, *pods: Pod) -> None:
        self.on: list[Mapping[str, Pod]] = [{pod.uid: pod} for pod in pods]
        self.promised: dict[int, tuple[Pod, ...]] = {}
        self.tried: list[int] = []
        self.broken = False

    def name(self, row: int) -> str:
        return f"n{row}"

    def bases(self, rows: Sequence[int]) -> Bases:
        return [None for _ in rows], [self.on[row] for row in rows], [self.promised.get(row, ()) for row in rows]

    def pods(self, row: int) -> Mapping[str, Pod]:
        return self.on[row]

    def usage_of(self, rows: Iterable[int], pods: Iterable[Pod]) -> Any:
        return np.ones((1, len(list(pods))), np.int64)

    def start(self, rows: Any, usage: Any) -> None:
        pass

    def add(self, rows: Any, usage: Any) -> None:
        pass

    def remove(self, rows: Any, usage: Any) -> None:
        pass

    def statuses(self, rows: Any) -> Mapping[int, Status]:
        self.tried += rows.tolist()
        if self.broken:
            raise ScheduleError("broken")
        return {}

    def fits(self, rows: Any) -> Any:
        return np.zeros(len(rows), np.bool_)


def tries(
    victim_cache: VictimCache,
    rooms: Rooms,
    *,
    incoming: Pod = INCOMING,
    budgets: Budgets = NO_BUDGETS,
    importance: Importance = IMPORTANCE,
) -> list[int]:
    """The rows that have to be tried for a pod that wants to know of all."""
    rooms.tried.clear()
    selections = run_unasked(victim_cache.select_victims(rooms, range(len(rooms.on)), incoming, budgets, importance))
    for row, selection in enumerate(selections):
        if not rooms.broken:
            assert isinstance(selection, Candidate)
            assert selection.victims == tuple(rooms.on[row].values())
    return list(rooms.tried)


@pytest.fixture
def rooms() -> Rooms:
    return Rooms(pod_on_node("a", 1, **DB), pod_on_node("b", 1))


def test_a_node_is_tried_once_for_pods_of_one_spec(rooms: Rooms) -> None:
    victim_cache = VictimCache()
    assert tries(victim_cache, rooms) == [0, 1]
    assert tries(victim_cache, rooms, incoming=pod("next", priority=100)) == []
    assert tries(victim_cache, rooms, incoming=pod("other", priority=100, cpu="2")) == [0, 1]


def test_a_node_is_tried_again_when_its_pods_have_changed(rooms: Rooms) -> None:
    victim_cache = VictimCache()
    tries(victim_cache, rooms)
    rooms.on[1] = dict(rooms.on[1])
    assert tries(victim_cache, rooms) == [1]
    assert tries(victim_cache, rooms) == []


def test_a_node_is_tried_again_when_it_is_promised_to_others(rooms: Rooms) -> None:
    victim_cache, first = VictimCache(), pod("first", priority=100)
    for promised, rows_tried in [((), [0, 1]), ((first,), [1]), ((first,), []), ((first, INCOMING), [1]), ((), [1])]:
        rooms.promised[1] = promised
        assert tries(victim_cache, rooms) == rows_tried


def test_all_nodes_are_tried_again_when_a_budget_has_changed(rooms: Rooms) -> None:
    victim_cache = VictimCache()
    for disruptions in (1, 0):
        assert tries(victim_cache, rooms, budgets=Budgets([budget("b", disruptions)])) == [0, 1]
        assert tries(victim_cache, rooms, budgets=Budgets([budget("b", disruptions)])) == []


def test_an_error_is_not_kept(rooms: Rooms) -> None:
    victim_cache = VictimCache()
    rooms.broken = True
    [first, _] = run_unasked(victim_cache.select_victims(rooms, [0, 1], INCOMING, NO_BUDGETS, IMPORTANCE))
    assert isinstance(first, Status)
    assert first.message == "broken"
    rooms.broken = False
    assert tries(victim_cache, rooms) == [0, 1]


def test_what_changes_as_time_goes_by_is_not_kept() -> None:
    rooms, victim_cache = Rooms(pod_on_node("tomorrow", 1, "2026-01-02T00:00:00Z")), VictimCache()
    assert tries(victim_cache, rooms) == tries(victim_cache, rooms) == [0]
    assert tries(victim_cache, rooms, importance=Importance(NOW_S + 2 * 86400)) == [0]
    assert tries(victim_cache, rooms, importance=Importance(NOW_S + 2 * 86400)) == []


def test_only_the_latest_specs_are_remembered(rooms: Rooms) -> None:
    victim_cache = VictimCache()
    for cpus in range(1, 10):
        tries(victim_cache, rooms, incoming=pod("new", priority=100, cpu=str(cpus)))
    assert tries(victim_cache, rooms, incoming=pod("new", priority=100, cpu="9")) == []
    assert tries(victim_cache, rooms, incoming=pod("new", priority=100, cpu="1")) == [0, 1]


def test_a_pod_that_plugins_can_tell_from_others_of_its_spec_learns_nothing_from_them(rooms: Rooms) -> None:
    victim_cache = VictimCache()
    assert tries(victim_cache, rooms) == [0, 1]
    assert tries(victim_cache, rooms, incoming=pod("new", priority=100, node="n1")) == [0, 1]


def test_rejections_are_kept_too(rooms: Rooms) -> None:
    class Full(Rooms):
        def statuses(self, rows: Any) -> Mapping[int, Status]:
            super().statuses(rows)
            return dict.fromkeys(rows.tolist(), unschedulable("full"))

    full, victim_cache = Full(pod_on_node("a", 1)), VictimCache()
    for _ in range(2):
        selections = run_unasked(victim_cache.select_victims(full, [0], INCOMING, NO_BUDGETS, IMPORTANCE))
        assert selections == [unschedulable("full")]
    assert full.tried == [0]


def test_it_pauses_when_so_many_pods_have_been_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(victim_cache, "_PODS_AT_ONCE", 2)
    rooms, cache = Rooms(*(pod_on_node(f"p{number}", 1) for number in range(5))), VictimCache()

    def pauses() -> int:
        return len(list(cache.select_victims(rooms, range(5), INCOMING, NO_BUDGETS, IMPORTANCE)))

    assert (pauses(), rooms.tried) == (3, [0, 1, 2, 3, 4])
    assert pauses() == 0
    rooms.on[4] = dict(rooms.on[4])
    assert pauses() == 1
    assert tries(cache, rooms) == []
