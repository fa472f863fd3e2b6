"""What a cluster is like once a command was carried out."""

from __future__ import annotations

import pytest

from podium.provisioner.disruption import methods
from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.disruption.searches import greedy
from podium.provisioner.disruption.simulated_cluster import SimulatedCluster, after
from tests.unit.provisioner.clusters import CAPACITY_TYPE, Document, daemon_set, owned_by, pod, required
from tests.unit.provisioner.fleets import machine, node_pool, state_of
from tests.unit.provisioner.random_fleets import any_fleet

ON_DEMAND = node_pool(requirements=[required(CAPACITY_TYPE, "In", "on-demand")])


def consolidated(state: DisruptionState) -> SimulatedCluster:
    command = methods.single_node(state)
    assert command is not None
    return after(state, command)


def pods_by_node(state: DisruptionState) -> dict[str, list[str]]:
    return {node.name: [pod.metadata.name for pod in node.pods] for node in state.basis.nodes}


def test_pods_are_on_the_nodes_where_they_were_simulated() -> None:
    state = state_of(machine("a", 8), machine("b"), pod("a-1", node="a"), pod("b-1", node="b"))
    found = consolidated(state)
    assert (dict(found.moves), found.new, found.held) == ({"default/a-1": "b"}, (), ())
    assert pods_by_node(found.state) == {"b": ["a-1", "b-1"]}
    assert pods_by_node(state) == {"a": ["a-1"], "b": ["b-1"]}, "the cluster before stays as it is"


def test_a_new_node_is_of_the_cheapest_type_and_holds_its_pods() -> None:
    waiting = pod("waits", cpu="500m")
    state = state_of(machine("a", 8), pod("a-1", node="a"), waiting, ON_DEMAND, daemon_set(cpu="100m"))
    found = consolidated(state)
    ((name, new),) = ((each.name, each.node) for each in found.new)
    assert (name, new.instance_type.name, new.offering.zone, new.price) == (
        "new-1",
        "c-2",
        "zone-1",
        0.2,
    )
    assert found.moves == {"default/a-1": "new-1", "default/waits": "new-1"}
    (node,) = found.state.basis.nodes
    assert node.labels["node.kubernetes.io/instance-type"] == "c-2"
    assert node.labels["karpenter.sh/nodepool"] == "pool"
    assert found.state.basis.room(node).free["cpu"] == 1900 - 1500 - 100
    assert found.state.budgets("Empty") == {"pool": 1}, "it is up"


def test_a_new_node_is_no_candidate() -> None:
    found = consolidated(state_of(machine("a", 8), pod("a-1", node="a"), ON_DEMAND))
    assert found.state.candidates == ()
    assert found.state.fixed_nodes == {"new-1"}


def test_names_of_new_nodes_are_new() -> None:
    taken = machine("new-1", 1, annotations={"karpenter.sh/do-not-disrupt": "true"})
    found = consolidated(state_of(taken, machine("a", 16), pod("a-1", node="a", cpu="3"), ON_DEMAND))
    assert [each.name for each in found.new] == ["new-2"]


def test_pods_of_daemon_sets_go_with_their_node() -> None:
    agent = pod("agent", node="a", cpu="10m", metadata=owned_by("DaemonSet", "agent"))
    found = consolidated(state_of(machine("a", 8), machine("b"), pod("a-1", node="a"), agent))
    assert pods_by_node(found.state) == {"b": ["a-1"]}


def test_pods_that_a_budget_holds_are_listed() -> None:
    never: Document = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0},
        "status": {"disruptionsAllowed": 1},
    }
    held = pod("held", node="a", labels={"app": "web"})
    found = consolidated(state_of(machine("a", 8), machine("b"), pod("a-1", node="a"), held, never))
    assert (found.held, dict(found.moves)) == (("default/held",), {"default/a-1": "b"})


def test_pods_that_cost_nothing_move_when_their_empty_node_goes() -> None:
    free = {"annotations": {"karpenter.sh/disruption-cost": str(-(2**30))}}
    keep = {"karpenter.sh/do-not-disrupt": "true"}
    state = state_of(machine("a"), machine("b", annotations=keep), pod("a-1", node="a", metadata=free))
    command = methods.emptiness(state)
    assert command is not None
    found = after(state, command)
    assert dict(found.moves) == {"default/a-1": "b"}
    assert pods_by_node(found.state) == {"b": ["a-1"]}


@pytest.mark.parametrize("seed", range(20))
def test_no_node_has_more_on_it_than_it_can_hold(seed: int) -> None:
    state = any_fleet(seed)
    command = greedy(state, methods.Rules(to_several=True))
    if command is not None:
        left = after(state, command).state.basis
        assert [node.name for node in left.nodes if min(left.room(node).free.values()) < 0] == []
        assert len(left.objects.node_claims) == len(left.objects.nodes)
