"""Nodes as they would be if they were bought: one instance type of a NodePool, in one of its offerings.

Owns which labels and amounts such a node has, and in which order offerings are tried. Never decides whether a pod goes
there.

Source: karpenter kwok/cloudprovider/cloudprovider.go (toNode) for what a new node looks like, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Any

from podium.objects.core import Taint
from podium.objects.meta import ResourceList
from podium.objects.requests import Requests
from podium.objects.resource_names import PODS
from podium.provisioner.apis.labels import CSI_ZONES, HOSTNAME, INSTANCE_TYPE, RESERVED
from podium.provisioner.cloudprovider.instance_type_filter import DaemonGroup
from podium.provisioner.cloudprovider.instance_types import InstanceType, Offering, fits
from podium.provisioner.provisioning.templates import Template
from podium.provisioner.scheduling.amounts import quantities
from podium.provisioner.scheduling.host_ports import HostPort
from podium.provisioner.scheduling.requirements import Requirement, Requirements
from podium.provisioner.state.state_node import StateNode

_DAEMONS_NAMESPACE = "kube-system"


@dataclass(frozen=True, eq=False)
class CandidateNode:
    """A node that can be bought.

    Attributes:
        requirements: What the NodePool, and the pods that it is for, want of it.
        group: The DaemonSets that will run on it.
    """

    template: Template
    requirements: Requirements
    group: DaemonGroup
    instance_type: InstanceType
    offering: Offering

    @property
    def price(self) -> float:
        """The amount that it is compared by: the price per hour, or what takes its place."""
        return self.offering.price

    @property
    def shown_price(self) -> float | None:
        """The price per hour; None if it is not known."""
        return self.offering.price if self.offering.is_priced else None

    @property
    def allocatable(self) -> Requests:
        """The resources that pods can use, DaemonSets' pods among them."""
        return self.instance_type.allocatable_of(self.offering)

    def labels(self, name: str) -> Mapping[str, str]:
        """Return the node's labels, by key. Where several values are allowed, it is the first by name."""
        type_requirement = Requirement.of(INSTANCE_TYPE, "In", (self.instance_type.name,))
        requirements = (
            self.requirements.union(self.instance_type.requirements)
            .union(self.offering.requirements)
            .add(type_requirement)
        )
        labels = {requirement.key: label for requirement in requirements if (label := _label(requirement)) is not None}
        return dict(sorted({**labels, HOSTNAME: name}.items()))

    def variants(self) -> Iterator[CandidateNode]:
        """Yield the same node with each of the values that labels which the NodePool chooses may have.

        A label of the instance type or the offering has its value from there.
        """
        choices = [
            [Requirement(requirement.key, False, frozenset((value,))) for value in _values_in_order(requirement)]
            for requirement in sorted(self.requirements, key=lambda requirement: requirement.key)
            if len(requirement.values) > 1
            and not requirement.complement
            and requirement.key not in self.instance_type.requirements
            and requirement.key not in self.offering.requirements
        ]
        if not choices:
            yield self
            return
        for values in product(*choices):
            yield replace(self, requirements=self.requirements.union(values))

    def manifests(
        self, name: str, more_labels: Mapping[str, str] = MappingProxyType({})
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the node of that name, and pods that stand for those of its DaemonSets.

        Args:
            more_labels: those that drivers set once the node is up.
        """
        capacity = quantities(self.instance_type.capacity)
        # The storage drivers of providers set their own label of the zone on each node, which volumes may ask for.
        labels = {**dict.fromkeys(CSI_ZONES, self.offering.zone), **more_labels, **self.labels(name)}
        yield _node(name, labels, self.template.taints, self.allocatable, capacity)
        yield from daemons(name, self.group.overhead, self.group.ports)


def candidate_nodes(
    template: Template, groups: Sequence[DaemonGroup], requirements: Requirements, well_known: AbstractSet[str]
) -> list[CandidateNode]:
    """Return all nodes that can be bought under these requirements, the cheapest first, then by names.

    Reserved capacity is left out: whether it is free depends on the whole plan.
    """
    candidates = [
        CandidateNode(template, requirements, group, instance_type, offering)
        for group in groups
        for instance_type in group.instance_types
        if instance_type.requirements.intersects(requirements)
        for offering in instance_type.offerings
        # A reservation has few places, which a search over candidates does not count; `candidate_of` does.
        if offering.capacity_type != RESERVED
        and offering.is_launchable
        and requirements.is_compatible(offering.requirements, well_known)
    ]
    return sorted(candidates, key=_order)


def candidate_of(
    template: Template,
    groups: Sequence[DaemonGroup],
    requirements: Requirements,
    instance_types: Iterable[InstanceType],
    well_known: AbstractSet[str],
    places: Mapping[Offering, int],
) -> CandidateNode | None:
    """Return the node that is bought for a NodeClaim: the cheapest of its instance types, in its cheapest offering.

    Args:
        places: by reserved offering, how many nodes of this plan have it already.

    # kwok launches the cheapest offering and picks any of equal ones; by name the choice can be repeated.
    Returns: None if no offering is left.
    """
    candidates = [
        CandidateNode(template, requirements, group, instance_type, offering)
        for instance_type in instance_types
        for offering in instance_type.offerings
        if offering.is_launchable
        and requirements.is_compatible(offering.requirements, well_known)
        and (offering.capacity_type != RESERVED or places.get(offering, 0) < offering.reservation_capacity)
        for group in groups
        if instance_type in group.instance_types
    ]
    return min(candidates, key=_order, default=None)


def has_room(candidate: CandidateNode, requests: Requests) -> bool:
    """Return True if the node is large enough for its DaemonSets and these requests."""
    overhead = candidate.group.overhead
    return fits({name: amount + overhead.get(name, 0) for name, amount in requests.items()}, candidate.allocatable)


def node_under_way(state: StateNode) -> Mapping[str, Any]:
    """Return a node that has not joined yet, as it will be."""
    name = state.node.metadata.name if state.node is not None else state.name
    return _node(name, {**state.labels, HOSTNAME: state.hostname}, state.taints, state.allocatable, None)


def daemons(node: str, requests: Requests, ports: Iterable[HostPort] = ()) -> Iterator[Mapping[str, Any]]:
    """Yield pods that stand for a node's DaemonSet pods: the first takes all but their number."""
    for index in range(requests.get(PODS, 0)):
        # The node has one more pod for each, so that its limit of pods is right; where the amounts stand does not
        # matter.
        amounts = {key: amount for key, amount in requests.items() if key != PODS and index == 0}
        yield _daemon(f"{node}-daemon-{index}", node, amounts, ports if index == 0 else ())


def _order(candidate: CandidateNode) -> tuple[float, str, str, str]:
    # Price alone leaves ties: the rest of the key makes plans byte for byte repeatable.
    return candidate.price, candidate.instance_type.name, candidate.offering.zone, candidate.offering.capacity_type


def _label(requirement: Requirement) -> str | None:
    # As upstream labels a node where several values would do: any value that is allowed.
    if not requirement.complement:
        return next(iter(_values_in_order(requirement)), None)
    for limit in (requirement.gte, requirement.lte):
        if limit is not None:
            return str(limit)
    return None


def _values_in_order(requirement: Requirement) -> list[str]:
    """Return the values by name, and an empty one, which is no domain of any topology, last."""
    return sorted(requirement.values, key=lambda value: (not value, value))


def _node(
    name: str,
    labels: Mapping[str, str],
    taints: Iterable[Taint],
    allocatable: Requests,
    capacity: ResourceList | None,
) -> Mapping[str, Any]:
    amounts = quantities(allocatable)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in taints]},
        "status": {"allocatable": amounts, "capacity": capacity or amounts},
    }


def _daemon(name: str, node: str, requests: Requests, ports: Iterable[HostPort]) -> Mapping[str, Any]:
    container = {
        "name": "daemon",
        "resources": {"requests": quantities(requests)},
        "ports": [
            {"hostPort": port.port, "containerPort": port.port, "protocol": port.protocol, "hostIP": port.address}
            for port in ports
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": _DAEMONS_NAMESPACE},
        "spec": {"nodeName": node, "containers": [container]},
    }
