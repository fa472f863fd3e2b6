from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from podium.framework.preemption import Budgets, Candidate, Importance, choose, dry_run, errors_of, select_victims
from podium.framework.status import Code, PluginError, Status, error_status, unresolvable, unschedulable
from podium.kube.objects import Pod
from podium.kube.workload_objects import PodDisruptionBudget
from tests.builders import pod

NOW_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z
IMPORTANCE = Importance(NOW_S)
NO_BUDGETS = Budgets(())
TOO_FULL = unschedulable("too full")


def placed(name: str, priority: int = 0, started: str | None = None, **fields: Any) -> Pod:
    return pod(name, priority=priority, node="n1", status={"startTime": started}, **fields)


def budget(
    name: str, allowed: int, *, selector: Any = None, disrupted: tuple[str, ...] = (), namespace: str = "default"
):
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"app": "db"}} if selector is None else selector},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
        PodDisruptionBudget,
    )


class Node:
    def __init__(self, name: str, pods: list[Pod]) -> None:
        self.name, self.pods = name, pods


class Room:
    """A node with room for so many pods besides the incoming one. Implements `Trial`."""

    def __init__(self, *pods: Pod, room: int, name: str = "n1", otherwise: Status | None = TOO_FULL) -> None:
        self.node = Node(name, list(pods))
        self.room, self.otherwise = room, otherwise
        self.story: list[str] = []

    def remove(self, pod: Pod) -> None:
        self.story.append(f"-{pod.metadata.name}")
        self.node.pods = [each for each in self.node.pods if each.uid != pod.uid]

    def add(self, pod: Pod) -> None:
        self.story.append(f"+{pod.metadata.name}")
        self.node.pods = [*self.node.pods, pod]

    def status(self) -> Status | None:
        return None if len(self.node.pods) <= self.room else self.otherwise


class Rooms:
    """Implements `FilteredNodes` as far as trials go."""

    def __init__(self, *rooms: Room) -> None:
        self.rooms, self.tried = rooms, []

    @contextmanager
    def trial(self, row: int) -> Iterator[Any]:
        self.tried.append(row)
        yield self.rooms[row]


def selected(room: Any, budgets: Budgets = NO_BUDGETS, priority: int = 100) -> Any:
    return select_victims(room, pod("new", priority=priority), budgets, IMPORTANCE)


def names(candidate: Candidate) -> list[str]:
    return [victim.metadata.name for victim in candidate.victims]


# ---------------------------------------------------------------- victims on a node


def test_only_pods_of_lower_priority_go():
    room = Room(placed("a", 100), placed("b", 99), placed("c", 101), room=2)
    assert names(selected(room)) == ["b"]


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
    assert [each.metadata.name for each in IMPORTANCE.sorted(pods)] == ["old", "young", "new"]
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


# ---------------------------------------------------------------- budgets

DB = {"labels": {"app": "db"}}


def test_pods_whose_going_violates_a_budget_are_let_stay_first():
    room = Room(placed("web", 9), placed("db", 1, **DB), room=1)
    found = selected(room, Budgets([budget("b", 0)]))
    assert (names(found), found.violations) == (["web"], 0)


def test_violations_are_counted_and_victims_are_in_order_of_importance():
    room = Room(placed("web", 9), placed("db-1", 5, **DB), placed("db-2", 1, **DB), room=0)
    found = selected(room, Budgets([budget("b", 1)]))
    assert (names(found), found.violations) == (["web", "db-1", "db-2"], 1)


def test_a_budget_lets_as_many_go_as_it_allows_the_most_important_first():
    pods = [placed(f"db-{index}", **DB) for index in range(4)]
    violating, others = Budgets([budget("b", 3)]).split(pods)
    assert (violating, others) == (pods[3:], pods[:3])


def test_each_split_begins_anew():
    budgets = Budgets([budget("b", 1)])
    pods = [placed("db", **DB)]
    assert budgets.split(pods) == budgets.split(pods) == ([], pods)


def test_every_budget_of_a_pod_is_used_up():
    one, two = placed("one", **DB), placed("two", labels={"app": "db", "tier": "back"})
    tier = budget("tier", 0, selector={"matchLabels": {"tier": "back"}})
    assert Budgets([tier, budget("db", 1)]).split([two, one]) == ([two, one], [])


