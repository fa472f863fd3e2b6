"""What would become of the pods if some nodes went."""

from __future__ import annotations

import dataclasses
from typing import Any

from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.disruption.simulation import Simulation
from tests.unit.provisioner.clusters import Document, pod
from tests.unit.provisioner.fleets import machine, node_pool, state_of

WEB = {"app": "web"}
NO_LIMIT = {"limits": {"cpu": "4"}}
"""Nothing more can be bought for a cluster of four cores or more."""


def without(state: DisruptionState, *names: str, **how: Any) -> Simulation:
    candidates = [candidate for candidate in state.candidates if candidate.name in names]
    assert len(candidates) == len(names)
    simulation = state.simulator.without(candidates, **how)
    assert simulation is not None
    return simulation


def existing(simulation: Simulation) -> dict[str, list[str]]:
    return {name: [pod.metadata.name for pod in pods] for name, pods in simulation.plan.existing.items()}


def test_pods_move_to_the_nodes_that_stay() -> None:
    state = state_of(machine("a"), machine("b"), pod("a-1", node="a"), pod("b-1", node="b"))
    simulation = without(state, "a")
    assert existing(simulation) == {"b": ["a-1"]}
    assert (simulation.plan.nodes, simulation.stranded) == ((), {})


def test_waiting_pods_take_part_but_are_not_stranded() -> None:
    full = machine("a"), machine("b"), pod("a-1", node="a"), pod("b-1", node="b", cpu="3")
    simulation = without(state_of(full[0], full[1], *full[2:], pod("waits", cpu="64")), "a")
    assert existing(simulation) == {"b": ["a-1"]}
    assert list(simulation.plan.unschedulable) == ["default/waits"]
    assert simulation.stranded == {}


def test_pods_of_a_node_that_leaves_anyway_are_moved_too() -> None:
    leaving_machine = machine("gone", claim={"deletionTimestamp": "2026-05-01T00:00:00Z"})
    state = state_of(
        leaving_machine, machine("a"), machine("b"), pod("gone-1", node="gone"), pod("a-1", node="a", cpu="2")
    )
    assert existing(without(state, "a")) == {"b": ["a-1", "gone-1"]}


def test_pods_that_cannot_go_are_dropped_though_their_node_goes() -> None:
    never = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": WEB}, "maxUnavailable": 0},
        "status": {"disruptionsAllowed": 1},
    }
    state = state_of(machine("a"), machine("b"), pod("a-1", node="a", labels=WEB), never)
    assert [candidate.name for candidate in state.candidates] == ["a", "b"]
    assert existing(without(state, "a")) == {}


def test_pods_on_a_node_that_is_not_there_yet_count_as_stranded() -> None:
    state = state_of(machine("a"), machine("b", stage="registered"), pod("a-1", node="a"), pod("waits"))
    simulation = without(state, "a")
    text = "would schedule against uninitialized nodeclaim/claim-b, node/b"
    assert simulation.stranded == {"default/a-1": text}
    assert simulation.plan.reasons == {"default/a-1": text, "default/waits": text}
    assert existing(simulation) == {"b": ["a-1", "waits"]}


def test_pods_of_a_leaving_node_may_count_on_a_node_that_is_not_there_yet() -> None:
    leaving_machine = machine("gone", claim={"deletionTimestamp": "2026-05-01T00:00:00Z"})
    coming = machine("b", stage="claimed")
    state = state_of(leaving_machine, machine("a", 1), coming, pod("gone-1", node="gone", cpu="3"))
    simulation = without(state, "a")
    assert (existing(simulation), simulation.stranded) == ({"claim-b": ["gone-1"]}, {})


def test_a_node_under_consolidate_after_takes_only_pods_that_wait_or_must_leave() -> None:
    leaving_machine = machine("gone", claim={"deletionTimestamp": "2026-05-01T00:00:00Z"})
    state = state_of(
        machine("a"),
        machine("rests", 8, pod_event_s_ago=10),
        leaving_machine,
        [pod("a-1", node="a"), pod("gone-1", node="gone"), pod("waits")],
        node_pool(consolidate_after="1m"),
    )
    simulation = without(state, "a", is_consolidation=True)
    assert existing(simulation) == {"rests": ["gone-1", "waits"]}
    assert [[pod.metadata.name for pod in node.pods] for node in simulation.plan.nodes] == [["a-1"]]
    assert existing(without(state, "a")) == {"rests": ["a-1", "gone-1", "waits"]}, "drift does not mind"
    later = without(state.later(50), "a", is_consolidation=True)
    assert existing(later) == {"rests": ["a-1", "gone-1", "waits"]}


def test_preferences_are_as_hard_as_requirements_until_nothing_else_is_left() -> None:
    only_other = {
        "weight": 1,
        "preference": {
            "matchExpressions": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-1"]}]
        },
    }
    wish = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [only_other]}}
    parts = (machine("a"), machine("b"), pod("a-1", node="a", cpu="500m", affinity=wish))
    assert len(without(state_of(*parts), "a").plan.nodes) == 1
    assert existing(without(state_of(*parts, ignore_preferences=True), "a")) == {"b": ["a-1"]}


def test_without_a_pool_to_buy_from_nothing_can_be_simulated() -> None:
    state = state_of(machine("a"), node_pool(ready=False))
    assert state.simulator.without(state.candidates) is None


def test_the_text_names_five_pods_and_counts_the_others() -> None:
    def text(count: int) -> str:
        simulation = without(state_of(machine("a")), "a")
        stranded = {f"default/p{index}": "why" for index in range(count)}
        return dataclasses.replace(simulation, stranded=stranded).stranded_text()

    assert text(1) == "not all pods would schedule, default/p0 => why "
    assert text(5).endswith("default/p4 => why  and 0 other(s)")
    assert text(7).endswith("default/p4 => why  and 2 other(s)")


def test_nothing_that_was_given_is_changed() -> None:
    objects: list[Document] = [*machine("a"), *machine("b"), pod("a-1", node="a"), pod("waits")]
    state = state_of(objects)
    original_text = repr(state.basis.objects)
    assert existing(without(state, "a")) == existing(without(state, "a"))
    assert repr(state.basis.objects) == original_text
