"""The search for placements that upstream's way misses; `python -m tests.gangs` compares many more."""

from __future__ import annotations

from typing import Any

import pytest

from podium.config import PluginConfig
from podium.framework.contract.status import PluginError
from podium.framework.profile.plugin_args import typed_args
from podium.plugins.gang_scheduling import GangScheduling
from tests.gangs.cases import Case, check, decide, is_beyond_upstream, is_valid, nodes_of, placement_of

BEYOND = (17, 27, 66, 68, 79, 115)
"""Cases that only the search can place."""
HALVES = Case(
    [(4, [("whole", "a"), ("half", "a"), ("half", "a")])],
    [([("whole", 1), ("half", 1)], False)] * 2,
    [(1, 0), (1, 1)],
    2,
)
"""Kubernetes issue 138765: each pod prefers the whole device, and both fit if they take its halves."""


@pytest.mark.parametrize("seed", [*range(1, 21), *BEYOND])
def test_a_gang_is_placed_if_and_only_if_there_is_a_placement(seed: int) -> None:
    assert check(seed) == ""


def test_some_of_the_cases_need_the_search() -> None:
    assert all(is_beyond_upstream(seed) for seed in BEYOND)


def test_two_pods_take_the_halves_of_a_device_that_both_would_rather_have_whole() -> None:
    without, _ = decide(HALVES, 0)
    assert without.result == "unschedulable"
    decision, devices = decide(HALVES, 100)
    assert decision.result == "scheduled"
    assert nodes_of(decision) == ["n0", "n0"]
    assert not devices.is_in_flight("c0")
    assert is_valid(HALVES, *placement_of(HALVES, decision))
    assert devices.is_in_flight("c0")
    assert devices.is_in_flight("c1")


def test_a_search_that_ends_says_so_in_every_reason() -> None:
    decision, _ = decide(HALVES, 1)
    reason = "the search for a placement ended after 1 steps"
    assert decision.status is not None
    assert decision.status.message == (
        f"minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, {reason}, "
        "pod group preemption: No preemption victims found for incoming preemptor"
    )
    for member in decision.members:
        decision_of_member: Any = member.decision
        assert (
            reason
            in (decision_of_member.error if hasattr(decision_of_member, "error") else decision_of_member.status).message
        )


def test_a_search_that_is_complete_says_nothing() -> None:
    hopeless = Case([(4, [("whole", "a")])], HALVES.claims, HALVES.pods, 2)
    decision, devices = decide(hopeless, 1000)
    assert decision.status is not None
    assert "the search for a placement ended" not in decision.status.message
    assert not devices.is_in_flight("c0")


def test_pods_beyond_the_minimum_may_be_left_over() -> None:
    three = Case(HALVES.nodes, [*HALVES.claims, HALVES.claims[0]], [*HALVES.pods, (1, 2)], 2)
    decision, _ = decide(three, 1000)
    assert decision.result == "scheduled"
    assert sorted(nodes_of(decision)) == ["", "n0", "n0"]


@pytest.mark.parametrize("steps", [-1, "many", 10**8])
def test_wrong_numbers_of_steps_are_refused_by_field(steps: Any) -> None:
    with pytest.raises(PluginError, match=r"^args\.thorough_search_steps: expected "):
        typed_args(GangScheduling, {"thoroughSearchSteps": steps})


def test_args_are_off_by_default() -> None:
    assert typed_args(GangScheduling, None).thorough_search_steps == 0
    assert PluginConfig("GangScheduling").args is None
