import copy
from collections.abc import Mapping

import pytest

from podium.engine.cluster import Cluster
from podium.lib.time_limit import UNLIMITED
from podium.objects.core import Pod
from podium.provisioner.planners.placed_plans import plan_with_podium, settled_objects
from podium.provisioner.provisioning.candidate_nodes import CandidateNode
from podium.provisioner.provisioning.plan import Plan
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.looks import after_looks
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    HOSTNAME,
    NOW,
    TYPES,
    ZONE,
    catalogue,
    instance_type,
    managed_node,
    node,
    node_claim,
    node_pool,
    pod,
    pod_affinity,
    requirement,
    spread,
)

_APART = {"app": "web"}


def _plan(*objects, types=TYPES, limit=UNLIMITED) -> Plan:
    if not any(manifest["kind"] == "NodePool" for manifest in objects):
        objects = (*objects, node_pool())
    original_objects = copy.deepcopy(objects)
    basis = PlanBasis(read_objects(objects), catalogue(*types), Settings())
    cluster = Cluster.load([{"apiVersion": "v1", **manifest} for manifest in objects])
    plan = plan_with_podium(basis, cluster, NOW, limit)
    assert objects == original_objects
    return plan


def _pods(plan: Plan) -> dict[str, tuple[Pod, ...]]:
    """By node, there or bought, in order of name."""
    return dict(sorted({**plan.existing, **{node.name: node.pods for node in plan.nodes}}.items()))


def _keys_by_node(plan: Plan) -> dict[str, list[str]]:
    return {name: _keys(pods) for name, pods in _pods(plan).items()}


def _candidates(plan: Plan) -> list[CandidateNode]:
    return [node.node for node in plan.nodes]


def _objections(plan: Plan) -> dict[str, Mapping[str, str]]:
    return {key: stay.by_pool for key, stay in plan.unschedulable.items()}


def _bought(plan: Plan) -> list[str]:
    return [candidate.instance_type.name for candidate in _candidates(plan)]


def _keys(pods) -> list[str]:
    return [pod.key for pod in pods]


def test_a_pod_that_fits_on_a_node_that_is_there_needs_no_other():
    plan = _plan(node(), pod("web"))
    assert (_keys_by_node(plan), plan.nodes) == ({"node-1": ["default/web"]}, ())


def test_the_cheapest_node_is_bought_for_pods_that_fit_nowhere():
    plan = _plan(pod("one"), pod("two", cpu="500m"))
    (node_plan,) = plan.nodes
    name, launch = node_plan.name, node_plan.node
    assert (name, launch.template.name, launch.instance_type.name) == ("pool-new-0001", "pool", "small")
    assert launch.offering.capacity_type == "spot"
    assert _keys(_pods(plan)[name]) == ["default/one", "default/two"]
    assert plan.unschedulable == {}


def test_the_rules_of_pods_that_run_count():
    """A pod that runs keeps others out of its zone."""
    running = pod("old", node="node-1", labels=_APART, affinity=pod_affinity("web", anti=True))
    plan = _plan(node(zone="zone-1"), running, pod("new", labels=_APART, affinity=pod_affinity("web", anti=True)))
    (launch,) = _candidates(plan)
    assert launch.offering.zone != "zone-1"
    assert plan.unschedulable == {}


def test_a_pod_that_has_to_be_with_a_later_one_is_tried_again():
    first = pod("a-first", affinity=pod_affinity("web", HOSTNAME))
    plan = _plan(node(), first, pod("b-second", labels=_APART))
    assert _keys_by_node(plan) == {"node-1": ["default/a-first", "default/b-second"]}
    assert (plan.nodes, plan.unschedulable) == ((), {})


def test_pods_that_podium_spreads_get_as_many_nodes_as_that_takes():
    pods = [pod(f"web-{index}", labels=_APART, topologySpreadConstraints=[spread(ZONE)]) for index in range(3)]
    plan = _plan(*pods)
    assert {candidate.offering.zone for candidate in _candidates(plan)} == {"zone-1", "zone-2", "zone-3"}
    assert [len(pods) for pods in _pods(plan).values()] == [1, 1, 1]


