"""Where pods go when nodes go, by podium's own plugins."""

from functools import partial

from podium.engine.cluster import Cluster
from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.disruption.simulation import Simulation
from podium.provisioner.planners.placing_simulator import PlacingSimulator
from podium.provisioner.reports.consolidation_plan import plan_consolidation
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.gang_manifests import UPSTREAM, group
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    HOSTNAME,
    NOW,
    catalogue,
    daemon_set,
    pod,
    read_with_groups,
    requirement,
    spread,
)
from tests.unit.provisioner.fleets import TYPES, cluster, machine, node_pool


def _keys(nodes) -> dict[str, list[str]]:
    return {name: [pod.key for pod in pods] for name, pods in nodes.items()}


def _bought_for(simulation: Simulation) -> list[list[str]]:
    return [[pod.key for pod in node.pods] for node in simulation.plan.nodes]


def _state(*parts) -> DisruptionState:
    objects = cluster(*parts, node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")]))
    running_cluster = Cluster.load(
        [{"apiVersion": "v1", **manifest} for manifest in objects if manifest["kind"] in ("Node", "Pod", "PodGroup")]
    )
    make = partial(PlacingSimulator, running_cluster)
    return DisruptionState.of(read_with_groups(objects), catalogue(*TYPES), Settings(), NOW, make)


def _without(name: str, *parts) -> Simulation:
    state = _state(*parts)
    simulation = state.simulator.without([candidate for candidate in state.candidates if candidate.name == name])
    assert simulation is not None
    return simulation


def test_a_pod_goes_to_a_node_that_has_room():
    simulation = _without("a", machine("a"), machine("b"), pod("web", node="a"))
    assert _keys(simulation.plan.existing) == {"b": ["default/web"]}
    assert (simulation.plan.nodes, simulation.stranded) == ((), {})


def test_the_cheapest_node_is_bought_for_a_pod_that_has_no_room():
    (node,) = _without("a", machine("a", 8), pod("web", node="a")).plan.nodes
    assert [instance_type.name for instance_type in node.instance_types] == ["c-2"]
    assert [pod.key for pod in node.pods] == ["default/web"]


def test_a_pod_that_fits_nowhere_is_stranded():
    simulation = _without("a", machine("a"), machine("b"), pod("stays", node="a", nodeSelector={"gpu": "yes"}))
    assert list(simulation.stranded) == ["default/stays"]


def test_a_pod_that_would_be_preempted_is_stranded():
    only_there = {"nodeSelector": {"node.kubernetes.io/instance-type": "c-1"}}
    high = pod("high", node="a", priority=10, **only_there)
    simulation = _without("a", machine("a"), machine("b", 1), pod("low", node="b", priority=-10), high)
    assert simulation.stranded == {"default/low": "would be preempted"}


def test_pods_that_wait_already_are_placed_before_those_of_the_node():
    simulation = _without("a", machine("a"), machine("b"), pod("moves", node="a", cpu="3"), pod("waits", cpu="3"))
    assert _keys(simulation.plan.existing) == {"b": ["default/waits"]}
    assert _bought_for(simulation) == [["default/moves"]]


def test_a_node_counts_until_its_pods_are_placed():
    """It is empty then, so a pod that is spread over hosts would preempt the only one of its kind on another host."""
    web = {"labels": {"app": "web"}}
    moves = pod("moves", node="a", topologySpreadConstraints=[spread(HOSTNAME)], **web)
    simulation = _without("a", machine("a"), machine("b"), moves, pod("low", node="b", priority=-10, **web))
    assert _bought_for(simulation) == [["default/moves"]]
    assert (_keys(simulation.plan.existing), simulation.stranded) == ({}, {})


def test_a_pod_that_the_node_itself_keeps_off_is_placed_once_it_is_gone():
    web = {"labels": {"app": "web"}, "topologySpreadConstraints": [spread(HOSTNAME)]}
    simulation = _without("a", machine("a"), machine("b"), pod("moves", node="a", **web), pod("stays", node="b", **web))
    assert _keys(simulation.plan.existing) == {"b": ["default/moves"]}
    assert simulation.stranded == {}


def test_a_pod_of_a_disruption_budget_has_to_fit_while_the_node_is_there():
    """Until it is ready again, the budget may keep other pods on the node, and with them the node."""
    web = {"labels": {"app": "web"}, "topologySpreadConstraints": [spread(HOSTNAME)]}
    cluster = [machine("a"), machine("b"), pod("moves", node="a", **web), pod("stays", node="b", **web)]
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
        "status": {"disruptionsAllowed": 1},
    }
    assert _without("a", *cluster, budget).stranded == {
        "default/moves": "fits only once the nodes are gone, which its PodDisruptionBudget may prevent"
    }


