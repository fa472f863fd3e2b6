"""Plans as people ask for them."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.cluster import Cluster
from podium.objects.errors import FieldError
from podium.provisioner.cloudprovider.catalogue import built_in_catalogue
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.reports.plan import PlanReport
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.looks import after_looks
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    NOW,
    catalogue,
    instance_type,
    node,
    node_pool,
    owned_by,
    pod,
    requirement,
)


def plan_report(*objects: dict[str, Any], **settings: Any) -> PlanReport:
    return PlanReport.by_karpenter(
        PlanBasis(read_objects([node_pool(), *objects]), catalogue(), Settings(**settings)), NOW
    )


@pytest.mark.parametrize(
    ("document", "outcome"),
    [
        (pod("a", node="node-1"), "is on node node-1"),
        (pod("a"), "goes to node node-1"),
        (pod("a", cpu="5"), "goes to a new node of NodePool pool"),
        (pod("a", cpu="99"), "stays: no instance type has enough resources"),
        (pod("a", nodeSelector={"kubernetes.io/hostname": "n"}), "is ignored: using label"),
        (pod("a", status={"phase": "Succeeded"}), "has ended"),
        (pod("a", metadata=owned_by("DaemonSet", "d")), "is a DaemonSet's"),
        (pod("a", status={"nominatedNodeName": "n"}), "is nominated to node n"),
        (pod("a", status={"phase": "Pending"}, schedulingGates=[{"name": "g"}]), "has scheduling gates"),
        (pod("a", status={"phase": "Pending"}), "was not found unschedulable by kube-scheduler yet"),
    ],
)
def test_why_shows_the_outcome_of_a_pod(document: dict[str, Any], outcome: str) -> None:
    assert plan_report(node(), document).why("a")["outcome"].startswith(outcome)


def test_without_a_pool_every_pod_stays() -> None:
    plan = PlanReport.by_karpenter(PlanBasis(read_objects([pod("a")]), catalogue(), Settings()), NOW)
    assert plan.as_dict()["unschedulable"] == [
        {"pod": "default/a", "reason": "no dynamic nodepools found", "pools": {}}
    ]


def test_planned_nodes_have_reasons_too() -> None:
    answer = plan_report(pod("a", cpu="15"), pod("b", cpu="14")).why("b")
    (reason,) = answer["new_nodes"].values()
    assert "no instance type has enough resources" in reason


def test_a_pod_has_to_be_named() -> None:
    with pytest.raises(FieldError, match="c: there is no such pod"):
        plan_report(pod("a")).why("c")


def test_a_pool_that_wants_too_many_different_values_buys_nothing() -> None:
    types = catalogue(instance_type("a", 4, "4Gi"))
    pools = node_pool(requirements=[requirement(CAPACITY_TYPE, "Exists", minValues=3)])
    plan = PlanReport.by_karpenter(PlanBasis(read_objects([pools, pod("a")]), types, Settings()), NOW).as_dict()
    assert "minValues" in plan["skipped"]["pool"]


def test_the_built_in_catalogue_is_in_the_zones_of_the_nodes() -> None:
    def zones(*objects: dict[str, Any]) -> set[str]:
        instance_type = built_in_catalogue(read_objects(objects)).instance_types[0]
        return {offering.zone for offering in instance_type.offerings}

    assert zones() == zones(node(zone="test-zone-a")) == {f"test-zone-{letter}" for letter in "abcd"}
    assert zones(node("a", zone="x"), node("b", zone="y")) == {"x", "y"}


def placed_report(*objects: dict[str, Any]) -> PlanReport:
    basis = PlanBasis(read_objects([node_pool(), *objects]), catalogue(), Settings())
    cluster = Cluster.load([{"apiVersion": "v1", **manifest} for manifest in objects])
    return PlanReport(basis, plan_with_podium(basis, cluster, NOW))


def test_a_plan_by_podiums_rules_has_the_same_form():
    objects = [node(cpu="2"), pod("web"), pod("api", cpu="1500m"), pod("huge", cpu="64")]
    answer, placed_answer = placed_report(*objects).as_dict(), plan_report(*objects).as_dict()
    assert answer.keys() - placed_answer.keys() == {"preempted"}
    assert answer["new_nodes"][0].keys() - placed_answer["new_nodes"][0].keys() == {"name"}
    (bought,) = answer["new_nodes"]
    assert (bought["name"], bought["cheapest_type"], bought["pods"]) == ("pool-new-0001", "small", ["default/web"])
    assert answer["existing"] == {"node-1": ["default/api"]}
    (stays,) = answer["unschedulable"]
    assert stays["pod"] == "default/huge"
    assert stays["pools"].keys() == {"pool"}
    assert answer["monthly_cost"] == pytest.approx(bought["price"] * 730)
    assert answer["utilisation"]["before"]["cpu"] == {"requested": "0", "allocatable": "2"}
    assert answer["utilisation"]["after"]["cpu"] == {"requested": "2500m", "allocatable": "3900m"}


def test_what_became_of_each_pod_under_podiums_rules():
    running = pod("old", node="node-1", cpu="100m")
    plan = placed_report(node(cpu="2"), running, pod("web"), pod("api", cpu="1500m"), pod("huge", cpu="64"))
    outcomes = {name: plan.why(name)["outcome"] for name in ("old", "web", "api", "default/huge")}
    assert outcomes.pop("default/huge").startswith("stays: 0/2 nodes are available")
    assert outcomes == {
        "old": "is on node node-1",
        "web": "goes to pool-new-0001, a new node of NodePool pool",
        "api": "goes to node node-1",
    }
    with pytest.raises(FieldError, match="there is no such pod"):
        plan.why("nobody")


def test_pods_that_podium_preempts_are_named():
    """The preemptor can go nowhere else, and the other pod has a lower priority."""
    low = pod("low", node="node-1", cpu="3", priority=0)
    high = pod("high", cpu="3", priority=1000, nodeSelector={"kubernetes.io/hostname": "node-1"})
    plan = placed_report(node(cpu="4"), low, high)
    assert plan.as_dict()["preempted"] == ["default/low"]
    assert plan.why("high")["outcome"] == "goes to node node-1"


def test_pods_whose_turn_does_not_come_in_time_stay_and_the_plan_is_partial() -> None:
    basis = PlanBasis(
        read_objects([node_pool(), *(pod(f"p-{number}") for number in range(5))]), catalogue(), Settings()
    )
    plan = PlanReport.by_karpenter(basis, NOW, limit=after_looks(2)).as_dict()
    assert plan["partial"] is True
    assert [len(new_node["pods"]) for new_node in plan["new_nodes"]] == [2]
    assert [refusal["reason"] for refusal in plan["unschedulable"]] == ["was not looked at: the time limit is over"] * 3
    assert "partial" not in PlanReport.by_karpenter(basis, NOW).as_dict()
