"""Planned NodeClaims, and how each pod narrows them."""

from __future__ import annotations

from typing import Any

from tests.unit.provisioner.clusters import (
    TYPES,
    ZONE,
    Document,
    instance_type,
    node_affinity,
    node_pool,
    plan,
    pod,
    requirement,
)

SIZE = "karpenter.kwok.sh/instance-size"
TYPE = "node.kubernetes.io/instance-type"


def labels(claim: Document) -> dict[str, Any]:
    return {requirement["key"]: requirement.get("values") for requirement in claim["requirements"]}


def test_a_claim_says_what_its_pool_and_its_pods_require() -> None:
    pool = node_pool(requirements=[requirement(ZONE, "In", "zone-1", "zone-2")], labels={"team": "x"})
    (claim,) = plan(pool, pod("a", nodeSelector={ZONE: "zone-2"}), pod("b", nodeSelector={"team": "x"}))["claims"]
    assert labels(claim) == {
        ZONE: ["zone-2"],
        "team": ["x"],
        "karpenter.sh/nodepool": ["pool"],
        "karpenter.kwok.sh/kwoknodeclass": ["default"],
        "karpenter.sh/capacity-type": ["on-demand", "spot"],
        TYPE: None,
    }
    assert len(claim["pods"]) == 2


def test_pods_that_contradict_each_other_get_different_nodes() -> None:
    answer = plan(pod("a", nodeSelector={ZONE: "zone-1"}), pod("b", nodeSelector={ZONE: "zone-2"}))
    assert sorted(labels(claim)[ZONE][0] for claim in answer["claims"]) == ["zone-1", "zone-2"]


def test_each_pod_leaves_fewer_types() -> None:
    (claim,) = plan(pod("a", cpu="1"), pod("b", cpu="1"))["claims"]
    assert claim["types"] == ["default", "arm"]


def test_only_capacity_that_can_be_launched_is_named() -> None:
    (claim,) = plan(pod("a", nodeSelector={ZONE: "zone-3"}))["claims"]
    assert labels(claim)["karpenter.sh/capacity-type"] == ["on-demand"]


def test_the_pod_with_the_fewest_neighbours_goes_first() -> None:
    apart = [pod(f"big-{index}", cpu="3") for index in range(2)]
    answer = plan(*apart, *(pod(f"s{index}", cpu="100m") for index in range(4)), types=[TYPES[1]])
    assert sorted(len(claim["pods"]) for claim in answer["claims"]) == [3, 3]


def test_a_requirement_with_two_bounds_has_two_forms() -> None:
    cpu = "karpenter.kwok.sh/instance-cpu"
    pool = node_pool(requirements=[requirement(cpu, "Gt", "2"), requirement(cpu, "Lt", "16")])
    (claim,) = plan(pool, pod("a"))["claims"]
    answer = [
        (requirement["operator"], requirement["values"])
        for requirement in claim["requirements"]
        if requirement["key"] == cpu
    ]
    assert (answer, claim["types"]) == ([("Gte", ["3"]), ("Lte", ["15"])], ["default"])


def test_too_few_values_are_refused_or_lowered() -> None:
    types = [instance_type("a", 2, "2Gi"), instance_type("b", 4, "4Gi")]
    pool = node_pool(requirements=[requirement(TYPE, "Exists", minValues=2)])
    strict = plan(pool, pod("a", cpu="3"), types=types)
    assert strict["errors"]["default/a"].startswith(
        f"minValues requirement is not met for label(s) (label(s)=[{TYPE}]), requirements="
    )
    (claim,) = plan(pool, pod("a", cpu="3"), types=types, lower_min_values=True)["claims"]
    assert (claim["types"], claim["minValuesRelaxed"]) == (["b"], True)
    assert [requirement["minValues"] for requirement in claim["requirements"] if requirement["key"] == TYPE] == [1]


def test_a_pool_whose_types_have_too_few_values_is_skipped() -> None:
    pool = node_pool(requirements=[requirement(TYPE, "Exists", minValues=9)])
    assert plan(pool, pod("a"))["skipped"] == {
        "pool": "NodePool requirements filtered out all compatible available instance types "
        "due to minValues incompatibility"
    }


def test_a_conflict_has_both_sides() -> None:
    pool = node_pool(requirements=[requirement("tier", "In", "y")])
    wish = node_affinity(requirement("tier", "In", "x"))
    assert plan(pool, pod("a", affinity=wish))["errors"] == {
        "default/a": "incompatible requirements, key tier, tier In [x] not in tier In [y]"
    }