def test_room_is_kept_for_pods_of_daemon_sets_that_are_still_to_come():
    cluster = [machine("a"), machine("b"), pod("stays", node="b", cpu="2"), pod("moves", node="a", cpu="2")]
    assert _keys(_without("a", *cluster).plan.existing) == {"b": ["default/moves"]}
    assert _keys(_without("a", *cluster, daemon_set(cpu="100m")).plan.existing) == {}


def test_storage_that_a_new_node_is_taken_to_have_is_said_by_a_whole_consolidation():
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"storageClassName": "local", "resources": {"requests": {"storage": "5Gi"}}},
        "status": {"phase": "Pending"},
    }
    storage = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "topolvm.io",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": "topolvm.io"},
            "spec": {"storageCapacity": True},
        },
    ]
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    waits = pod("waits", cpu="200m", volumes=volumes)
    on_demand = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")])
    objects = cluster(machine("a", 16), pod("web", node="a"), waits, claim, *storage, on_demand)
    kinds = ("Node", "Pod", "PersistentVolumeClaim", "StorageClass", "CSIDriver")
    running_cluster = Cluster.load(
        [{"apiVersion": "v1", **manifest} for manifest in objects if manifest["kind"] in kinds]
    )
    make = partial(PlacingSimulator, running_cluster)
    state = DisruptionState.of(read_objects(objects), catalogue(*TYPES), Settings(), NOW, make)
    plan = plan_consolidation(state)
    (command,) = plan.commands
    (warning,) = plan.warnings
    assert warning.startswith(f"node {command.new[0].name} is taken to have enough storage of class local")
    assert "default/waits" in warning


def _gang(count: int, nodes: str, min_count: int):
    members = [
        pod(f"train-{index}", node=nodes[index], schedulingGroup={"podGroupName": "train"}) for index in range(count)
    ]
    return [group(UPSTREAM, min_count), *members]


def test_a_gang_is_never_left_with_fewer_members_than_it_needs():
    simulation = _without("a", machine("a"), machine("b"), machine("c"), *_gang(3, "abc", 3))
    text = "the gang default/train needs 3 of its pods, and 2 would be left while others move"
    assert simulation.stranded == {"default/train-0": text}


def test_a_member_that_its_gang_can_do_without_for_a_while_may_move():
    simulation = _without("a", machine("a"), machine("b"), machine("c"), *_gang(3, "abc", 2))
    assert (simulation.stranded, len(simulation.plan.nodes)) == ({}, 0)


def test_a_member_of_a_gang_that_is_broken_already_has_no_other_place():
    simulation = _without("a", machine("a"), machine("b"), *_gang(1, "a", 3))
    assert simulation.stranded == {"default/train-0": "only 1 of the 3 pods that it needs exist"}


def _free_gang(nodes: str, min_count: int):
    """A gang whose pods cost nothing to evict, so that their nodes count as empty."""
    cheapest = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-2147483648"}}
    members = [
        pod(f"train-{name}", node=name, metadata=cheapest, schedulingGroup={"podGroupName": "train"}) for name in nodes
    ]
    return [group(UPSTREAM, min_count), *members]


def test_nodes_that_count_as_empty_stay_as_far_as_a_gang_needs_their_pods():
    names = "abc"
    plan = plan_consolidation(_state(*map(machine, names), machine("big", 16), *_free_gang(names, 2)))
    assert len([name for name in plan.commands[0].nodes if name in names]) == 1
    assert all(plan.blockers[name] for name in names if name in plan.blockers)


def test_nodes_that_count_as_empty_are_kept_with_the_gang_as_the_reason():
    plan = plan_consolidation(_state(machine("a"), machine("b"), *_free_gang("ab", 2)))
    text = "the gang default/train needs 2 of its pods, and 1 would be left while others move"
    assert (plan.commands, plan.blockers) == ((), {"a": (text,), "b": (text,)})


def test_pods_of_a_gang_that_have_ended_do_not_count():
    status = {"phase": "Succeeded"}
    member = {"schedulingGroup": {"podGroupName": "train"}}
    gang = [pod("train-0", node="a", **member), pod("train-1", node="b", status=status, **member)]
    assert "default/train-0" in _without("a", machine("a"), machine("b"), group(UPSTREAM, 1), *gang).stranded
