"""A whole consolidation."""

from __future__ import annotations

import json
import statistics

import pytest

from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.disruption.searches import SEARCHES, Search
from podium.provisioner.disruption.simulation import Simulator
from podium.provisioner.reports.consolidation_plan import ConsolidationOptions, ConsolidationPlan, plan_consolidation
from tests.gang_manifests import UPSTREAM, group
from tests.looks import after_looks
from tests.unit.provisioner.clusters import CAPACITY_TYPE, Document, node, pod, requirement
from tests.unit.provisioner.fleets import machine, node_pool, state_of
from tests.unit.provisioner.random_fleets import against_prefixes, any_fleet

ON_DEMAND = [requirement(CAPACITY_TYPE, "In", "on-demand")]
KEEP = {"karpenter.sh/do-not-disrupt": "true"}


def consolidation_plan(state: DisruptionState, search: Search = "prefix") -> ConsolidationPlan:
    return plan_consolidation(state, ConsolidationOptions(search=search))


def test_empty_nodes_go_first_and_then_one_command_follows_another() -> None:
    state = state_of(
        machine("empty"),
        machine("a", 8),
        machine("b", 8),
        [pod("a-1", node="a", cpu="7500m"), pod("b-1", node="b")],
        node_pool(requirements=ON_DEMAND),
    )
    plan = consolidation_plan(state)
    assert [(command.reason, command.decision, command.nodes) for command in plan.commands] == [
        ("Empty", "delete", ("empty",)),
        ("Underutilized", "replace", ("b",)),
    ]
    assert [new_node.name for new_node in plan.commands[1].new] == ["new-1"]
    assert plan.commands[1].moves == {"default/b-1": "new-1"}
    assert plan.savings == pytest.approx(0.4 + 0.8 - 0.2)
    assert plan.blockers == {"a": ("Can't replace with a cheaper node",), "new-1": ()}


def test_without_anything_to_gain_the_plan_is_empty() -> None:
    plan = consolidation_plan(
        state_of(machine("a", 1), pod("a-1", node="a", cpu="800m"), node_pool(requirements=ON_DEMAND))
    )
    assert (plan.commands, plan.savings) == ((), 0.0)
    assert plan.blockers == {"a": ("Can't replace with a cheaper node",)}


def test_the_plan_lists_everything_that_keeps_a_node() -> None:
    busy = machine("busy", 3, pod_event_s_ago=5, zone="zone-9")
    del busy[1]["metadata"]["labels"][CAPACITY_TYPE]
    state = state_of(
        node("plain"),
        machine("kept", annotations=KEEP, pool="gone"),
        busy,
        machine("static", pool="fixed"),
        machine("never", pool="never"),
        machine("stuck", pool="none"),
        [pod("busy-1", node="busy"), pod("stuck-1", node="stuck", cpu="10m", nodeSelector={"gpu": "yes"})],
        node_pool(consolidate_after="1m", policy="WhenEmpty"),
        node_pool("fixed", replicas=1),
        node_pool("never", consolidate_after="Never"),
        node_pool("none", nodes="0"),
    )
    blockers = consolidation_plan(state).blockers
    assert blockers["plain"] == ("Node isn't managed by karpenter",)
    assert blockers["kept"] == (
        'Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation',
        "NodePool not found (NodePool=gone)",
    )
    assert blockers["busy"] == (
        'Instance Type "c-3" not found',
        'Node does not have label "karpenter.sh/capacity-type"',
        'NodePool "pool" has consolidation policy WhenEmpty, but node is not empty',
        "Pods came or went less than 1m ago (consolidateAfter)",
    )
    assert blockers["static"] == ('NodePool "fixed" has a fixed number of nodes',)
    assert blockers["never"] == ('NodePool "never" has consolidation disabled',)
    assert blockers["stuck"][:2] == (
        'The budgets of NodePool "none" allow no more nodes to go: Underutilized',
        "Not all pods would schedule",
    )
    assert blockers["stuck"][2].startswith("default/stuck-1: ")


def test_the_policy_balanced_is_named_as_a_reason() -> None:
    pods = [pod(f"a-{index}", node="a", cpu="10m") for index in range(10)]
    pool = node_pool(policy="Balanced", requirements=ON_DEMAND)
    blockers = consolidation_plan(state_of(machine("a", 1), machine("b", 16, annotations=KEEP), pods, pool)).blockers
    assert blockers["a"] == ("The policy Balanced finds the savings not worth the disruption",)


def test_a_plan_has_the_types_of_json() -> None:
    state = state_of(machine("a", 8), pod("a-1", node="a"), node_pool(requirements=ON_DEMAND))
    answer = json.loads(json.dumps(consolidation_plan(state).as_dict()))
    (command,) = answer["commands"]
    (new,) = command["new_nodes"]
    assert (new["name"], new["instance_type"], new["zone"], new["capacity_type"]) == (
        "new-1",
        "c-2",
        "zone-1",
        "on-demand",
    )
    assert new["instance_types"] == ["c-2", "c-4"]
    assert answer["hourly_savings"] == command["hourly_savings"] == pytest.approx(0.6)
    assert answer["monthly_savings"] == pytest.approx(0.6 * 730)


def test_options_ask_for_more_than_karpenter_does() -> None:
    parts = (machine("a", 2), machine("b", 4), [pod(f"{name}-1", node=name, cpu="10m") for name in "ab"])
    state = state_of(*parts, node_pool(requirements=ON_DEMAND))
    assert plan_consolidation(state, ConsolidationOptions(min_savings=9)).commands == ()
    assert plan_consolidation(state).savings > 0


