"""NodePools and instance types for a cluster that has no Karpenter, made from its nodes.

Owns which nodes are of one kind, and what a further node of that kind would be like. Changes nothing.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import msgspec

from podium.objects.core import Taint
from podium.objects.meta import ObjectMeta
from podium.objects.requests import Requests, whole_amounts
from podium.objects.resource_names import CPU, MEMORY
from podium.provisioner.apis.dialects import describes_instance_types
from podium.provisioner.apis.labels import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    KWOK_WELL_KNOWN,
    NODE_POOL,
    ON_DEMAND,
    OS,
    REGION,
    SIMULATED,
    SPOT,
    WELL_KNOWN,
    WINDOWS_BUILD,
    ZONE,
    current_name,
    is_restricted_label,
)
from podium.provisioner.apis.objects import (
    READY_CLAIM,
    NodeClaim,
    NodeClaimSpec,
    NodeClaimStatus,
    NodePool,
    ProvidedNode,
)
from podium.provisioner.cloudprovider.catalogue import Catalogue, size_rank
from podium.provisioner.cloudprovider.dialect_labels import with_dialects
from podium.provisioner.cloudprovider.instance_types import InstanceType, Offering, Overhead
from podium.provisioner.scheduling.amounts import smallest
from podium.provisioner.scheduling.requirements import Requirement, Requirements
from podium.provisioner.scheduling.taints import is_ephemeral
from podium.provisioner.state.left_out import has_capacity, is_example
from podium.provisioner.state.manifests import ANY_NODE_CLASS, ready_pool

NODE_GROUP_LABELS: Final = (
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "kops.k8s.io/instancegroup",
    "node.cluster.x-k8s.io/deployment-name",
    "doks.digitalocean.com/node-pool",
)
"""The labels by which providers name the node groups that Cluster Autoscaler scales; the first that is there counts."""

DEFAULT_POOL: Final = "default"
"""The NodePool of nodes without such a label."""

_PASSING_TAINTS: Final = (
    "node.kubernetes.io/",
    "DeletionCandidateOfClusterAutoscaler",
    "ToBeDeletedByClusterAutoscaler",
)
_SPOT_LABELS: Final = (
    (CAPACITY_TYPE, SPOT),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("cloud.google.com/gke-spot", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)
_OF_THE_TYPE: Final = WELL_KNOWN | {HOSTNAME, REGION, WINDOWS_BUILD}
_replace = msgspec.structs.replace
_NO_OVERHEAD: Final = Overhead({}, {}, {})


@dataclass(frozen=True)
class Adopted:
    """The NodePools, NodeClaims and instance types that stand for a cluster's nodes.

    Attributes:
        nodes: The nodes, with the labels that they would have if Karpenter had bought them.
        claims: A NodeClaim for each of them that is not left out.
    """

    node_pools: tuple[NodePool, ...]
    catalogue: Catalogue
    nodes: tuple[ProvidedNode, ...]
    claims: tuple[NodeClaim, ...]


def adopt_nodes(
    all_nodes: Sequence[ProvidedNode], prices: Catalogue, left_out: AbstractSet[str] = frozenset()
) -> Adopted:
    """Return a NodePool for each group of nodes, with the instance types of its nodes in the zones that they are in.

    Args:
        prices: where the price of an instance type is looked up by name. One that is not there has none, only a rank.
        left_out: the names of nodes that get no NodeClaim, since no plan may remove them.
    """
    # Of a cluster that is a control plane and nothing else, more may be bought like it.
    nodes = [node for node in all_nodes if is_example(node)] or [node for node in all_nodes if has_capacity(node)]
    groups: dict[str, list[ProvidedNode]] = defaultdict(list)
    for node in nodes:
        groups[_group_of(node)].append(node)
    pools = [
        ready_pool(
            name,
            _common_labels(members),
            _common_taints(members),
            {
                # By type and zone only: a further node of the group is what its autoscaler would add, one of the kinds
                # that are there.
                INSTANCE_TYPE: sorted({_type_name(member) for member in members}),
                ZONE: sorted({_place_of(member)[0] for member in members}),
            },
        )
        for name, members in sorted(groups.items())
    ]
    types = _types_of(nodes, {instance_type.name: instance_type for instance_type in prices.instance_types})
    names = {node.name for node in nodes}
    foreign = [node for node in all_nodes if node.name not in names]
    managed = tuple(_managed_node(node, name) for name, members in groups.items() for node in members)
    # In the order of `state_nodes`, so that reports and names do not depend on the order of a dump.
    by_name = tuple(sorted(managed, key=lambda node: node.name))
    catalogue = with_dialects(Catalogue(tuple(types), WELL_KNOWN | KWOK_WELL_KNOWN), with_amounts=False)
    claims = tuple(_claim_of(node) for node in by_name if node.name not in left_out)
    all_in_order = sorted((*by_name, *foreign), key=lambda node: node.name)
    return Adopted(tuple(pools), catalogue, tuple(all_in_order), claims)


def with_types_of_nodes(nodes: Sequence[ProvidedNode], catalogue: Catalogue | None) -> Catalogue:
    """Return the catalogue with the instance types of these nodes, each as large as its smallest node.

    An instance type that the catalogue has keeps its offerings and labels, and gets what its nodes have for pods.

    Args:
        catalogue: None for the instance types of the nodes alone.
    """
    types = catalogue.instance_types if catalogue is not None else ()
    types_of_nodes = _types_of(nodes, {instance_type.name: instance_type for instance_type in types})
    measured = {instance_type.name: instance_type for instance_type in types_of_nodes}
    names = {instance_type.name for instance_type in types}
    all_types = [
        dataclasses.replace(instance_type, capacity=measured[instance_type.name].capacity, overhead=_NO_OVERHEAD)
        if instance_type.name in measured
        else instance_type
        for instance_type in types
    ]
    all_types += [instance_type for instance_type in types_of_nodes if instance_type.name not in names]
    well_known = WELL_KNOWN | KWOK_WELL_KNOWN | (catalogue.well_known if catalogue is not None else frozenset())
    return with_dialects(Catalogue(tuple(all_types), well_known), with_amounts=False)


def _managed_node(node: ProvidedNode, pool: str) -> ProvidedNode:
    zone, kind = _place_of(node)
    managed_labels = {NODE_POOL: pool, INSTANCE_TYPE: _type_name(node), ZONE: zone, CAPACITY_TYPE: kind}
    labels = {**node.metadata.labels, **managed_labels, **dict.fromkeys(SIMULATED, "true")}
    # Nodes and NodeClaims are joined by the machine's id, which clusters on bare metal do not have.
    machine = node.spec.provider_id or f"node://{node.name}"
    return _replace(
        node,
        metadata=_replace(node.metadata, labels=labels),
        spec=_replace(node.spec, provider_id=machine),
    )


def _claim_of(node: ProvidedNode) -> NodeClaim:
    """Return a NodeClaim that is as old as the node, and was never in use."""
    status = NodeClaimStatus(
        provider_id=node.spec.provider_id,
        capacity=node.status.capacity,
        allocatable=node.status.allocatable,
        conditions=READY_CLAIM,
    )
    metadata = ObjectMeta(
        name=node.name, labels=node.metadata.labels, creation_timestamp=node.metadata.creation_timestamp
    )
    return NodeClaim(metadata=metadata, spec=NodeClaimSpec(node_class_ref=ANY_NODE_CLASS), status=status)


def _group_of(node: ProvidedNode) -> str:
    labels = node.metadata.labels
    return next((labels[label] for label in NODE_GROUP_LABELS if labels.get(label)), DEFAULT_POOL)


def _common_labels(nodes: Sequence[ProvidedNode]) -> dict[str, str]:
    """Return the labels of all these nodes that are not of their instance types."""
    first, *other_nodes = nodes
    well_known = WELL_KNOWN | KWOK_WELL_KNOWN
    return {
        key: value
        for key, value in sorted(first.metadata.labels.items())
        # A new node gets its own hostname, zone and type; Karpenter's API refuses restricted labels in a NodePool.
        if current_name(key) not in _OF_THE_TYPE
        and not _is_of_the_type(key)
        and not is_restricted_label(key, well_known)
        and all(other_node.metadata.labels.get(key) == value for other_node in other_nodes)
    }


def _common_taints(nodes: Sequence[ProvidedNode]) -> list[Taint]:
    """Return the taints of all these nodes that a new one would have, too."""
    first, *other_nodes = nodes
    return [
        # A taint that passes, such as that of a node which is not ready, would keep pods off nodes that are yet to
        # come.
        taint
        for taint in first.spec.taints
        if not is_ephemeral(taint)
        and not taint.key.startswith(_PASSING_TAINTS)
        and all(taint in other_node.spec.taints for other_node in other_nodes)
    ]


def _types_of(nodes: Sequence[ProvidedNode], types_by_name: Mapping[str, InstanceType]) -> list[InstanceType]:
    by_kind: dict[tuple[str, str, str], list[ProvidedNode]] = defaultdict(list)
    for node in nodes:
        labels = node.metadata.labels
        by_kind[(_type_name(node), labels.get(ARCH, "amd64"), labels.get(OS, "linux"))].append(node)
    instance_types: list[InstanceType] = []
    for (name, arch, system), members in sorted(by_kind.items()):
        # Nodes of one type may differ a little; a new one has at least what the smallest has.
        allocatable = _allocatable(members[0])
        for other_member in members[1:]:
            allocatable = smallest(allocatable, _allocatable(other_member))
        priced = types_by_name.get(name)
        offerings = tuple(
            _offering(priced, allocatable, zone, kind)
            for zone, kind in sorted({_place_of(member) for member in members})
        )
        values = {
            INSTANCE_TYPE: [name],
            ARCH: [arch],
            OS: [system],
            ZONE: [offering.zone for offering in offerings],
            CAPACITY_TYPE: [offering.capacity_type for offering in offerings],
        }
        values |= {key: [value] for key, value in _labels_of_type(members).items()}
        requirements = Requirements(Requirement.of(key, "In", requirement) for key, requirement in values.items())
        instance_types.append(
            InstanceType(
                name=name,
                requirements=requirements,
                offerings=offerings,
                capacity=allocatable,
                overhead=_NO_OVERHEAD,
            )
        )
    return instance_types


def _labels_of_type(nodes: Sequence[ProvidedNode]) -> dict[str, str]:
    """Return the labels of all these nodes that describe their instance type."""
    first, *other_nodes = nodes
    return {
        current_name(key): value
        for key, value in first.metadata.labels.items()
        if (current_name(key) == REGION or _is_of_the_type(key))
        and value
        and all(other_node.metadata.labels.get(key) == value for other_node in other_nodes)
    }


def _is_of_the_type(key: str) -> bool:
    """Return True if a label describes the instance type, and neither the place nor the way in which it was bought."""
    is_core = current_name(key) in _OF_THE_TYPE or any(key == label for label, _ in _SPOT_LABELS)
    return not is_core and describes_instance_types(key)


def _type_name(node: ProvidedNode) -> str:
    labels = node.metadata.labels
    # Bare metal has no instance type. Nodes of the same size are the same type, then.
    name = labels.get(INSTANCE_TYPE) or labels.get("beta.kubernetes.io/instance-type")
    if name:
        return name
    amounts = _allocatable(node)
    return f"{amounts.get(CPU, 0) / 1000:g}-cores-{amounts.get(MEMORY, 0) / 2**30:.0f}-gib"


def _allocatable(node: ProvidedNode) -> Requests:
    return whole_amounts(node.status.allocatable or node.status.capacity, "status.allocatable")


def _place_of(node: ProvidedNode) -> tuple[str, str]:
    """Return the node's zone and capacity type."""
    labels = node.metadata.labels
    zones = [value for key, value in labels.items() if current_name(key) == ZONE and value]
    is_spot = any(labels.get(key) == value for key, value in _SPOT_LABELS)
    return labels.get(ZONE) or next(iter(zones), "default"), SPOT if is_spot else ON_DEMAND


def _offering(priced: InstanceType | None, allocatable: Requests, zone: str, kind: str) -> Offering:
    price = _price(priced, zone, kind)
    return Offering(
        requirements=Requirements.of_labels({CAPACITY_TYPE: kind, ZONE: zone}),
        # Without a price a smaller node must still count as cheaper, or consolidation could not compare; it is not
        # shown.
        price=price or size_rank(allocatable),
        is_priced=price > 0 and priced is not None and priced.is_priced(Requirements.of_labels({CAPACITY_TYPE: kind})),
    )


def _price(instance_type: InstanceType | None, zone: str, kind: str) -> float:
    """Return the catalogue's price in this zone, or else its lowest in any; 0 if it has no price."""
    if instance_type is None:
        return 0.0
    prices = [offering.price for offering in instance_type.offerings if offering.capacity_type == kind]
    return instance_type.price_of(zone, kind) or min(prices, default=0.0)
