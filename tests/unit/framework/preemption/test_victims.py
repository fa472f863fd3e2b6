from __future__ import annotations

from typing import Any

from podium.framework.contract.status import Code, PluginError, Status, unresolvable
from podium.framework.preemption.candidates import Budgets, Candidate, Importance
from podium.framework.preemption.victims import select_victims
from podium.objects.core import Pod
from tests.builders import pod
from tests.unit.framework.rooms import DB, IMPORTANCE, NO_BUDGETS, NOW_S, TOO_FULL, Room, budget, placed


def selected(room: Any, budgets: Budgets = NO_BUDGETS, priority: int = 100) -> Any:
    return select_victims(room, pod("new", priority=priority), budgets, IMPORTANCE)


def names(candidate: Candidate) -> list[str]:
    return [victim.metadata.name for victim in candidate.victims]


# ---------------------------------------------------------------- victims on a node


def test_only_pods_of_lower_priority_go():
    room = Room(placed("a", 100), placed("b", 99), placed("c", 101), room=2)
    assert names(selected(room)) == ["b"]


def test_pods_that_are_spared_stay_whatever_their_priority():
    room = Room(placed("a", 1), placed("b", 2), room=1)
    incoming, sparing = pod("new", priority=100), Importance(NOW_S, lambda each: each.priority == 1)
    assert names(select_victims(room, incoming, NO_BUDGETS, sparing)) == ["b"]
    sparing = Importance(NOW_S, lambda _: True)
    assert select_victims(room, incoming, NO_BUDGETS, sparing) == unresolvable(
        "No preemption victims found for incoming pod"
    )


def test_without_pods_of_lower_priority_the_node_is_not_tried():
    room = Room(placed("a", 100), room=0)
    assert selected(room) == unresolvable("No preemption victims found for incoming pod")
    assert room.story == []


def test_where_the_pod_does_not_fit_even_without_them_its_status_counts():
    room = Room(placed("a", 1), placed("b", 100), room=0)
    assert selected(room) == TOO_FULL


def test_the_most_important_are_let_stay_first():
    room = Room(placed("low", 1), placed("high", 9), placed("middle", 5), room=1)
    assert names(selected(room)) == ["middle", "low"]
    assert room.story == ["-low", "-high", "-middle", "+high", "+middle", "-middle", "+low", "-low"]


def test_a_less_important_pod_may_stay_where_a_more_important_one_is_in_the_way():
    class Heavy(Room):
        def status(self) -> Status | None:
            return TOO_FULL if any(each.metadata.name == "heavy" for each in self.node.pods) else None

    assert names(selected(Heavy(placed("heavy", 9), placed("light", 1), room=0))) == ["heavy"]


def test_among_equals_the_one_that_has_run_longest_stays():
    pods = [placed("new", 1), placed("young", 1, "2025-06-01T00:00:00Z"), placed("old", 1, "2025-01-01T00:00:00Z")]
    assert [each.metadata.name for each in IMPORTANCE.order(pods)] == ["old", "young", "new"]
    assert names(selected(Room(*pods, room=1))) == ["young", "new"]


def test_among_those_that_started_together_the_order_on_the_node_decides():
    assert names(selected(Room(placed("a", 1), placed("b", 1), placed("c", 1), room=1))) == ["b", "c"]


def test_a_start_that_cannot_be_read_counts_as_now():
    assert IMPORTANCE.started_s(placed("a", 1, "yesterday")) == NOW_S


def test_a_node_without_victims_is_an_error():
    status = selected(Room(placed("a", 1), room=1))
    assert (status.code, status.message) == (Code.ERROR, 'expected at least one victim pod on node "n1"')


def test_a_plugin_that_cannot_follow_is_an_error():
    class Broken(Room):
        def remove(self, pod: Pod) -> None:
            raise PluginError("lost count")

    status = selected(Broken(placed("a", 1), room=0))
    assert (status.code, status.message) == (Code.ERROR, "lost count")


def test_pods_whose_going_violates_a_budget_are_let_stay_first():
    room = Room(placed("web", 9), placed("db", 1, **DB), room=1)
    found = selected(room, Budgets([budget("b", 0)]))
    assert (names(found), found.violations) == (["web"], 0)


def test_violations_are_counted_and_victims_are_in_order_of_importance():
    room = Room(placed("web", 9), placed("db-1", 5, **DB), placed("db-2", 1, **DB), room=0)
    found = selected(room, Budgets([budget("b", 1)]))
    assert (names(found), found.violations) == (["web", "db-1", "db-2"], 1)
