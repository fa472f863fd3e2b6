"""Nodes that are bought for gangs: for a whole gang, or none."""

import pytest

from podium.engine.cluster import Cluster
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.provisioning.plan import Plan, PlannedGang
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.gang_manifests import COSCHEDULING, LABEL, MIN_MEMBER, UPSTREAM, group
from tests.unit.provisioner.clusters import (
    HOSTNAME,
    NOW,
    ZONE,
    catalogue,
    instance_type,
    node,
    node_pool,
    pod,
)

TYPES = (instance_type("c-4", 4, "8Gi"), instance_type("c-8", 8, "16Gi"))
KINDS = pytest.mark.parametrize("kind", [UPSTREAM, COSCHEDULING])


def _members(kind: str, count: int, gang: str = "train", **fields):
    return [_member(kind, f"{gang}-{index}", gang, **fields) for index in range(count)]


def _member(kind: str, name: str, gang: str = "train", **fields):
    fields = {"cpu": "3", **fields}
    if kind == COSCHEDULING:
        return pod(name, labels={LABEL: gang}, **fields)
    return pod(name, schedulingGroup={"podGroupName": gang}, **fields)


def _plan(*objects, types=TYPES) -> Plan:
    if not any(manifest["kind"] == "NodePool" for manifest in objects):
        objects = (*objects, node_pool())
    cluster_objects = [manifest for manifest in objects if manifest["kind"] != "NodePool"]
    cluster = Cluster.load([{"apiVersion": "v1", **manifest} for manifest in cluster_objects])
    read = read_objects([manifest for manifest in objects if manifest["kind"] != "PodGroup"])
    return plan_with_podium(PlanBasis(read, catalogue(*types), Settings()), cluster, NOW)


def _bought(plan: Plan) -> list[str]:
    return [node.node.instance_type.name for node in plan.nodes]


def _zones(plan: Plan) -> list[str]:
    return [node.node.offering.zone for node in plan.nodes]


def _gang(plan: Plan) -> PlannedGang:
    (gang,) = plan.gangs
    return gang


@KINDS
def test_nodes_are_bought_for_all_members_of_a_gang(kind: str):
    plan = _plan(group(kind, 4), *_members(kind, 4))
    assert sum(len(node.pods) for node in plan.nodes) == 4
    assert (plan.unschedulable, _gang(plan)) == ({}, PlannedGang("default/train", kind, 4, 4, 4))


@KINDS
def test_no_node_is_bought_for_a_gang_that_the_limits_do_not_let_start(kind: str):
    pool = node_pool(limits={"cpu": "8"})
    plan = _plan(group(kind, 4), *_members(kind, 4), pool, types=TYPES[:1])
    assert (plan.nodes, plan.existing) == ((), {})
    text = "2 of 4 members fit; 2 more c-4, over the limit of 8 cpu of NodePool pool"
    assert _gang(plan) == PlannedGang("default/train", kind, 4, 4, 0, text)
    assert set(plan.reasons.values()) == {text}


def test_limits_of_nodes_count_too():
    pool = node_pool(limits={"nodes": "3"})
    plan = _plan(group(UPSTREAM, 4), *_members(UPSTREAM, 4), pool, types=TYPES[:1])
    assert (plan.nodes, _gang(plan).text) == (
        (),
        "3 of 4 members fit; 1 more c-4, over the limit of 3 nodes of NodePool pool",
    )


def test_what_is_not_spent_on_a_gang_is_left_for_other_pods():
    pool = node_pool(limits={"cpu": "8"})
    plan = _plan(group(UPSTREAM, 4), *_members(UPSTREAM, 4), pod("web", cpu="2"), pool)
    assert [[pod.key for pod in node.pods] for node in plan.nodes] == [["default/web"]]
    assert set(plan.unschedulable) == {f"default/train-{index}" for index in range(4)}


def test_of_two_gangs_that_need_the_same_nodes_the_one_of_higher_priority_starts():
    pool = node_pool(limits={"cpu": "8"})
    first = [group(UPSTREAM, 2, "low", priority=0), *_members(UPSTREAM, 2, "low")]
    second = [group(UPSTREAM, 2, "top", priority=10), *_members(UPSTREAM, 2, "top", priority=10)]
    plan = _plan(*first, *second, pool)
    assert {pod.key for node in plan.nodes for pod in node.pods} == {"default/top-0", "default/top-1"}
    assert {gang.key: gang.starts for gang in plan.gangs} == {"default/top": True, "default/low": False}


