"""What a cluster is like once a command was carried out."""

from __future__ import annotations

import pytest

from podium.provisioner.disruption import methods
from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.disruption.searches import greedy
from podium.provisioner.disruption.simulated_cluster import SimulatedCluster, after
from tests.unit.provisioner.clusters import CAPACITY_TYPE, Document, daemon_set, owned_by, pod, requirement
from tests.unit.provisioner.fleets import machine, node_pool, state_of
from tests.unit.provisioner.random_fleets import any_fleet

ON_DEMAND = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")])


def consolidate(state: DisruptionState) -> SimulatedCluster:
    command = methods.single_node(state)
    assert command is not None
    return after(state, command)


def pods_by_node(state: DisruptionState) -> dict[str, list[str]]:
    return {node.name: [pod.metadata.name for pod in node.pods] for node in state.basis.nodes}


def test_pods_are_on_the_nodes_where_they_were_simulated() -> None:
    state = state_of(machine("a", 8), machine("b"), pod("a-1", node="a"), pod("b-1", node="b"))
    simulated_cluster = consolidate(state)
    assert (dict(simulated_cluster.moves), simulated_cluster.new, simulated_cluster.held) == (
        {"default/a-1": "b"},
        (),
        (),
    )
    assert pods_by_node(simulated_cluster.state) == {"b": ["a-1", "b-1"]}
    assert pods_by_node(state) == {"a": ["a-1"], "b": ["b-1"]}, "the cluster before stays as it is"


def test_a_new_node_is_of_the_cheapest_type_and_holds_its_pods() -> None:
    waiting = pod("waits", cpu="500m")
    state = state_of(machine("a", 8), pod("a-1", node="a"), waiting, ON_DEMAND, daemon_set(cpu="100m"))
    simulated_cluster = consolidate(state)
    ((name, new),) = ((new_node.name, new_node.node) for new_node in simulated_cluster.new)
    assert (name, new.instance_type.name, new.offering.zone, new.price) == (
        "new-1",
        "c-2",
        "zone-1",
        0.2,
    )
    assert simulated_cluster.moves == {"default/a-1": "new-1", "default/waits": "new-1"}
    (node,) = simulated_cluster.state.basis.nodes
    assert node.labels["node.kubernetes.io/instance-type"] == "c-2"
    assert node.labels["karpenter.sh/nodepool"] == "pool"
    assert simulated_cluster.state.basis.room(node).free["cpu"] == 1900 - 1500 - 100
    assert simulated_cluster.state.budgets("Empty") == {"pool": 1}, "it is up"


def test_a_new_node_is_no_candidate() -> None:
    simulated_cluster = consolidate(state_of(machine("a", 8), pod("a-1", node="a"), ON_DEMAND))
    assert simulated_cluster.state.candidates == ()
    assert simulated_cluster.state.fixed_nodes == {"new-1"}


def test_names_of_new_nodes_are_new() -> None:
    name_holder = machine("new-1", 1, annotations={"karpenter.sh/do-not-disrupt": "true"})
    simulated_cluster = consolidate(state_of(name_holder, machine("a", 16), pod("a-1", node="a", cpu="3"), ON_DEMAND))
    assert [new_node.name for new_node in simulated_cluster.new] == ["new-2"]


def test_pods_of_daemon_sets_go_with_their_node() -> None:
    agent = pod("agent", node="a", cpu="10m", metadata=owned_by("DaemonSet", "agent"))
    simulated_cluster = consolidate(state_of(machine("a", 8), machine("b"), pod("a-1", node="a"), agent))
    assert pods_by_node(simulated_cluster.state) == {"b": ["a-1"]}


def test_pods_that_a_budget_holds_are_listed() -> None:
    never: Document = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0},
        "status": {"disruptionsAllowed": 1},
    }
    budget_pod = pod("held", node="a", labels={"app": "web"})
    simulated_cluster = consolidate(state_of(machine("a", 8), machine("b"), pod("a-1", node="a"), budget_pod, never))
    assert (simulated_cluster.held, dict(simulated_cluster.moves)) == (("default/held",), {"default/a-1": "b"})


def test_pods_that_cost_nothing_move_when_their_empty_node_goes() -> None:
    free = {"annotations": {"karpenter.sh/disruption-cost": str(-(2**30))}}
    keep = {"karpenter.sh/do-not-disrupt": "true"}
    state = state_of(machine("a"), machine("b", annotations=keep), pod("a-1", node="a", metadata=free))
    command = methods.emptiness(state)
    assert command is not None
    simulated_cluster = after(state, command)
    assert dict(simulated_cluster.moves) == {"default/a-1": "b"}
    assert pods_by_node(simulated_cluster.state) == {"b": ["a-1"]}


@pytest.mark.parametrize("seed", range(20))
def test_no_node_has_more_on_it_than_it_can_hold(seed: int) -> None:
    state = any_fleet(seed)
    command = greedy(state, methods.Rules(to_several=True))
    if command is not None:
        basis = after(state, command).state.basis
        assert [node.name for node in basis.nodes if min(basis.room(node).free.values()) < 0] == []
        assert len(basis.objects.node_claims) == len(basis.objects.nodes)
