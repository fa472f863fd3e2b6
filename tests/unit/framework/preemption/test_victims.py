from __future__ import annotations

from typing import Any

from podium.framework.contract.status import Code, PluginError, Status, unresolvable
from podium.framework.preemption.candidates import Budgets, Candidate, Importance
from podium.framework.preemption.victims import select_victims
from podium.objects.core import Pod
from tests.builders import pod
from tests.unit.framework.rooms import DB, IMPORTANCE, NO_BUDGETS, NOW_S, TOO_FULL, Room, budget, pod_on_node


def select(room: Any, budgets: Budgets = NO_BUDGETS, priority: int = 100) -> Any:
    return select_victims(room, pod("new", priority=priority), budgets, IMPORTANCE)


def names(candidate: Candidate) -> list[str]:
    return [victim.metadata.name for victim in candidate.victims]


# ---------------------------------------------------------------- victims on a node


def test_only_pods_of_lower_priority_go():
    room = Room(pod_on_node("a", 100), pod_on_node("b", 99), pod_on_node("c", 101), room=2)
    assert names(select(room)) == ["b"]


def test_pods_that_are_spared_stay_whatever_their_priority():
    room = Room(pod_on_node("a", 1), pod_on_node("b", 2), room=1)
    incoming, sparing = pod("new", priority=100), Importance(NOW_S, lambda candidate: candidate.priority == 1)
    assert names(select_victims(room, incoming, NO_BUDGETS, sparing)) == ["b"]
    sparing = Importance(NOW_S, lambda _: True)
    assert select_victims(room, incoming, NO_BUDGETS, sparing) == unresolvable(
        "No preemption victims found for incoming pod"
    )


def test_without_pods_of_lower_priority_the_node_is_not_tried():
    room = Room(pod_on_node("a", 100), room=0)
    assert select(room) == unresolvable("No preemption victims found for incoming pod")
    assert room.story == []


def test_where_the_pod_does_not_fit_even_without_them_its_status_counts():
    room = Room(pod_on_node("a", 1), pod_on_node("b", 100), room=0)
    assert select(room) == TOO_FULL


def test_the_most_important_are_let_stay_first():
    room = Room(pod_on_node("low", 1), pod_on_node("high", 9), pod_on_node("middle", 5), room=1)
    assert names(select(room)) == ["middle", "low"]
    assert room.story == ["-low", "-high", "-middle", "+high", "+middle", "-middle", "+low", "-low"]


def test_a_less_important_pod_may_stay_where_a_more_important_one_is_in_the_way():
    class Heavy(Room):
        def status(self) -> Status | None:
            return TOO_FULL if any(pod.metadata.name == "heavy" for pod in self.node.pods) else None

    assert names(select(Heavy(pod_on_node("heavy", 9), pod_on_node("light", 1), room=0))) == ["heavy"]


def test_among_equals_the_one_that_has_run_longest_stays():
    pods = [
        pod_on_node("new", 1),
        pod_on_node("young", 1, "2025-06-01T00:00:00Z"),
        pod_on_node("old", 1, "2025-01-01T00:00:00Z"),
    ]
    assert [pod.metadata.name for pod in IMPORTANCE.order(pods)] == ["old", "young", "new"]
    assert names(select(Room(*pods, room=1))) == ["young", "new"]


def test_among_those_that_started_together_the_order_on_the_node_decides():
    assert names(select(Room(pod_on_node("a", 1), pod_on_node("b", 1), pod_on_node("c", 1), room=1))) == ["b", "c"]


def test_a_start_that_cannot_be_read_counts_as_now():
    assert IMPORTANCE.started_s(pod_on_node("a", 1, "yesterday")) == NOW_S


def test_a_node_without_victims_is_an_error():
    status = select(Room(pod_on_node("a", 1), room=1))
    assert (status.code, status.message) == (Code.ERROR, 'expected at least one victim pod on node "n1"')


def test_a_plugin_that_cannot_follow_is_an_error():
    class Broken(Room):
        def remove(self, pod: Pod) -> None:
            raise PluginError("lost count")

    status = select(Broken(pod_on_node("a", 1), room=0))
    assert (status.code, status.message) == (Code.ERROR, "lost count")


def test_pods_whose_going_violates_a_budget_are_let_stay_first():
    room = Room(pod_on_node("web", 9), pod_on_node("db", 1, **DB), room=1)
    candidate = select(room, Budgets([budget("b", 0)]))
    assert (names(candidate), candidate.violations) == (["web"], 0)


def test_violations_are_counted_and_victims_are_in_order_of_importance():
    room = Room(pod_on_node("web", 9), pod_on_node("db-1", 5, **DB), pod_on_node("db-2", 1, **DB), room=0)
    candidate = select(room, Budgets([budget("b", 1)]))
    assert (names(candidate), candidate.violations) == (["web", "db-1", "db-2"], 1)
