"""Objects of planned nodes as they are once they were bought: what a plan goes on with.

Owns the form of a Node and its NodeClaim that exist in a plan only.
"""

from __future__ import annotations

from podium.objects.core import NodeCondition, NodeStatus
from podium.objects.meta import ObjectMeta, ResourceList
from podium.provisioner.apis.labels import HOSTNAME, INSTANCE_TYPE, SIMULATED
from podium.provisioner.apis.objects import (
    READY_CLAIM,
    NodeClaim,
    NodeClaimSpec,
    NodeClaimStatus,
    ProvidedNode,
    ProvidedNodeSpec,
)
from podium.provisioner.provisioning.plan import NodePlan
from podium.provisioner.scheduling.amounts import quantities
from podium.provisioner.scheduling.requirements import Requirements


def launched_node(node: NodePlan) -> ProvidedNode:
    """Return the Node of a planned node that has a candidate and a name."""
    capacity, allocatable = _amounts(node)
    return ProvidedNode(
        metadata=ObjectMeta(name=node.name, labels=_labels(node)),
        spec=ProvidedNodeSpec(taints=node.template.taints, provider_id=f"plan://{node.name}"),
        status=NodeStatus(
            capacity=capacity, allocatable=allocatable, conditions=(NodeCondition(type="Ready", status="True"),)
        ),
    )


def launched_claim(node: NodePlan) -> NodeClaim:
    """Return its NodeClaim."""
    capacity, allocatable = _amounts(node)
    return NodeClaim(
        metadata=ObjectMeta(name=node.name, labels=_labels(node)),
        spec=NodeClaimSpec(node_class_ref=node.template.pool.spec.template.spec.node_class_ref),
        status=NodeClaimStatus(
            provider_id=f"plan://{node.name}", capacity=capacity, allocatable=allocatable, conditions=READY_CLAIM
        ),
    )


def _labels(node: NodePlan) -> dict[str, str]:
    parts = (node.requirements, node.node.instance_type.requirements, node.node.offering.requirements)
    requirements = Requirements(requirement for part in parts for requirement in part)
    # One value of several: which one the provider gives is open, and the plan must go on with one of them.
    labels = {requirement.key: min(requirement.values) for requirement in requirements if requirement.operator == "In"}
    names = {INSTANCE_TYPE: node.node.instance_type.name, HOSTNAME: node.name}
    return {**labels, **dict.fromkeys(SIMULATED, "true"), **names}


def _amounts(node: NodePlan) -> tuple[ResourceList, ResourceList]:
    """Return the node's capacity and its allocatable resources."""
    instance_type, offering = node.node.instance_type, node.node.offering
    capacity = {**instance_type.capacity, **(offering.capacity_override or {})}
    return quantities(capacity), quantities(instance_type.allocatable_of(offering))