def test_of_two_gangs_that_fit_one_by_one_but_not_together_one_starts():
    pool = node_pool(limits={"cpu": "8"})
    gangs = [group(UPSTREAM, 2, name) for name in "ab"]
    plan = _plan(*gangs, *_members(UPSTREAM, 2, "a"), *_members(UPSTREAM, 2, "b"), pool)
    assert [gang.starts for gang in plan.gangs] == [True, False]
    assert sum(len(node.pods) for node in plan.nodes) == 2


@KINDS
def test_a_gang_that_runs_in_part_needs_only_the_others(kind: str):
    running = _member(kind, "train-9", node="node-1", cpu="1")
    plan = _plan(group(kind, 3), node(), running, *_members(kind, 2))
    assert sum(len(node.pods) for node in plan.nodes) + sum(map(len, plan.existing.values())) == 2
    assert _gang(plan).starts


@KINDS
def test_a_gang_with_more_members_than_it_needs_starts_with_as_many_as_the_limits_allow(kind: str):
    pool = node_pool(limits={"cpu": "12"})
    plan = _plan(group(kind, 2), *_members(kind, 4), pool, types=TYPES[:1])
    assert (len(plan.nodes), _gang(plan).count, _gang(plan).starts) == (3, 3, True)
    assert len(plan.unschedulable) == 1


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([*_members(UPSTREAM, 2)], "the PodGroup default/train does not exist, and no member is tried before it does"),
        ([group(UPSTREAM, 4), *_members(UPSTREAM, 2)], "only 2 of the 4 pods that it needs exist"),
        ([group(COSCHEDULING, 4), *_members(COSCHEDULING, 2)], "only 2 of the 4 pods that it needs exist"),
        (
            [*_members(COSCHEDULING, 2)],
            "neither a PodGroup default/train nor an annotation of the pod says how many members the gang needs",
        ),
        (
            [group(UPSTREAM, 2, priority=5), *_members(UPSTREAM, 2)],
            "all pods in a single pod group should have the same priority as the pod group's priority, got 0 and 5",
        ),
    ],
)
def test_nothing_is_bought_for_a_gang_that_is_never_tried(parts, text: str):
    plan = _plan(*parts)
    assert (plan.nodes, set(plan.reasons.values()), _gang(plan).text) == ((), {text}, text)


def test_members_in_another_namespace_are_of_another_gang():
    elsewhere = _member(UPSTREAM, "train-1", metadata={"namespace": "other"})
    plan = _plan(group(UPSTREAM, 2), _member(UPSTREAM, "train-0"), elsewhere)
    assert plan.nodes == ()
    assert {gang.key: gang.text for gang in plan.gangs} == {
        "default/train": "only 1 of the 2 pods that it needs exist",
        "other/train": "the PodGroup other/train does not exist, and no member is tried before it does",
    }


def test_an_annotation_says_how_many_members_a_gang_needs():
    metadata = {"annotations": {MIN_MEMBER: "2"}}
    plan = _plan(*_members(COSCHEDULING, 2, metadata=metadata))
    assert _gang(plan) == PlannedGang("default/train", COSCHEDULING, 2, 2, 2)


def _topology(key: str):
    return {"schedulingConstraints": {"topology": [{"key": key}]}}


def test_all_nodes_of_a_gang_lie_in_its_domain_and_in_the_cheapest():
    dear = instance_type("c-4", 4, "8Gi", zones=("zone-1",), price=9.0)
    cheap = instance_type("c-4", 4, "8Gi", zones=("zone-2",), price=1.0)
    plan = _plan(group(UPSTREAM, 3, **_topology(ZONE)), *_members(UPSTREAM, 3), types=(dear, cheap))
    assert (_zones(plan), _gang(plan).starts) == (["zone-2"] * 3, True)


def test_a_domain_that_has_room_for_a_part_is_used_if_that_is_cheapest():
    old_objects = [node("old", zone="zone-3", cpu="4")]
    plan = _plan(*old_objects, group(UPSTREAM, 2, **_topology(ZONE)), *_members(UPSTREAM, 2))
    assert (_zones(plan), [*plan.existing]) == (["zone-3"], ["old"])


