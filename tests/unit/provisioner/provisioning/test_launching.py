"""Nodes to buy as a provider is asked for them: their names, and the objects that are made of them."""

from __future__ import annotations

import msgspec

from podium.provisioner.apis.objects import NodeClaim, ProvidedNode
from podium.provisioner.controller.providers.karpenter import node_claim
from podium.provisioner.disruption.sandbox_nodes import (
    claim_of,
    is_being_removed,
    is_bought_here,
    manifest_of,
    removal_of,
)
from podium.provisioner.planners.planner import Planner
from podium.provisioner.provisioning.plan import NodePlan
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.unit.provisioner.clusters import NOW, TYPES, Document, catalogue, node_pool, pod


def node_plans(*documents: Document) -> tuple[NodePlan, ...]:
    """What would be bought for a cluster of these objects and a NodePool."""
    return planned_of(node_pool(labels={"team": "a"}), *documents)


def planned_of(*documents: Document) -> tuple[NodePlan, ...]:
    """What would be bought for a cluster of these objects."""
    objects = read_objects(documents)
    return Planner(catalogue(*TYPES[:2]), Settings()).plan(objects, NOW).nodes


def bought(node_plan: NodePlan) -> Document:
    return {**manifest_of(node_plan, NOW)}


def test_the_same_pods_make_the_same_names_in_any_order() -> None:
    pods = [pod(f"web-{index}") for index in range(7)]
    names = [node_plan.name for node_plan in node_plans(*pods)]
    assert len(set(names)) == 3
    assert [node_plan.name for node_plan in node_plans(*reversed(pods))] == names
    assert all(name.startswith("pool-") for name in names)


def test_other_pods_make_another_name() -> None:
    (first,), (second,) = node_plans(pod("web-0")), node_plans(pod("web-0"))
    assert first.name != second.name


def test_a_node_that_is_there_keeps_its_name_for_itself() -> None:
    pods = [pod(f"web-{index}") for index in range(3)]
    (first,) = node_plans(*pods)
    full = [pod(f"old-{index}", node=first.name) for index in range(3)]
    (second,) = node_plans(bought(first), *pods, *full)
    assert second.name != first.name


def test_a_node_that_was_bought_serves_the_pods_that_it_was_bought_for() -> None:
    pods = [pod(f"web-{index}") for index in range(3)]
    (first,) = node_plans(*pods)
    assert node_plans(bought(first), *pods) == ()


def test_no_more_nodes_are_bought_than_a_pool_may_have() -> None:
    pods = [pod(f"web-{index}", cpu="3") for index in range(4)]
    limited = node_pool(limits={"nodes": "3"})
    first = planned_of(limited, *pods[:1])
    full = pod("old", cpu="3", node=first[0].name)
    assert len(planned_of(*pods, node_pool())) == 4
    assert len(planned_of(*pods, limited)) == 3
    assert len(planned_of(*pods, limited, bought(first[0]), full)) == 2


def test_a_node_claim_has_what_the_plan_requires() -> None:
    (node_plan,) = node_plans(pod("web-0", cpu="3"))
    manifest = node_claim(node_plan)
    assert manifest["metadata"]["name"] == node_plan.name
    assert manifest["metadata"]["labels"] == {"team": "a", "karpenter.sh/nodepool": "pool"}
    spec = manifest["spec"]
    values_by_key = {requirement["key"]: requirement.get("values") for requirement in spec["requirements"]}
    assert values_by_key["node.kubernetes.io/instance-type"] == ["default"]
    assert spec["resources"]["requests"]["cpu"] == "3000m"
    assert spec["nodeClassRef"]["kind"] == "KWOKNodeClass"
    assert msgspec.convert(manifest, NodeClaim).metadata.name == node_plan.name


def test_a_removal_is_written_on_the_node() -> None:
    (node_plan,) = node_plans(pod("web-0"))
    document = bought(node_plan)
    node = msgspec.convert(document, ProvidedNode)
    assert is_bought_here(node)
    assert not is_being_removed(node)
    assert claim_of(node, None).metadata.deletion_timestamp is None
    change = removal_of(node, NOW)
    metadata = {**document["metadata"], "annotations": change["metadata"]["annotations"]}
    leaving = msgspec.convert({**document, "metadata": metadata, "spec": change["spec"]}, ProvidedNode)
    assert is_being_removed(leaving)
    assert claim_of(leaving, NOW).metadata.deletion_timestamp is not None
    assert [taint.key for taint in leaving.spec.taints] == ["karpenter.sh/disrupted"]
