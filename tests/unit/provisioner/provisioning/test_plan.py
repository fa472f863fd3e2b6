"""Nodes to buy."""

from __future__ import annotations

from podium.provisioner.disruption.consolidation import Command, NoCommand
from podium.provisioner.disruption.disruption_state import DisruptionState
from tests.unit.provisioner.clusters import CAPACITY_TYPE, Document, instance_type, pod, requirement
from tests.unit.provisioner.fleets import machine, state_of


def on_demand_only(name: str, cpu: int) -> Document:
    document = instance_type(name, cpu, f"{2 * cpu}Gi", 50)
    on_demand = requirement(CAPACITY_TYPE, "In", "on-demand")
    return {
        **document,
        "offerings": [offering for offering in document["offerings"] if on_demand in offering["requirements"]],
    }


def fleet(*types: Document) -> DisruptionState:
    return state_of(
        machine("n", 8), pod("p", node="n", cpu="100m", memory="10Mi"), types=[*types, on_demand_only("c-8", 8)]
    )


def replacing(state: DisruptionState) -> Command:
    """The command for the only node, as Karpenter gives it: the new node is to be spot."""
    command = state.consolidation.of(state.candidates)
    assert isinstance(command, Command)
    return command


def test_what_cannot_be_launched_is_left_out_of_a_node_to_buy() -> None:
    state = fleet(on_demand_only("c-1", 1), instance_type("c-4", 4, "8Gi", 50), instance_type("c-2", 2, "4Gi", 50))
    (bought,) = replacing(state).replacements
    assert {instance_type.name for instance_type in bought.instance_types} == {"c-1", "c-2", "c-4"}
    launched = bought.launchable(state.basis.well_known)
    assert [instance_type.name for instance_type in launched.instance_types] == ["c-2", "c-4"]


def test_a_command_whose_new_node_cannot_be_launched_is_none() -> None:
    state = fleet(on_demand_only("c-1", 1))
    answer = replacing(state).launchable(state.basis.well_known)
    assert isinstance(answer, NoCommand)
    assert answer.reason == "What would replace it cannot be launched"