def test_members_that_run_tie_the_others_to_their_domain():
    old_objects = [node("old", zone="zone-2", cpu="4"), _member(UPSTREAM, "train-9", node="old")]
    plan = _plan(*old_objects, group(UPSTREAM, 3, **_topology(ZONE)), *_members(UPSTREAM, 2))
    assert (set(_zones(plan)), _gang(plan).starts) == ({"zone-2"}, True)


def test_a_gang_that_must_lie_on_one_node_gets_one_that_is_large_enough():
    plan = _plan(group(UPSTREAM, 2, **_topology(HOSTNAME)), *_members(UPSTREAM, 2))
    assert (_bought(plan), _gang(plan).starts) == (["c-8"], True)
    larger = _plan(group(UPSTREAM, 3, **_topology(HOSTNAME)), *_members(UPSTREAM, 3))
    assert (larger.nodes, _gang(larger).starts) == ((), False)


def test_a_label_of_the_pool_may_be_the_domain():
    pools = [node_pool(name, labels={"rack": name}, limits={"cpu": cpu}) for name, cpu in (("r1", "4"), ("r2", "8"))]
    plan = _plan(group(UPSTREAM, 2, **_topology("rack")), *_members(UPSTREAM, 2), *pools)
    assert ({node.pool for node in plan.nodes}, _gang(plan).starts) == ({"r2"}, True)


def _basic(key: str):
    spec = {"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": [{"key": key}]}}
    return {**group(UPSTREAM, 1), "spec": spec}


def test_pods_of_a_group_of_the_basic_policy_get_nodes_in_one_domain():
    cheap = instance_type("c-4", 4, "8Gi", price=1.0, zones=("zone-3",))
    dear = instance_type("d-4", 4, "8Gi", price=9.0)
    plan = _plan(_basic(ZONE), *_members(UPSTREAM, 3), types=(cheap, dear))
    assert set(_zones(plan)) == {"zone-3"}
    assert (plan.unschedulable, _gang(plan)) == ({}, PlannedGang("default/train", UPSTREAM, 0, 3, 3))


def test_pods_of_a_group_of_the_basic_policy_start_in_part_within_the_limits():
    old_node = node("old", cpu="4", zone="zone-2")
    plan = _plan(_basic(ZONE), *_members(UPSTREAM, 3), old_node, node_pool(limits={"nodes": "1"}), types=TYPES[:1])
    assert (list(plan.existing), _zones(plan), len(plan.unschedulable)) == (["old"], ["zone-2"], 1)
    assert _gang(plan).starts
    (reason,) = plan.reasons.values()
    assert reason.startswith(f"the members of default/train share one value of {ZONE}: 0/2 nodes are available")


def test_a_group_of_the_basic_policy_on_one_node_gets_the_one_that_takes_most():
    plan = _plan(_basic(HOSTNAME), *_members(UPSTREAM, 3))
    assert (_bought(plan), [len(node.pods) for node in plan.nodes], len(plan.unschedulable)) == (["c-8"], [2], 1)


def _whole_gang(key: str):
    return group(UPSTREAM, 3, **_topology(key))


@pytest.mark.parametrize("make_group", [_basic, _whole_gang])
def test_nothing_is_bought_for_members_whose_group_runs_on_another_node(make_group):
    running = _member(UPSTREAM, "train-9", node="old")
    plan = _plan(make_group(HOSTNAME), running, *_members(UPSTREAM, 2), node("old", cpu="4"))
    assert plan.nodes == ()
    assert len(plan.unschedulable) == 2


def test_a_group_of_the_basic_policy_without_a_domain_is_planned_pod_by_pod():
    policy = {**group(UPSTREAM, 1), "spec": {"schedulingPolicy": {"basic": {}}}}
    plan = _plan(policy, *_members(UPSTREAM, 3), node_pool(limits={"cpu": "8"}))
    assert (plan.gangs, len(plan.unschedulable)) == ((), 1)


@KINDS
def test_no_pod_is_preempted_for_a_gang(kind: str):
    small = pod("small", cpu="3", node="n1")
    members = _members(kind, 2, priority=10)
    train = group(kind, 2, **({"priority": 10} if kind == UPSTREAM else {}))
    plan = _plan(node("n1", cpu="4"), small, train, *members, node_pool(limits={"nodes": "1"}), types=TYPES[:1])
    assert (plan.nodes, list(plan.preempted)) == ((), [])
    assert _gang(plan).text.startswith("1 of 2 members fit; 1 more c-4")
