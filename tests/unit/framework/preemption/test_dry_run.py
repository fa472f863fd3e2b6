from __future__ import annotations

from random import Random

import numpy as np
import pytest

from podium.framework.contract.status import Status
from podium.framework.contract.steps import PAUSE, Steps, run_unasked
from podium.framework.preemption.candidates import Budgets, Candidate, Candidates, Importance
from podium.framework.preemption.dry_run import Collection, DryRunResult, dry_run_preemption
from podium.framework.preemption.victim_cache import VictimCache
from podium.framework.preemption.victims import NO_VICTIMS, Selections
from tests.builders import pod
from tests.unit.framework.rooms import IMPORTANCE, NO_BUDGETS, NOW_S, TOO_FULL, Room, Rooms, budget, pod_on_node


def room_on(name: str, *, fits: bool = True, protected: bool = False) -> Room:
    labels = {"app": "db"} if protected else {}
    return Room(pod_on_node(f"on-{name}", 1, labels=labels), room=0 if fits else -1, name=name)


def stepwise(rooms: Rooms, candidates_max: int, budgets: Budgets = NO_BUDGETS) -> Steps[DryRunResult]:
    rows, new = np.arange(len(rooms.rooms)), pod("new", priority=100)
    return dry_run_preemption(rooms, rows, candidates_max, new, budgets, IMPORTANCE, VictimCache())


def try_rows(rooms: Rooms, candidates_max: int, budgets: Budgets = NO_BUDGETS) -> tuple[list[str], dict[int, Status]]:
    dry_run = run_unasked(stepwise(rooms, candidates_max, budgets))
    return [candidate.node_name for candidate in dry_run.candidates], dry_run.rejections


def test_it_stops_with_as_many_candidates_as_wanted():
    rooms = Rooms(*(room_on(f"n{index}") for index in range(5)))
    assert try_rows(rooms, 2) == (["n0", "n1"], {})
    assert rooms.tried == [0, 1]


def test_nodes_that_will_not_do_are_passed_over_and_remembered():
    rooms = Rooms(room_on("n0", fits=False), room_on("n1"), room_on("n2"))
    assert try_rows(rooms, 1) == (["n1"], {0: TOO_FULL})


def test_it_goes_on_until_one_candidate_violates_no_budget():
    rooms = Rooms(*(room_on(f"n{index}", protected=index < 3) for index in range(5)))
    assert try_rows(rooms, 2, Budgets([budget("b", 0)])) == (["n3", "n0", "n1"], {})
    assert rooms.tried == [0, 1, 2, 3]


def test_candidates_that_violate_come_last():
    rooms = Rooms(room_on("n0", protected=True), room_on("n1"))
    assert try_rows(rooms, 2, Budgets([budget("b", 0)]))[0] == ["n1", "n0"]


def test_nodes_without_pods_of_lower_priority_are_not_tried():
    rooms = Rooms(Room(pod_on_node("equal", 100), room=0, name="n0"), Room(room=0, name="n1"), room_on("n2"))
    assert try_rows(rooms, 1) == (["n2"], {0: NO_VICTIMS, 1: NO_VICTIMS})
    assert rooms.tried == [2]


def test_a_node_whose_pods_of_lower_priority_are_protected_is_not_tried():
    rooms, rows = Rooms(room_on("n0")), np.arange(1)
    spared = Importance(NOW_S, lambda _: True)
    steps = dry_run_preemption(rooms, rows, 1, pod("new", priority=100), NO_BUDGETS, spared, VictimCache())
    assert contents(run_unasked(steps)) == ([], {0: NO_VICTIMS})
    assert rooms.tried == []


def test_it_pauses_after_each_node_that_is_tried_by_itself():
    rooms = Rooms(*(room_on(f"n{index}") for index in range(5)))
    assert list(stepwise(rooms, 3)) == [PAUSE] * 3


def contents(result: DryRunResult) -> tuple[list[Candidate], dict[int, Status]]:
    return list(result.candidates), result.rejections


def collected_one_by_one(
    answers: list[list[Candidate | Status]], goal: int
) -> tuple[list[Candidate], dict[int, Status]]:
    """The result of a plain loop over all answers."""
    lists: dict[bool, list[Candidate]] = {False: [], True: []}
    rejections: dict[int, Status] = {}
    for row, answer in enumerate(answer for batch in answers for answer in batch):
        if isinstance(answer, Status):
            rejections[row] = answer
            continue
        candidates = lists[answer.violations > 0]
        if len(candidates) < goal:
            candidates.append(answer)
        if lists[False] and len(lists[False]) + len(lists[True]) >= goal:
            break
    return [*lists[False], *lists[True]], rejections


@pytest.mark.parametrize("seed", range(300))
def test_a_batch_is_collected_as_its_answers_one_by_one(seed: int) -> None:
    draws = Random(seed)
    goal, kinds = draws.randint(1, 12), draws.choice(["c", "cc s", "ccccv", "csv", "s", "cccs"])
    victim = pod("victim", priority=1)

    def answer(number: int) -> Candidate | Status:
        kind = draws.choice(kinds.replace(" ", ""))
        return TOO_FULL if kind == "s" else Candidate(f"n{number}", (victim,), int(kind == "v"))

    batches = [[answer(10 * index + place) for place in range(draws.randint(1, 8))] for index in range(4)]
    collection, first = Collection(goal), 0
    for batch in batches:
        if collection.add(np.arange(first, first + len(batch)), Selections.of(batch)):
            break
        first += len(batch)
    result = collection.result()
    assert contents(result) == collected_one_by_one(batches, goal)
    if result.candidates:
        assert result.candidates.cheapest(IMPORTANCE) is Candidates([*result.candidates]).cheapest(IMPORTANCE)