def test_budgets_can_be_ignored() -> None:
    nodes = [part for name in "abcd" for part in machine(name, 4)]
    state = state_of(nodes, node_pool(nodes="1"))
    assert [command.nodes for command in consolidation_plan(state).commands] == [("a",), ("b",), ("c",), ("d",)]
    partial_plan = plan_consolidation(state, ConsolidationOptions(ignore_budgets=True))
    assert [command.nodes for command in partial_plan.commands] == [("a", "b", "c", "d")]


@pytest.mark.parametrize("seed", range(30))
def test_plans_of_any_cluster_hold_what_they_promise(seed: int) -> None:
    state = any_fleet(seed)
    original_text = repr(state.basis.objects)
    plans: dict[Search, ConsolidationPlan] = {
        "prefix": consolidation_plan(state),
        "greedy": consolidation_plan(state, "greedy"),
    }
    assert plans["greedy"].savings >= plans["prefix"].savings
    assert repr(state.basis.objects) == original_text
    node_names = {node.name for node in state.basis.nodes}
    for plan in plans.values():
        removed_nodes = [name for command in plan.commands for name in command.nodes]
        bought = {new.name for command in plan.commands for new in command.new}
        assert len(set(removed_nodes)) == len(removed_nodes)
        assert set(removed_nodes) <= node_names
        assert plan.blockers.keys() == (node_names - set(removed_nodes)) | bought
        remaining_nodes = node_names
        for command in plan.commands:
            remaining_nodes = remaining_nodes - set(command.nodes) | {new.name for new in command.new}
            assert set(command.moves.values()) <= remaining_nodes
        assert (
            plan.as_dict()
            == consolidation_plan(any_fleet(seed), "prefix" if plan is plans["prefix"] else "greedy").as_dict()
        )


@pytest.mark.long
def test_greedy_saves_a_fifth_more_where_a_node_stands_in_the_way_of_prefixes() -> None:
    ratios = []
    for seed in range(100):
        state = against_prefixes(seed)
        prefix, greedy = consolidation_plan(state), consolidation_plan(state, "greedy")
        assert greedy.savings >= prefix.savings
        ratios.append(greedy.savings / prefix.savings if prefix.savings else float(greedy.savings > 0) * 1000)
    assert statistics.median(ratios) >= 1.2


def test_commands_found_in_time_are_the_first_of_all_and_partial() -> None:
    state = state_of(
        machine("empty"),
        machine("a", 8),
        machine("b", 8),
        [pod("a-1", node="a", cpu="7500m"), pod("b-1", node="b")],
        node_pool(requirements=ON_DEMAND),
    )
    every = plan_consolidation(state)
    counts = set()
    for looks in range(30):
        limit = after_looks(looks)
        partial_plan = plan_consolidation(state, limit=limit)
        count = len(partial_plan.commands)
        assert [command.nodes for command in partial_plan.commands] == [
            command.nodes for command in every.commands[:count]
        ]
        assert partial_plan.is_partial == limit.is_noticed == (partial_plan.as_dict().get("partial") is True)
        assert partial_plan.is_partial or partial_plan.blockers == every.blockers
        counts.add((count, partial_plan.is_partial))
    assert counts >= {(0, True), (1, True), (len(every.commands), False)}


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_ends_between_two_simulations(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    # None of them can go: all of their pods need a whole node.
    state = state_of(
        *(machine(f"n{number}", 8) for number in range(6)),
        [pod(f"p{number}", node=f"n{number}", cpu="7500m") for number in range(6)],
        node_pool(requirements=ON_DEMAND),
    )
    simulations: list[int] = []
    without = Simulator.without
    monkeypatch.setattr(
        Simulator, "without", lambda *args, **options: [simulations.append(1), without(*args, **options)][1]
    )
    options = ConsolidationOptions(search=search)
    plan_consolidation(state, options, after_looks(3))
    count_in_time = len(simulations)
    simulations.clear()
    plan_consolidation(state, options)
    assert count_in_time < 4 < len(simulations)


def _gang(min_count: int) -> list[Document]:
    members = [pod(f"train-{name}", node=name, schedulingGroup={"podGroupName": "train"}) for name in "ab"]
    return [group(UPSTREAM, min_count), *members]


def test_by_karpenters_rules_a_gang_that_breaks_is_warned_about_once() -> None:
    state = state_of(machine("a"), machine("b"), machine("c"), _gang(2), node_pool(requirements=ON_DEMAND))
    plan = consolidation_plan(state)
    (warning,) = [text for text in plan.warnings if "gang" in text]
    nodes = sorted(set(plan.commands[-1].nodes) & {"a", "b"})
    assert nodes
    assert warning.startswith(f"the gang default/train needs 2 of its pods, and {2 - len(nodes)} would be left")
    assert f"since {', '.join(nodes)} go" in warning
    assert warning.endswith("(--rules podium does not break it)")
    assert plan.as_dict()["warnings"] == [warning]


def test_a_gang_that_keeps_as_many_pods_as_it_needs_is_not_warned_about() -> None:
    state = state_of(machine("a"), machine("b", 1), _gang(1), node_pool(requirements=ON_DEMAND))
    plan = consolidation_plan(state)
    assert [command.nodes for command in plan.commands] == [("a",)]
    assert plan.warnings == ()
