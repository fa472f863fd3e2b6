"""A few of the cases that `python -m tests.make_room` tries. All searches are limited by steps, none by time."""

from __future__ import annotations

import pytest

from podium.insight.room.plan import Verdict
from tests.make_room.cases import (
    answer_for,
    any_cluster,
    check_carried_out,
    check_moves,
    check_recipe_carried_out,
    check_ruled_carried_out,
    check_ruled_moves,
    check_spread_carried_out,
    check_spread_moves,
)


@pytest.mark.parametrize("seed", range(1, 13))
def test_the_fewest_moves_are_those_of_brute_force(seed: int) -> None:
    checked = check_moves(seed, states_max=20_000)
    assert checked is None or checked.faults == []


@pytest.mark.parametrize("seed", [*range(1, 13), 68, 134])
def test_the_fewest_moves_for_devices_and_zones_are_those_of_brute_force(seed: int) -> None:
    checked = check_ruled_moves(seed, states_max=20_000)
    assert checked is None or checked.faults == []


@pytest.mark.parametrize("seed", range(1, 21))
def test_the_fewest_moves_for_topology_spread_are_those_of_brute_force(seed: int) -> None:
    checked = check_spread_moves(seed, states_max=20_000)
    assert checked is None or checked.faults == []


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_plan_for_topology_spread_is_carried_out(seed: int) -> None:
    assert check_spread_carried_out(seed).faults == []


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_plan_is_carried_out_without_a_violated_budget(seed: int) -> None:
    assert check_carried_out(seed, steps_max=20_000, sizes=(4,)).faults == []


@pytest.mark.parametrize("seed", [2, 3])
def test_a_plan_for_devices_is_carried_out(seed: int) -> None:
    checked = check_ruled_carried_out(seed)
    assert checked.faults == []
    assert checked.moves
    assert checked.devices


@pytest.mark.parametrize("number", [16, 31])
def test_a_plan_in_a_larger_cluster_is_carried_out(number: int) -> None:
    checked = check_recipe_carried_out(number, first=1, steps_max=20_000)
    assert checked is not None
    assert checked.faults == []
    assert checked.moves


def test_a_search_that_is_limited_by_its_steps_has_the_same_answer_again() -> None:
    cluster = any_cluster(3, (8,))
    answers = [answer_for(cluster, steps_max=10_000).as_dict() for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0]["verdict"] in {verdict.value for verdict in Verdict}
