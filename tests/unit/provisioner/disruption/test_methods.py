"""The methods by which Karpenter disrupts nodes."""

from __future__ import annotations

from typing import Any

import pytest

from podium.objects.times import format_time
from podium.provisioner.disruption import methods
from podium.provisioner.disruption.consolidation import Command
from podium.provisioner.disruption.disruption_state import DisruptionState
from tests.unit.provisioner.clusters import CAPACITY_TYPE, NOW, Document, instance_type, pod, requirement
from tests.unit.provisioner.fleets import ago, machine, node_pool, state_of

DRIFTED = {"Drifted": "NodePoolDrifted"}
ON_DEMAND = [requirement(CAPACITY_TYPE, "In", "on-demand")]
DUTY = {"budgets": [{"nodes": "0", "schedule": "27 20 * * *", "duration": "1h"}, {"nodes": "100%"}]}
"""Nothing may be disrupted from 20 seconds after now."""


def names(command: Command | None) -> list[str]:
    return [] if command is None else [candidate.name for candidate in command.candidates]


def machines(count: int, size: int = 4, **fields: Any) -> list[Document]:
    return [part for index in range(count) for part in machine(f"n{index}", size, **fields)]


def one_pod_each(count: int, **fields: Any) -> list[Document]:
    return [pod(f"p{index}", node=f"n{index}", **{"cpu": "100m", **fields}) for index in range(count)]


# ---------------------------------------------------------------- emptiness


def test_all_empty_nodes_go_in_one_command() -> None:
    state = state_of(machines(3), pod("p", node="n1"))
    command = methods.emptiness(state)
    assert names(command) == ["n0", "n2"]
    assert command is not None
    assert (command.decision, command.simulation) == ("delete", None)


@pytest.mark.parametrize("policy", ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"])
def test_empty_nodes_go_under_every_policy(policy: str) -> None:
    assert names(methods.emptiness(state_of(machines(1), node_pool(policy=policy)))) == ["n0"]


@pytest.mark.parametrize("pool", [node_pool(consolidate_after="Never"), node_pool(replicas=1), node_pool(nodes="0")])
def test_empty_nodes_stay_where_their_pool_says_so(pool: Document) -> None:
    assert methods.emptiness(state_of(machines(1), pool)) is None


def test_budgets_choose_the_dearest_of_the_empty_nodes() -> None:
    state = state_of(machine("a", 2), machine("b", 8), machine("c", 4), node_pool(nodes="2"))
    assert names(methods.emptiness(state)) == ["b", "c"]


def test_what_is_left_of_an_empty_command_goes() -> None:
    state = state_of(machines(3))
    command = methods.emptiness(state)
    assert command is not None
    unchanged = methods.still_empty(state.later(15), command)
    assert [candidate.name for candidate in unchanged if not isinstance(candidate, str)] == ["n0", "n1", "n2"]
    busy = state_of(machines(3), pod("p", node="n1"))
    candidates = methods.still_empty(busy, command)
    assert [candidate.name for candidate in candidates if not isinstance(candidate, str)] == ["n0", "n2"]
    assert methods.still_empty(state_of(machines(3), one_pod_each(3)), command) == "3 candidates are no longer valid"
    text = methods.still_empty(state_of(machines(3), node_pool(nodes="0")), command)
    assert text == (
        "3 candidates failed validation because it they were nominated for a pod or would violate disruption budgets"
    )


# ---------------------------------------------------------------- drift


def drifted_machine(name: str, since_s: float, size: int = 4, **fields: Any) -> list[Document]:
    pool_hash = {"karpenter.sh/nodepool-hash": "old", "karpenter.sh/nodepool-hash-version": "v3"}
    return machine(name, size, conditions=DRIFTED, created_s_ago=since_s, claim={"annotations": pool_hash}, **fields)


def changed_pool(**fields: Any) -> Document:
    pool = node_pool(requirements=ON_DEMAND, **fields)
    pool["metadata"]["annotations"] = {
        "karpenter.sh/nodepool-hash": "new",
        "karpenter.sh/nodepool-hash-version": "v3",
    }
    return pool


def test_the_node_that_drifted_first_is_replaced() -> None:
    parts = (drifted_machine("a", 100), drifted_machine("b", 200), [pod("a-1", node="a"), pod("b-1", node="b")])
    assert names(methods.drift(state_of(*parts, changed_pool()))) == ["b"]


def test_drifted_nodes_without_pods_go_before_the_others() -> None:
    parts = (drifted_machine("a", 100), drifted_machine("b", 200), pod("b-1", node="b"))
    assert names(methods.drift(state_of(*parts, changed_pool()))) == ["a"]


def test_nodes_that_drifted_at_once_go_by_name() -> None:
    assert names(methods.drift(state_of(drifted_machine("b", 100), drifted_machine("a", 100), changed_pool()))) == ["a"]


def test_drift_buys_as_many_nodes_as_it_takes_at_any_price() -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        }
    }
    pods = [pod(name, node="a", labels={"app": "web"}, affinity=apart, cpu="1500m") for name in ("one", "two")]
    state = state_of(drifted_machine("a", 100, 2), pods, changed_pool())
    command = methods.drift(state)
    assert command is not None
    assert (command.decision, len(command.replacements)) == ("replace", 2)
    assert command.savings(state.basis.well_known) == pytest.approx(0.2 - 0.4)


