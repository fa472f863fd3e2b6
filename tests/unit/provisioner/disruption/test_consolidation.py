"""Whether some nodes can go together, and what takes their place."""

from __future__ import annotations

from typing import Any

import pytest

from podium.provisioner.disruption.consolidation import Command, NoCommand
from podium.provisioner.disruption.disruption_state import DisruptionState
from tests.unit.provisioner.clusters import CAPACITY_TYPE, Document, instance_type, pod, requirement
from tests.unit.provisioner.fleets import INSTANCE_TYPE, machine, node_pool, state_of

ON_DEMAND = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")])
SPOT = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "spot")])


def consolidate(state: DisruptionState, *names: str) -> Command | NoCommand:
    candidates = [candidate for name in names for candidate in state.candidates if candidate.name == name]
    return state.consolidation.of(candidates) if len(candidates) == 1 else state.consolidation.of_several(candidates)


def types_of(command: Command | NoCommand) -> list[str]:
    assert isinstance(command, Command), command
    (replacement,) = command.replacements
    return [instance_type.name for instance_type in replacement.instance_types]


def refusal(answer: Command | NoCommand) -> str:
    assert isinstance(answer, NoCommand), answer
    return answer.reason


def savings(state: DisruptionState, command: Command | NoCommand) -> float:
    assert isinstance(command, Command), command
    return command.savings(state.basis.well_known)


def test_a_node_whose_pods_fit_elsewhere_is_deleted() -> None:
    state = state_of(machine("a"), machine("b"), pod("a-1", node="a"))
    command = consolidate(state, "a")
    assert isinstance(command, Command)
    assert (command.decision, savings(state, command)) == ("delete", 0.4)


def test_of_two_nodes_of_the_cheapest_type_one_is_deleted() -> None:
    state = state_of(machine("a", 1), machine("b", 1), pod("a-1", node="a", cpu="100m"), pod("b-1", node="b", cpu="1m"))
    command = consolidate(state, "a")
    assert isinstance(command, Command)
    assert command.replacements == ()


def test_a_node_is_replaced_with_what_is_cheaper_even_at_its_worst() -> None:
    state = state_of(machine("a", 8), pod("a-1", node="a"), ON_DEMAND)
    command = consolidate(state, "a")
    assert types_of(command) == ["c-2", "c-4"]
    assert savings(state, command) == pytest.approx(0.6)


def test_a_price_that_is_equal_is_not_cheaper() -> None:
    state = state_of(machine("a", 2), pod("a-1", node="a"), ON_DEMAND)
    assert refusal(consolidate(state, "a")) == "Can't replace with a cheaper node"


def test_the_worst_zone_counts() -> None:
    dear = instance_type("c-1", 1, "2Gi", 50)
    for offering in dear["offerings"]:
        zone = next(term["values"] for term in offering["requirements"] if term["key"].endswith("zone"))
        offering["price"] = 5.0 if zone == ["zone-3"] else 0.1
    types = (dear, instance_type("c-4", 4, "8Gi", 50))
    state = state_of(machine("a"), pod("a-1", node="a", cpu="100m"), ON_DEMAND, types=types)
    assert refusal(consolidate(state, "a")) == "Can't replace with a cheaper node"
    only = state_of(
        machine("a"),
        pod("a-1", node="a", cpu="100m", nodeSelector={"topology.kubernetes.io/zone": "zone-1"}),
        ON_DEMAND,
        types=types,
    )
    assert types_of(consolidate(only, "a")) == ["c-1"]


def test_a_replacement_that_may_be_spot_must_be_spot() -> None:
    state = state_of(machine("a", 4), pod("a-1", node="a", cpu="2"))
    command = consolidate(state, "a")
    assert isinstance(command, Command)
    assert types_of(command) == ["c-4"]
    assert command.replacements[0].requirements.get(CAPACITY_TYPE).values == {"spot"}
    assert savings(state, command) == pytest.approx(0.4 * 0.3)


def test_a_node_without_a_price_is_not_replaced_but_may_be_deleted() -> None:
    unknown = machine("a", zone="zone-9")
    assert refusal(consolidate(state_of(unknown, pod("a-1", node="a")), "a")) == "Can't replace with a cheaper node"
    assert isinstance(consolidate(state_of(unknown, machine("b"), pod("a-1", node="a")), "a"), Command)


def test_one_node_never_becomes_several() -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        }
    }
    pods = [pod(name, node="a", labels={"app": "web"}, affinity=apart, cpu="100m") for name in ("one", "two")]
    state = state_of(machine("a", 16), pods)
    assert refusal(consolidate(state, "a")) == "Can't remove without creating 2 candidates"


def test_pods_without_another_place_keep_their_node() -> None:
    state = state_of(machine("a"), pod("a-1", node="a", nodeSelector={"gpu": "yes"}))
    answer = consolidate(state, "a")
    assert refusal(answer) == "Not all pods would schedule"
    assert isinstance(answer, NoCommand)
    assert list(answer.stranded) == ["default/a-1"]


def test_a_waiting_pod_can_turn_a_deletion_into_a_replacement() -> None:
    parts = (machine("a", 8), machine("b", 2), pod("a-1", node="a", cpu="1500m"), ON_DEMAND)
    deletion = consolidate(state_of(*parts), "a")
    assert isinstance(deletion, Command)
    assert deletion.decision == "delete"
    replacement = consolidate(state_of(*parts, pod("waits", cpu="1800m")), "a")
    assert isinstance(replacement, Command)
    assert replacement.decision == "replace"


