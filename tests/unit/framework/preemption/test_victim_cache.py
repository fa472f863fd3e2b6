from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from podium.framework.contract.status import ScheduleError, Status, unschedulable
from podium.framework.contract.steps import run_unasked
from podium.framework.cycle.nominated_pods import Nomination, RowsOfNominations
from podium.framework.preemption import victim_cache
from podium.framework.preemption.candidates import Budgets, Candidate, Importance
from podium.framework.preemption.victim_cache import Stretch, VictimCache
from podium.framework.preemption.victims import costs_of_selections
from podium.lib.change_log import ChangeLog
from podium.objects.core import Pod
from tests.builders import pod
from tests.unit.framework.rooms import DB, IMPORTANCE, NO_BUDGETS, NOW_S, budget, pod_on_node

INCOMING = pod("new", priority=100)


class Nodes:
    """The part of a snapshot that the cache follows."""

    def __init__(self, pods: list[Mapping[str, Pod]]) -> None:
        self.pods = pods
        self.nodes = [object() for _ in pods]
        self.node_changes: ChangeLog[int] = ChangeLog()
        self.usage_changes: ChangeLog[int] = ChangeLog()
        self.pod_updates: ChangeLog[int] = ChangeLog()


class Rooms:
    """Nodes with room for nobody beside the incoming pod. Implements `NodesDryRun`; remembers which rows were tried."""

    def __init__(self, *pods: Pod) -> None:
        self.on: list[Mapping[str, Pod]] = [{pod.uid: pod} for pod in pods]
        self.snapshot: Any = Nodes(self.on)
        self.nominations = RowsOfNominations({})
        self.tried: list[int] = []
        self.broken = False

    def replace_pods(self, row: int) -> None:
        self.on[row] = dict(self.on[row])
        self.snapshot.pod_updates.append(row)

    def name(self, row: int) -> str:
        return f"n{row}"

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
    rows = np.arange(len(rooms.on))
    selections = run_unasked(victim_cache.select_victims(rooms, rows, incoming, budgets, importance, Stretch()))
    assert selections.costs.tolist() == costs_of_selections(selections.answers).tolist()
    for row, selection in enumerate(selections.answers):
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
    rooms.replace_pods(1)
    assert tries(victim_cache, rooms) == [1]
    assert tries(victim_cache, rooms) == []


def test_a_node_is_tried_again_when_it_has_changed_itself(rooms: Rooms) -> None:
    victim_cache = VictimCache()
    tries(victim_cache, rooms)
    rooms.snapshot.nodes[0] = object()
    rooms.snapshot.node_changes.append(0)
    assert tries(victim_cache, rooms) == [0]


def test_in_another_cluster_only_the_nodes_that_differ_are_tried_again(rooms: Rooms) -> None:
    victim_cache, original = VictimCache(), rooms.snapshot
    tries(victim_cache, rooms)
    rooms.snapshot = Nodes(rooms.on)
    rooms.snapshot.nodes = list(original.nodes)
    assert tries(victim_cache, rooms) == []
    rooms.on[1] = dict(rooms.on[1])
    rooms.snapshot = original
    assert tries(victim_cache, rooms) == [1]


def test_results_are_not_kept_for_another_cluster_that_was_asked_about_meanwhile(
    rooms: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.framework.preemption.victim_cache._PODS_AT_ONCE", 1)
    victim_cache, world = VictimCache(), Rooms(pod_on_node("c", 1), pod_on_node("d", 1))
    steps = victim_cache.select_victims(rooms, np.arange(2), INCOMING, NO_BUDGETS, IMPORTANCE, Stretch())
    world.snapshot.pods[0] = rooms.on[0]
    next(steps)
    tries(victim_cache, world)
    assert [answer.victims for answer in run_unasked(steps).answers] == [tuple(on.values()) for on in rooms.on]
    assert tries(victim_cache, rooms) == [0, 1]


def test_a_node_is_tried_again_when_it_is_promised_to_others(rooms: Rooms) -> None:
    victim_cache, first = VictimCache(), pod("first", priority=100)
    for promised, rows_tried in [((), [0, 1]), ((first,), [1]), ((first, INCOMING), [1]), ((), [1])]:
        nominations = tuple(Nomination.of(nominated_pod, "n1") for nominated_pod in promised)
        rooms.nominations = RowsOfNominations({1: nominations} if nominations else {})
        assert tries(victim_cache, rooms) == rows_tried


def test_all_nodes_are_tried_again_when_a_budget_has_changed(rooms: Rooms) -> None:
    victim_cache = VictimCache()
    for disruptions in (1, 0):
        assert tries(victim_cache, rooms, budgets=Budgets([budget("b", disruptions)])) == [0, 1]
        assert tries(victim_cache, rooms, budgets=Budgets([budget("b", disruptions)])) == []


def test_an_error_is_not_kept(rooms: Rooms) -> None:
    victim_cache = VictimCache()
    rooms.broken = True
    rows = np.arange(2)
    [first, _] = run_unasked(
        victim_cache.select_victims(rooms, rows, INCOMING, NO_BUDGETS, IMPORTANCE, Stretch())
    ).answers
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
        steps = victim_cache.select_victims(full, np.arange(1), INCOMING, NO_BUDGETS, IMPORTANCE, Stretch())
        assert run_unasked(steps).answers == [unschedulable("full")]
    assert full.tried == [0]


def test_it_pauses_before_work_that_would_make_the_stretch_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(victim_cache, "_PODS_AT_ONCE", 2)
    rooms, cache = Rooms(*(pod_on_node(f"p{number}", 1) for number in range(5))), VictimCache()

    def pauses(stretch: Stretch) -> int:
        return len(list(cache.select_victims(rooms, np.arange(5), INCOMING, NO_BUDGETS, IMPORTANCE, stretch)))

    stretch = Stretch()
    assert (pauses(stretch), rooms.tried) == (2, [0, 1, 2, 3, 4])
    assert pauses(stretch) == 0
    # The stretch has one pod since its last pause, gets another, and a third is too many.
    rooms.replace_pods(4)
    assert pauses(stretch) == 0
    rooms.replace_pods(3)
    assert pauses(stretch) == 1
    # A search that begins has not tried any.
    rooms.replace_pods(2)
    assert pauses(Stretch()) == 0
    assert tries(cache, rooms) == []
