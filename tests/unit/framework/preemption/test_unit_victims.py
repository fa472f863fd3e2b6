from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.framework.preemption.candidates import Candidate
from podium.framework.preemption.pod_groups import Unit
from podium.framework.preemption.unit_victims import UnitsByNode, select_units
from podium.framework.preemption.victims import NO_VICTIMS
from podium.objects.core import Pod
from tests.builders import node, pod, pod_group, snapshot_of
from tests.unit.framework.rooms import IMPORTANCE, NO_BUDGETS, TOO_FULL, Room

WHOLE = pod_group("whole", spec={"disruptionMode": {"all": {}}, "priority": 3})
SINGLE = pod_group("single", spec={"disruptionMode": {"single": {}}, "priority": 3})
GROUPS = {group.key: group for group in (WHOLE, SINGLE)}
INCOMING = pod("new", priority=5)


def below(incoming: Pod, *pods: Pod, protected: str = "") -> Sequence[Unit]:
    snapshot = snapshot_of(node("n1"), node("n2"), *pods)
    units = UnitsByNode(snapshot, GROUPS.get, IMPORTANCE, lambda each: each.metadata.name == protected)
    return units.below(incoming, snapshot.row_of["n1"])


def names(units: Sequence[Unit]) -> list[list[str]]:
    return [[each.metadata.name for each in unit.pods] for unit in units]


def running(name: str, on: str = "n1", **fields: Any) -> Pod:
    return pod(name, node=on, status={"startTime": "2026-01-01T00:00:00Z"}, **fields)


def test_a_group_leaves_as_a_whole_only_if_it_says_so() -> None:
    pods = [running("a", group="whole"), running("b", "n2", group="whole"), running("c", group="single")]
    assert sorted(names(below(INCOMING, *pods, running("d", "n2", group="single")))) == [["a", "b"], ["c"]]


def test_the_priority_of_a_groups_pod_is_its_groups() -> None:
    pods = [running("a", group="whole", priority=9), running("b", group="single", priority=9), running("c", priority=9)]
    assert sorted(names(below(INCOMING, *pods))) == [["a"], ["b"]]
    assert names(below(pod("new", priority=3), *pods)) == []


def test_one_protected_pod_protects_its_unit() -> None:
    pods = [running("a", group="whole"), running("b", "n2", group="whole"), running("c", group="single")]
    assert names(below(INCOMING, *pods, protected="b")) == [["c"]]


def test_all_pods_of_a_unit_are_victims_wherever_they_run() -> None:
    units = below(INCOMING, running("a", group="whole"), running("b", "n2", group="whole"), running("c"))
    room = Room(*(each for unit in units for each in unit.pods), room=1)
    chosen = select_units(room, units, NO_BUDGETS)
    assert isinstance(chosen, Candidate)
    # The more important group does not fit back as a whole, and so leaves room for the pod.
    assert [each.metadata.name for each in chosen.victims] == ["a", "b"]


def test_without_units_there_are_no_victims() -> None:
    assert select_units(Room(room=0), [], NO_BUDGETS) is NO_VICTIMS


def test_where_the_pod_does_not_fit_even_without_them_its_status_counts() -> None:
    units = below(INCOMING, running("a", group="whole"))
    assert select_units(Room(*units[0].pods, room=-1), units, NO_BUDGETS) == TOO_FULL