def test_min_values_must_still_be_met_by_what_is_cheaper() -> None:
    varied = node_pool(
        requirements=[
            requirement(CAPACITY_TYPE, "In", "on-demand"),
            requirement(INSTANCE_TYPE, "Exists", minValues=3),
        ]
    )
    state = state_of(machine("a", 4), pod("a-1", node="a", cpu="500m"), varied)
    label = "minValues requirement is not met for label(s) (label(s)=[node.kubernetes.io/instance-type])"
    assert refusal(consolidate(state, "a")) == f"Filtering by price: {label}"


# ---------------------------------------------------------------- spot


def spot_types(count: int) -> list[Document]:
    """Types of one core each, the dearer the later: `c-1` is the dearest."""
    cheaper_types = [instance_type(f"s-{index:02d}", 1, "2Gi", 50, price=0.1 + index / 1000) for index in range(count)]
    return [*cheaper_types, instance_type("c-1", 1, "2Gi", 50, price=1.0)]


def spot_state(count: int, *pools: Document, on: bool = True, **fields: Any) -> DisruptionState:
    parts = (machine("a", 1, capacity_type="spot"), pod("a-1", node="a", cpu="100m"))
    return state_of(*parts, *(pools or (node_pool(),)), types=spot_types(count), replaces_spot_with_spot=on, **fields)


def test_spot_is_replaced_with_spot_only_if_that_is_switched_on() -> None:
    text = "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
    assert refusal(consolidate(spot_state(20, on=False), "a")) == text


@pytest.mark.parametrize("count", [1, 14])
def test_spot_needs_fifteen_cheaper_types(count: int) -> None:
    text = "SpotToSpotConsolidation requires 15 cheaper instance type options than the current candidate"
    assert refusal(consolidate(spot_state(count), "a")) == f"{text} to consolidate, got {count}"


def test_the_fifteen_cheapest_types_replace_a_spot_node() -> None:
    command = consolidate(spot_state(20), "a")
    assert types_of(command) == [f"s-{index:02d}" for index in range(15)]
    assert isinstance(command, Command)
    assert command.replacements[0].requirements.get(CAPACITY_TYPE).values == {"spot"}


def test_more_types_are_kept_if_min_values_wants_them() -> None:
    varied = node_pool(requirements=[requirement(INSTANCE_TYPE, "Exists", minValues=17)])
    assert len(types_of(consolidate(spot_state(20, varied), "a"))) == 17


def test_several_spot_nodes_need_no_choice_of_types() -> None:
    state = state_of(
        machine("a", 4, capacity_type="spot"),
        machine("b", 4, capacity_type="spot"),
        [pod("a-1", node="a", cpu="100m"), pod("b-1", node="b", cpu="100m")],
        SPOT,
        replaces_spot_with_spot=True,
    )
    assert types_of(consolidate(state, "a", "b")) == ["c-1", "c-2"]


def test_a_spot_node_becomes_on_demand_by_the_price_alone() -> None:
    state = state_of(machine("a", 8, capacity_type="spot"), pod("a-1", node="a"), ON_DEMAND)
    assert types_of(consolidate(state, "a")) == ["c-2", "c-4"]


# ---------------------------------------------------------------- several nodes


def several(options: tuple[str, ...], removed_types: tuple[str, ...]) -> Command | NoCommand:
    """Nodes of these types, whose pods all fit on any of the options."""
    prices = {"nano": 0.1, "small": 0.2, "xlarge": 0.5, "2xlarge": 0.7}
    types = [instance_type(name, 8, "64Gi", 50, price=prices[name]) for name in prices]
    nodes = []
    for index, name in enumerate(removed_types):
        parts = machine(f"n{index}", 8)
        for part in parts:
            part["metadata"]["labels"][INSTANCE_TYPE] = name
        nodes += [*parts, pod(f"p{index}", node=f"n{index}", cpu="100m")]
    pool = node_pool(
        requirements=[requirement(CAPACITY_TYPE, "In", "on-demand"), requirement(INSTANCE_TYPE, "In", *options)]
    )
    state = state_of(nodes, pool, types=types)
    return consolidate(state, *(f"n{index}" for index in range(len(removed_types))))


def test_a_replacement_is_cheaper_than_any_removed_node_of_a_type_that_it_could_have() -> None:
    removed_types = ("2xlarge", "2xlarge", "small")
    assert types_of(several(("nano", "small", "xlarge", "2xlarge"), removed_types)) == ["nano"]
    assert isinstance(several(("small", "xlarge", "2xlarge"), removed_types), NoCommand)


def test_types_that_are_not_removed_only_need_to_be_cheaper_in_all() -> None:
    assert types_of(several(("small", "xlarge"), ("2xlarge", "2xlarge"))) == ["small", "xlarge"]


def test_three_nodes_with_little_on_them_become_one() -> None:
    state = state_of(
        [part for name in "abc" for part in machine(name, 4)],
        [pod(f"{name}-1", node=name, cpu="100m") for name in "abc"],
        node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")]),
    )
    assert types_of(consolidate(state, "a", "b", "c")) == ["c-1", "c-2"]
