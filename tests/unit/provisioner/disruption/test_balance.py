"""The policy Balanced."""

from __future__ import annotations

import math

import pytest

from podium.provisioner.disruption.balance import SCORE_MIN, Balance, PoolTotals, score
from podium.provisioner.disruption.consolidation import Command, NoCommand
from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.disruption.methods import alone, multi_node
from tests.unit.provisioner.clusters import CAPACITY_TYPE, Document, owned_by, pod, requirement
from tests.unit.provisioner.fleets import machine, node_pool, state_of

KEEP = {"karpenter.sh/do-not-disrupt": "true"}


@pytest.mark.parametrize(
    ("savings", "cost", "totals", "score_value", "approved"),
    [
        (10.0, 3.0, PoolTotals(100.0, 100.0), 3.33, True),
        (1.0, 2.0, PoolTotals(10.0, 10.0), 0.50, True),
        (1.0, 3.5, PoolTotals(10.0, 10.0), 0.29, False),
    ],
)
def test_the_share_of_savings_is_weighed_against_the_share_of_disruption(
    savings: float, cost: float, totals: PoolTotals, score_value: float, approved: bool
) -> None:
    share_score = score(savings, cost, totals)
    assert share_score == pytest.approx(score_value, abs=0.005)
    assert (share_score >= SCORE_MIN) is approved


def test_what_disrupts_nothing_is_always_worth_it() -> None:
    assert score(1.0, 0.0, PoolTotals(10.0, 10.0)) == math.inf


def balanced_state(*parts: Document | list[Document], policy: str = "Balanced") -> DisruptionState:
    pool = node_pool(policy=policy, requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")])
    return state_of(*parts, pool)


def busy(name: str, count: int) -> list[Document]:
    return [pod(f"{name}-{index}", node=name, cpu="10m") for index in range(count)]


def test_a_node_that_many_pods_leave_is_not_worth_it() -> None:
    # a: 0.1 of 1.7 in costs; 11 of 13 in disruption.
    parts = (machine("a", 1), machine("b", 16), busy("a", 10))
    state = balanced_state(*parts)
    answer = alone(state, state.candidates[0])
    assert isinstance(answer, NoCommand)
    assert answer.reason == "", "Karpenter tells no reason"
    underutilized_state = balanced_state(*parts, policy="WhenEmptyOrUnderutilized")
    assert isinstance(alone(underutilized_state, underutilized_state.candidates[0]), Command)


def test_a_replacement_saves_less_than_a_deletion() -> None:
    state = balanced_state(machine("a", 4), machine("b", 4, annotations=KEEP), busy("a", 3), busy("b", 3))
    (candidate,) = state.candidates
    # A deletion would save half of the costs for half of the disruption.
    assert state.balance.may_approve(candidate)
    assert isinstance(alone(state, candidate), Command)


def test_all_nodes_count_for_the_totals_and_pods_of_daemon_sets_do_not() -> None:
    protected_machine = machine("b", 4, annotations=KEEP)
    agent = pod("agent", node="b", metadata=owned_by("DaemonSet", "agent"))
    state = balanced_state(
        machine("a", 4), protected_machine, busy("a", 1), busy("b", 2), agent, machine("c", 4, stage="claimed")
    )
    totals = Balance.of(state.basis, state.candidates)._totals
    assert totals["pool"].price == pytest.approx(1.2)
    assert totals["pool"].cost == pytest.approx(2 + 3 + 1)


def test_without_known_prices_nothing_is_worth_it() -> None:
    state = balanced_state(machine("a", zone="zone-9"), machine("b", zone="zone-9"), busy("a", 1))
    assert state.balance.may_approve(state.candidates[0])
    assert isinstance(alone(state, state.candidates[0]), NoCommand)


def test_every_balanced_pool_must_agree() -> None:
    pools = [
        node_pool(name, policy=policy, requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")])
        for name, policy in (("one", "Balanced"), ("two", "WhenEmptyOrUnderutilized"))
    ]
    parts = [machine("a", 1, pool="one"), machine("b", 16, pool="one", annotations=KEEP), machine("c", 4, pool="two")]
    pods = [busy("a", 10), busy("c", 1)]
    state = state_of(*parts, *pods, pools)
    assert multi_node(state) is None
    other_pools = [{**pools[0], "spec": {**pools[0]["spec"], "disruption": pools[1]["spec"]["disruption"]}}, pools[1]]
    assert multi_node(state_of(*parts, *pods, other_pools)) is not None