def test_a_drifted_node_whose_pods_find_no_place_is_passed_over() -> None:
    parts = (drifted_machine("a", 200), drifted_machine("b", 100), pod("a-1", node="a", nodeSelector={"gpu": "yes"}))
    pods = pod("b-1", node="b")
    assert names(methods.drift(state_of(*parts, pods, changed_pool()))) == ["b"]
    assert methods.drift(state_of(*parts, pods, changed_pool(nodes="0"))) is None


def reserved_types(capacity: int) -> tuple[Document, ...]:
    """One type, which is only to be had in a reservation."""
    document = instance_type("c-4", 4, "8Gi", 50, reserved={"r-1": capacity})
    return ({**document, "offerings": document["offerings"][-1:]},)


@pytest.mark.parametrize("on", [True, False])
def test_a_drifted_node_of_a_full_reservation_may_have_to_go_first(on: bool) -> None:
    labels = {"karpenter.kwok.sh/reservation-id": "r-1"}
    node = drifted_machine("a", 100, capacity_type="reserved", **labels)
    pool = changed_pool()
    pool["spec"]["template"]["spec"]["requirements"] = []
    state = state_of(node, pod("a-1", node="a"), pool, types=reserved_types(0), terminates_first=on)
    command = methods.drift(state)
    assert (command is not None) is on
    if command is not None:
        assert (command.decision, command.replacements) == ("terminate-first", ())
        assert command.simulation is not None
        assert len(command.simulation.plan.nodes) == 1


def test_with_room_in_the_reservation_the_replacement_comes_first() -> None:
    node = drifted_machine("a", 100, capacity_type="reserved", **{"karpenter.kwok.sh/reservation-id": "r-1"})
    pool = changed_pool()
    pool["spec"]["template"]["spec"]["requirements"] = []
    state = state_of(node, pod("a-1", node="a"), pool, types=reserved_types(1), terminates_first=True)
    command = methods.drift(state)
    assert command is not None
    assert command.decision == "replace"


# ---------------------------------------------------------------- several nodes


def test_three_nodes_with_little_on_them_become_one() -> None:
    state = state_of(machines(3), one_pod_each(3), node_pool(requirements=ON_DEMAND))
    command = methods.multi_node(state)
    assert names(command) == ["n0", "n1", "n2"]
    assert command is not None
    assert len(command.replacements) == 1


def test_one_candidate_is_not_several() -> None:
    assert methods.multi_node(state_of(machines(1), one_pod_each(1))) is None


def test_several_nodes_are_chosen_within_the_budgets() -> None:
    state = state_of(machines(4), one_pod_each(4), node_pool(nodes="2", requirements=ON_DEMAND))
    assert names(methods.multi_node(state)) == ["n0", "n1"]


def test_one_node_that_cannot_go_hides_those_after_it() -> None:
    stuck = pod("stuck", node="n0", nodeSelector={"gpu": "yes"}, cpu="100m")
    movable_pods = [pod for pod in one_pod_each(4) if pod["spec"]["nodeName"] != "n0"]
    dear = [part for index in range(4) for part in machine(f"n{index}", 8 if index == 0 else 4)]
    assert methods.multi_node(state_of(dear, stuck, movable_pods)) is None


