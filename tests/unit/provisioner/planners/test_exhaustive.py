"""The search that proves a purchase to be the cheapest."""

from random import Random

import pytest

from podium.engine.cluster import Cluster
from podium.provisioner.planners.exhaustive import NODES_MAX, may_be_better
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.provisioning.plan import Plan, Proof
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.looks import after_looks
from tests.unit.provisioner.clusters import NOW, catalogue, instance_type, node, node_pool, pod

TYPE = "node.kubernetes.io/instance-type"
ODD = (
    instance_type("c-4", 4, "8Gi", 20, price=1.0),
    instance_type("c-8", 8, "16Gi", 20, price=1.9),
    instance_type("c-12", 12, "24Gi", 20, price=2.6),
)


def _plan(*objects, types=ODD, limit=None, search="exhaustive") -> Plan:
    basis = PlanBasis(read_objects([*objects, node_pool()]), catalogue(*types), Settings())
    cluster = Cluster.load([{"apiVersion": "v1", **manifest} for manifest in objects])
    arguments = {} if limit is None else {"limit": limit}
    return plan_with_podium(basis, cluster, NOW, search=search, **arguments)


def _bought(plan: Plan) -> list[str]:
    return sorted(node.node.instance_type.name for node in plan.nodes)


def test_the_cheapest_purchase_is_proven():
    plan = _plan(*(pod(f"web-{index}", cpu="3") for index in range(3)))
    assert _bought(plan) == ["c-12"]
    assert plan.proof is not None
    assert (plan.proof.is_cheapest, plan.unschedulable) == (True, {})
    assert plan.proof.text.startswith("Proven: no purchase")


def test_nothing_to_buy_is_proven_too():
    plan = _plan(node(), pod("web"))
    assert (plan.nodes, plan.proof is not None and plan.proof.is_cheapest) == ((), True)


def test_a_larger_purchase_has_a_bound():
    plan = _plan(*(pod(f"web-{index:02}", cpu="11") for index in range(8)))
    assert plan.proof is not None
    assert len(plan.nodes) == 8
    assert (plan.proof.is_cheapest, 0 < plan.proof.lower_bound < plan.proof.price) == (False, True)
    assert plan.proof.text.startswith("Not proven: at least ")


@pytest.mark.long
def test_a_larger_purchase_is_made_of_the_nodes_of_its_bound_if_they_cost_less():
    sizes = ((4, 2, 0.25), (8, 2, 0.24), (16, 2, 0.22), (8, 4, 0.27), (16, 4, 0.26))
    types = tuple(instance_type(f"c-{cpu}", cpu, f"{gib * cpu}Gi", 40, price=cpu * price) for cpu, gib, price in sizes)
    chance = Random(0)
    amounts = [(chance.choice("123"), chance.choice(("1Gi", "4Gi", "9Gi"))) for _ in range(60)]
    pods = [pod(f"web-{index:02}", cpu=cpu, memory=memory) for index, (cpu, memory) in enumerate(amounts)]
    plan, greedy_plan = (_plan(*pods, types=types, search=search) for search in ("exhaustive", "greedy"))
    assert plan.unschedulable == {}
    assert len(plan.nodes) > NODES_MAX
    assert _price(plan) < _price(greedy_plan)


def _price(plan: Plan) -> float:
    return sum(node.node.price for node in plan.nodes)


def test_the_proof_names_the_number_of_nodes_unless_more_cannot_cost_less():
    assert Proof(2.0, 2.0, is_cheapest=True, nodes_max=6).text == "Proven: no purchase places as many pods for less"
    text = "Proven: no purchase of at most 6 nodes places as many pods for less"
    assert Proof(2.0, 1.5, is_cheapest=True, nodes_max=6).text == text
    # Seven of the cheapest node cost 7.0.
    plan = _plan(pod("web", cpu="11"))
    assert plan.proof is not None
    assert plan.proof.text == "Proven: no purchase places as many pods for less"


def test_weights_of_node_pools_do_not_count():
    heavy = node_pool("heavy", weight=100, requirements=[{"key": TYPE, "operator": "In", "values": ["c-12"]}])
    basis = PlanBasis(read_objects([pod("web", cpu="3"), heavy, node_pool()]), catalogue(*ODD), Settings())
    cluster = Cluster.load([{"apiVersion": "v1", **pod("web", cpu="3")}])
    assert _bought(plan_with_podium(basis, cluster, NOW)) == ["c-12"]
    assert _bought(plan_with_podium(basis, cluster, NOW, search="exhaustive")) == ["c-4"]


def test_what_is_not_proven_in_time_says_so():
    proof = Proof(2.0, 1.5, is_cheapest=False, nodes_max=6, seconds=10.0)
    assert proof.text == "Not proven within 10 s, best so far: at least 1.5000 per hour is needed, 25.0% less"
    assert proof.as_dict()["gap"] == 0.25


def test_a_search_that_the_time_ends_leaves_the_plan_whole():
    pods = [pod(f"web-{index}", cpu="3", memory="5Gi") for index in range(4)]
    whole_plan = _plan(*pods)
    for looks in (60, 80, 100):
        limit = after_looks(looks)
        plan = _plan(*pods, limit=limit)
        if plan.proof is not None and not plan.proof.is_cheapest:
            assert len(plan.nodes) >= len(whole_plan.nodes)


def test_without_prices_no_amount_is_shown():
    proof = Proof(2.0, 1.5, is_cheapest=False, is_priced=False)
    assert (proof.text, proof.as_dict()["lower_bound"]) == ("Not proven: a cheaper one saves at most 25.0%", None)


def test_counts_compare_from_the_highest_priority_on():
    assert may_be_better((2, 3), (1, 5), is_cheaper=False)
    assert not may_be_better((1, 9), (2, 5), is_cheaper=True)
    assert may_be_better((2, 5), (2, 5), is_cheaper=True)
    assert not may_be_better((2, 5), (2, 5), is_cheaper=False)