def test_a_pod_that_no_node_can_take_stays_with_the_reason_of_each_pool():
    tainted_pool = node_pool("closed", taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}])
    plan = _plan(node(), pod("huge", cpu="64"), tainted_pool, node_pool("open"))
    assert plan.nodes == ()
    assert plan.reasons["default/huge"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    objections = _objections(plan)["default/huge"]
    assert objections["closed"] == "the pod does not tolerate what its nodes are tainted with: dedicated=x:NoSchedule"
    assert objections["open"].startswith("no instance type that can be launched has room for ")


def test_a_pod_of_another_scheduler_stays():
    plan = _plan(pod("other", schedulerName="other"), pod("web"))
    assert [_keys(pods) for pods in _pods(plan).values()] == [["default/web"]]
    why = "no profile is named 'other'"
    assert (plan.reasons, _objections(plan)) == ({"default/other": why}, {"default/other": {"pool": why}})


def test_limits_of_a_pool_are_kept():
    plan = _plan(*(pod(f"web-{index}") for index in range(6)), node_pool(limits={"cpu": "2"}))
    assert _bought(plan) == ["small"]
    assert len(plan.reasons) == 5
    assert {objection["pool"] for objection in _objections(plan).values()} == {
        "its limits leave no room for another node"
    }


def test_the_reason_says_that_another_pod_would_take_the_new_node():
    """The other one, which fits anywhere, would go to the emptier new node before it, and keep it off."""
    apart = {"labels": _APART, "affinity": pod_affinity("web", anti=True), "nodeSelector": {CAPACITY_TYPE: "spot"}}
    cluster = [node(zone="zone-1"), pod("old", node="node-1", cpu="3")]
    pool = node_pool(requirements=[requirement(ZONE, "In", "zone-2")])
    plan = _plan(*cluster, pod("a", labels=_APART, cpu="100m"), pod("b", **apart, cpu="100m"), pool)
    assert _keys_by_node(plan) == {"node-1": ["default/a"]}
    assert _objections(plan) == {
        "default/b": {
            "pool": "with a new node podium would place the pods differently, so that this one or others stay"
        }
    }


def test_without_pools_every_pod_stays_and_says_so():
    basis = PlanBasis(read_objects([pod("web")]), catalogue(), Settings())
    cluster = Cluster.load([{"apiVersion": "v1", **pod("web")}])
    assert plan_with_podium(basis, cluster, NOW).reasons == {"default/web": "no nodes available to schedule pods"}


def test_pods_of_a_leaving_node_are_placed_elsewhere():
    leaving = [managed_node(), node_claim(deletionTimestamp="2026-01-01T00:00:00Z")]
    plan = _plan(*leaving, node("other"), pod("web", node="node-1", metadata={"ownerReferences": []}))
    assert _keys(_pods(plan)["other"]) == ["default/web"]


def test_before_anything_else_pods_that_fit_are_placed():
    objects = [node(), pod("old", node="node-1", cpu="3", priority=-10), pod("fits", cpu="2"), pod("huge", cpu="64")]
    cluster = Cluster.load([{"apiVersion": "v1", **manifest} for manifest in objects])
    cluster_objects = settled_objects(read_objects(objects), cluster)
    assert {pod.metadata.name: pod.node_name for pod in cluster_objects.pods} == {"fits": "node-1", "huge": ""}
    assert len(cluster.pods) == 3


def test_a_node_under_way_is_waited_for():
    plan = _plan(node_claim("claim-7"), pod("web"))
    assert _keys(_pods(plan)["claim-7"]) == ["default/web"]


def test_a_pod_that_is_placed_and_then_preempted_stays():
    """kube-scheduler does not ask a pod without rules of its own about the rules of a nominated one."""
    alone = {"priority": 10, "affinity": pod_affinity("web", HOSTNAME, anti=True)}
    running = pod("old", node="node-1", labels=_APART)
    plan = _plan(
        node(), running, pod("a-alone", **alone), pod("web", cpu="500m", labels=_APART), node_pool(ready=False)
    )
    assert _keys_by_node(plan) == {"node-1": ["default/a-alone"]}
    assert plan.preempted == ("default/old",)
    assert plan.reasons == {"default/web": "preempted by default/a-alone after it was placed on node-1"}


def test_other_pods_are_placed_before_victims_are_gone():
    """Until they are, the larger node has no room for the pod that suits both."""
    running = pod("old", node="large", cpu="4", priority=-10)
    waiting = [
        pod("a-first", priority=10, nodeSelector={HOSTNAME: "large"}),
        pod("b-either"),
        pod("c-small", nodeSelector={HOSTNAME: "small"}),
    ]
    plan = _plan(node("large", cpu="4"), node("small", cpu="1"), running, *waiting, node_pool(ready=False))
    assert _keys_by_node(plan) == {
        "large": ["default/a-first"],
        "small": ["default/b-either"],
    }
    assert list(plan.reasons) == ["default/c-small"]


def test_the_example_of_the_module_holds():
    """Karpenter's rules buy a c-2 for `b`; podium places the pods otherwise, and needs a c-4 instead."""
    types = (instance_type("c-2", 2, "8Gi", 20), instance_type("c-4", 4, "16Gi", 20))
    smaller = [pod(name, cpu="1", priority=10) for name in ("a", "b")]
    plan = _plan(node("old", cpu="4"), pod("big", cpu="3", priority=0), *smaller, types=types)
    assert _bought(plan) == ["c-4"]
    assert _keys_by_node(plan) == {"old": ["default/a", "default/big"], "pool-new-0002": ["default/b"]}


@pytest.mark.long
def test_a_plan_whose_time_is_up_says_what_was_placed_by_then_and_what_was_not_looked_at():
    objects = [node(), *(pod(f"p-{number}", cpu="900m") for number in range(4))]
    counts = set()
    for looks in range(60):
        limit = after_looks(looks)
        plan = _plan(*objects, limit=limit)
        pods = [*_keys(pod for on_node in plan.existing.values() for pod in on_node)]
        pods += [pod.key for bought in plan.nodes for pod in bought.pods]
        assert {*pods} | plan.reasons.keys() == {f"default/p-{number}" for number in range(4)}
        assert limit.is_noticed or not plan.reasons
        counts.add(len(pods))
    assert {0, 4} <= counts
    assert set(_plan(*objects, limit=after_looks(0)).reasons.values()) == {"was not looked at: the time limit is over"}