@pytest.mark.parametrize(
    "other",
    [
        budget("elsewhere", 0, namespace="other"),
        budget("empty", 0, selector={}),
        budget("invalid", 0, selector={"matchExpressions": [{"key": "app", "operator": "Like", "values": ["db"]}]}),
        budget("not-mine", 0, selector={"matchLabels": {"app": "web"}}),
        budget("counted", 0, disrupted=("db",)),
    ],
)
def test_budgets_that_do_not_protect_the_pod(other: PodDisruptionBudget):
    pods = [placed("db", **DB)]
    assert Budgets([other]).split(pods) == ([], pods)


def test_a_budget_without_selector_protects_nobody():
    bare = msgspec.convert({"metadata": {"name": "b", "namespace": "default"}}, PodDisruptionBudget)
    assert Budgets([bare]).split([placed("db", **DB)])[0] == []


def test_a_pod_without_labels_is_protected_by_nobody():
    everyone = budget("b", 0, selector={"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]})
    assert Budgets([everyone]).split([placed("bare")])[0] == []


# ---------------------------------------------------------------- which nodes are tried


def room_on(name: str, *, fits: bool = True, protected: bool = False) -> Room:
    labels = {"app": "db"} if protected else {}
    return Room(placed(f"on-{name}", 1, labels=labels), room=0 if fits else -1, name=name)


def tried(rooms: Rooms, wanted: int, budgets: Budgets = NO_BUDGETS) -> tuple[list[str], dict[int, Status]]:
    found = dry_run(rooms, range(len(rooms.rooms)), wanted, pod("new", priority=100), budgets, IMPORTANCE)
    return [candidate.node_name for candidate in found.candidates], found.rejected


def test_it_stops_with_as_many_candidates_as_wanted():
    rooms = Rooms(*(room_on(f"n{index}") for index in range(5)))
    assert tried(rooms, 2) == (["n0", "n1"], {})
    assert rooms.tried == [0, 1]


def test_nodes_that_will_not_do_are_passed_over_and_remembered():
    rooms = Rooms(room_on("n0", fits=False), room_on("n1"), room_on("n2"))
    assert tried(rooms, 1) == (["n1"], {0: TOO_FULL})


def test_it_goes_on_until_one_candidate_violates_no_budget():
    rooms = Rooms(*(room_on(f"n{index}", protected=index < 3) for index in range(5)))
    assert tried(rooms, 2, Budgets([budget("b", 0)])) == (["n3", "n0", "n1"], {})
    assert rooms.tried == [0, 1, 2, 3]


def test_candidates_that_violate_come_last():
    rooms = Rooms(room_on("n0", protected=True), room_on("n1"))
    assert tried(rooms, 2, Budgets([budget("b", 0)]))[0] == ["n1", "n0"]


# ---------------------------------------------------------------- which candidate is best


def candidate(name: str, *priorities: int, violations: int = 0, started: str = "2025-01-01T00:00:00Z") -> Candidate:
    victims = [placed(f"{name}-{index}", priority, started) for index, priority in enumerate(priorities)]
    return Candidate(name, tuple(victims), violations)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (candidate("fewer violations", 9, 9), candidate("b", 1, violations=1)),
        (candidate("less important", 5, 5, 5), candidate("b", 6)),
        (candidate("smaller sum", 5, 1), candidate("b", 5, 2)),
        (candidate("fewer victims", 5), candidate("b", 5, 5)),
        (candidate("fewer, though negative", -5), candidate("b", -5, -5)),
        (candidate("younger", 5, started="2025-03-01T00:00:00Z"), candidate("b", 5)),
    ],
)
def test_what_makes_a_candidate_better(better: Candidate, worse: Candidate):
    assert choose([worse, better], IMPORTANCE) is better
    assert choose([better, worse], IMPORTANCE) is better


def test_the_start_that_counts_is_the_first_among_the_most_important():
    late_low = Candidate("a", (placed("a", 5, "2025-02-01T00:00:00Z"), placed("b", 1, "2024-01-01T00:00:00Z")), 0)
    early_high = Candidate("b", (placed("a", 5, "2025-01-01T00:00:00Z"), placed("b", 1, "2025-01-01T00:00:00Z")), 0)
    assert choose([early_high, late_low], IMPORTANCE) is late_low


def test_among_equals_the_first_is_chosen():
    first, second = candidate("a", 5), candidate("b", 5)
    assert choose([first, second], IMPORTANCE) is first
    assert choose([second, first], IMPORTANCE) is second


@pytest.mark.parametrize(
    ("statuses", "text"),
    [
        ([TOO_FULL], ""),
        ([error_status("a"), TOO_FULL], "a"),
        ([error_status("a"), error_status("a")], "a"),
        ([error_status("a"), error_status("b")], "[a, b]"),
    ],
)
def test_errors_in_one_line(statuses: list[Status], text: str):
    assert errors_of(statuses) == text
