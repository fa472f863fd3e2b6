"""Searches for nodes to consolidate together."""

from __future__ import annotations

import pytest

from podium.provisioner.disruption.consolidation import Command
from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.disruption.methods import Rules, within_budgets
from podium.provisioner.disruption.searches import COMMAND_OF, EXHAUSTIVE_MAX, SEARCHES, Search
from tests.unit.provisioner.clusters import CAPACITY_TYPE, instance_type, pod, requirement
from tests.unit.provisioner.fleets import machine, node_pool, state_of
from tests.unit.provisioner.random_fleets import against_prefixes, any_fleet

ON_DEMAND = [requirement(CAPACITY_TYPE, "In", "on-demand")]


def names(command: Command | None) -> list[str]:
    return [] if command is None else sorted(candidate.name for candidate in command.candidates)


def best_command(state: DisruptionState, search: Search, rules: Rules | None = None) -> Command | None:
    return COMMAND_OF[search](state, rules or Rules())


def savings(state: DisruptionState, search: Search, rules: Rules | None = None) -> float:
    command = best_command(state, search, rules)
    return 0.0 if command is None else command.savings(state.basis.well_known)


def test_greedy_skips_what_cannot_go() -> None:
    state = against_prefixes(1)
    assert state.consolidatable[0].name == "first"
    assert savings(state, "greedy") > savings(state, "prefix")
    assert "first" not in names(best_command(state, "greedy"))


def test_prefix_takes_one_node_where_several_cannot_go() -> None:
    parts = (machine("a", 8), machine("b", 4), pod("a-1", node="a", nodeSelector={"gpu": "yes"}), pod("b-1", node="b"))
    assert names(best_command(state_of(*parts), "prefix")) == ["b"]


def test_greedy_keeps_what_becomes_useful_only_later() -> None:
    # Of two nodes neither can go alone: together they become one that is cheaper.
    types = (instance_type("c-4", 4, "8Gi", 50, price=0.4), instance_type("c-8", 8, "16Gi", 50, price=0.6))
    parts = [*machine("a", 4), *machine("b", 4), pod("a-1", node="a", cpu="3"), pod("b-1", node="b", cpu="3")]
    stuck_machine = [*machine("first", 8), pod("stays", node="first", cpu="7", nodeSelector={"gpu": "yes"})]
    state = state_of(parts, stuck_machine, node_pool(requirements=ON_DEMAND), types=types)
    assert [candidate.name for candidate in state.consolidatable] == ["first", "a", "b"]
    assert best_command(state, "prefix") is None
    assert names(best_command(state, "greedy")) == ["a", "b"]


@pytest.mark.parametrize("seed", range(40))
def test_no_search_saves_less_than_a_simpler_one(seed: int) -> None:
    state = any_fleet(seed)
    prefix, greedy = savings(state, "prefix"), savings(state, "greedy")
    assert greedy >= prefix
    if seed % 8 == 0:
        assert savings(state, "exhaustive") >= greedy


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_keeps_to_the_budgets(search: Search) -> None:
    nodes = [part for name in "abcd" for part in machine(name, 4)]
    pods = [pod(f"{name}-1", node=name, cpu="10m") for name in "abcd"]
    state = state_of(nodes, pods, node_pool(nodes="2", requirements=ON_DEMAND))
    command = best_command(state, search)
    assert command is not None
    assert len(command.candidates) == 2
    assert within_budgets(state, "Underutilized", command.candidates) == list(command.candidates)


def test_every_set_of_the_best_candidates_is_tried() -> None:
    count = EXHAUSTIVE_MAX + 2
    nodes = [part for index in range(count) for part in machine(f"n{index}", 1)]
    pods = [pod(f"p{index}", node=f"n{index}", cpu="600m") for index in range(count)]
    state = state_of(nodes, pods, node_pool(nodes="1", requirements=ON_DEMAND))
    assert best_command(state, "exhaustive") is None


# ---------------------------------------------------------------- more than Karpenter does


def halves() -> DisruptionState:
    """A node that is too large for two pods which must be apart."""
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        }
    }
    web = {"labels": {"app": "web"}, "affinity": apart, "cpu": "500m"}
    return state_of(
        machine("a", 16), [pod("one", node="a", **web), pod("two", node="a", **web)], node_pool(requirements=ON_DEMAND)
    )


def test_one_node_may_become_several_that_are_cheaper_together() -> None:
    assert best_command(halves(), "prefix") is None
    command = best_command(halves(), "prefix", Rules(to_several=True))
    assert command is not None
    assert len(command.replacements) == 2
    state = halves()
    dearest = [
        max(instance_type.price_of("zone-1", "on-demand") for instance_type in replacement.instance_types)
        for replacement in command.replacements
    ]
    assert sum(dearest) < state.candidates[0].price
    assert savings(state, "prefix", Rules(to_several=True)) == pytest.approx(1.6 - 0.2)


def test_several_that_cost_as_much_do_not_replace_a_node() -> None:
    types = (instance_type("c-16", 16, "32Gi", 50, price=0.2), instance_type("c-1", 1, "2Gi", 50, price=0.1))
    state = halves()
    equal_state = state_of(
        machine("a", 16),
        [pod("one", node="a", cpu="500m", nodeSelector={"kubernetes.io/arch": "amd64"})],
        node_pool(requirements=ON_DEMAND),
        types=types,
    )
    assert best_command(equal_state, "prefix", Rules(to_several=True)) is not None
    assert best_command(state, "prefix", Rules(to_several=True, savings_min=1.5)) is None


@pytest.mark.parametrize("search", SEARCHES)
def test_a_command_that_saves_too_little_is_not_made(search: Search) -> None:
    parts = (machine("a", 2), machine("b", 4), [pod(f"{name}-1", node=name, cpu="10m") for name in "ab"])
    state = state_of(*parts, node_pool(requirements=ON_DEMAND))
    assert savings(state, search, Rules(savings_min=0.3)) >= 0.3
    assert best_command(state, search, Rules(savings_min=9.0)) is None