# ---------------------------------------------------------------- one node


def test_the_first_candidate_that_can_go_goes() -> None:
    stuck = pod("stuck", node="n0", nodeSelector={"gpu": "yes"})
    parts = (machine("n0", 8), machine("n1", 4), machine("n2", 2), stuck, pod("p1", node="n1"), pod("p2", node="n2"))
    assert names(methods.single_node(state_of(*parts))) == ["n1"]


def test_pools_take_turns() -> None:
    parts = [
        machine("a", 8, pool="one"),
        machine("b", 4, pool="one"),
        machine("c", 2, pool="two"),
        machine("d", 1, pool="two"),
    ]
    pods = [pod(f"{name}-1", node=name) for name in "abcd"]
    state = state_of(*parts, pods, node_pool("two"), node_pool("one"))
    assert [candidate.name for candidate in methods.in_turn(state.consolidatable)] == ["a", "c", "b", "d"]


def test_a_pool_without_a_budget_is_skipped() -> None:
    parts = (machine("a", 8, pool="one"), machine("b", 4, pool="two"), [pod(f"{n}-1", node=n) for n in "ab"])
    assert names(methods.single_node(state_of(*parts, node_pool("one", nodes="0"), node_pool("two")))) == ["b"]


# ---------------------------------------------------------------- validation


def fault(old_state: DisruptionState, new_state: DisruptionState) -> str | None:
    command = methods.single_node(old_state)
    assert command is not None
    return methods.consolidation_fault(new_state, command)


def test_a_command_that_is_found_again_is_valid() -> None:
    for parts in ((machines(2), one_pod_each(2)), (machine("n0", 8), pod("p", node="n0"))):
        state = state_of(*parts, node_pool(requirements=ON_DEMAND))
        assert fault(state, state.later(15)) is None


def test_a_candidate_that_is_no_more_makes_a_command_invalid() -> None:
    keep = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
    new_state = state_of(machines(2), one_pod_each(2), pod("new", node="n0", metadata=keep))
    text = "validating candidates, 1 candidates are no longer valid"
    assert fault(state_of(machines(2), one_pod_each(2)), new_state) == text


def test_a_budget_that_begins_makes_a_command_invalid() -> None:
    state = state_of(machines(2), one_pod_each(2), node_pool(**DUTY))
    text = "validating candidates, a candidate can no longer be disrupted without violating budgets"
    assert fault(state, state.later(20)) == text


def test_new_results_make_a_command_invalid() -> None:
    text = "validating command, scheduling simulation produced new results"
    two_machines = state_of(machines(2), one_pod_each(2))
    alone = state_of(machine("n0", 4), pod("p0", node="n0", cpu="100m"), node_pool(requirements=ON_DEMAND))
    assert fault(two_machines, alone) == text, "a node must be bought"
    assert fault(alone, two_machines) == text, "none need be"
    larger = state_of(machine("n0", 4), pod("p0", node="n0", cpu="1500m"), node_pool(requirements=ON_DEMAND))
    assert fault(alone, larger) == text, "some of the types would not do"


def test_a_destination_that_wakes_makes_a_command_invalid() -> None:
    parts = (machine("n0", 8), machine("n1", 4, pod_event_s_ago=50), pod("p", node="n0", cpu="500m"))
    state = state_of(*parts, node_pool(consolidate_after="1m", requirements=ON_DEMAND))
    text = "validating command, scheduling simulation produced new results"
    assert fault(state, state.later(15)) == text


def test_pods_without_a_place_make_a_command_invalid() -> None:
    old_state = state_of(machines(2), one_pod_each(2))
    new_state = state_of(machines(2), one_pod_each(2, cpu="100m", nodeSelector={"gpu": "yes"}))
    text = fault(old_state, new_state)
    assert text is not None
    assert text.startswith("validating command, not all pods would schedule, default/p0 => ")


def test_times_are_those_of_the_tests() -> None:
    assert format_time(NOW) == "2026-05-28T20:26:40Z"
    assert ago(40) == "2026-05-28T20:26:00Z"
