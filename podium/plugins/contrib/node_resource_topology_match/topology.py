"""What a NodeResourceTopology says, parsed: the NUMA nodes, and how the kubelet aligns resources with them.

Units: amounts are in thousandths, cpu's in thousandths of a core.
Source: sigs.k8s.io/scheduler-plugins pkg/noderesourcetopology (2026-08), NodeResourceTopology API v0.1.2.
Differs: the zone `node-64` is left out, as those above it are; it makes upstream panic. A second zone with the number
of an earlier one is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from podium.lib.error_text import cut
from podium.objects.errors import FieldError
from podium.objects.quantity import QuantityError, parse
from podium.plugins.contrib.node_resource_topology_match.objects import NodeResourceTopology, NRTZone

SINGLE_NUMA_NODE: Final = "single-numa-node"
POD_SCOPE: Final = "pod"
POLICY_ATTRIBUTE: Final = "topologyManagerPolicy"
_SCOPE_ATTRIBUTE: Final = "topologyManagerScope"
_COUNT_ATTRIBUTE: Final = "topologyManagerMaxNUMANodes"
_CONTAINER_SCOPE: Final = "container"
_SCOPES: Final = (_CONTAINER_SCOPE, POD_SCOPE)
_POLICIES: Final = ("none", "best-effort", "restricted", SINGLE_NUMA_NODE)
_DEPRECATED: Final = {
    f"{policy}{scope}": (value, scope_value)
    for policy, value in (
        ("SingleNUMANode", SINGLE_NUMA_NODE),
        ("BestEffort", "best-effort"),
        ("Restricted", "restricted"),
    )
    for scope, scope_value in (("PodLevel", POD_SCOPE), ("ContainerLevel", _CONTAINER_SCOPE))
}
"""The entries of `topologyPolicies` that count, with their policy and scope."""
_ZONE_TYPE: Final = "Node"
_ZONE_NAME: Final = re.compile(r"node-[+]?([0-9]+)")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
ZONES_MAX: Final = 64
_NUMA_NODES_DEFAULT: Final = 8
_NUMA_NODES_LIMIT: Final = 1024
_MILLI_IN_NANO: Final = 10**6


def _is_count(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and int(text) > 1


_ATTRIBUTE_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    _SCOPE_ATTRIBUTE: _SCOPES.__contains__,
    POLICY_ATTRIBUTE: _POLICIES.__contains__,
    _COUNT_ATTRIBUTE: _is_count,
}
"""For each attribute that is read, a function that returns whether a value counts."""

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AlignmentPolicy:
    """The configuration of the kubelet's topology manager."""

    policy: str = "none"
    scope: str = _CONTAINER_SCOPE
    numa_nodes_max: int = _NUMA_NODES_DEFAULT

    @property
    def is_per_pod(self) -> bool:
        """Whole pods are aligned, not single containers."""
        return self.scope == POD_SCOPE

    @property
    def is_single_numa_node(self) -> bool:
        """The kubelet refuses pods that need more than one NUMA node."""
        return self.policy == SINGLE_NUMA_NODE


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node: its number, the amounts that are available and allocatable, and its distances by number."""

    id: int
    available: Amounts
    allocatable: Amounts
    costs: Mapping[int, int]

    def less(self, amounts: Amounts) -> NumaNode:
        """Return the NUMA node with these amounts taken off, as far as there is any."""
        available = dict(self.available)
        for name, amount in amounts.items():
            if name in available:
                available[name] = max(available[name] - amount, 0)
        return NumaNode(self.id, available, self.allocatable, self.costs)


@dataclass(frozen=True, slots=True)
class Topology:
    """The NUMA nodes of one node, in the order of their zones.

    Attributes:
        problem: which field cannot be parsed; "" if all can.
    """

    alignment: AlignmentPolicy
    numa_nodes: tuple[NumaNode, ...] = ()
    problem: str = ""
    resource_names: frozenset[str] = field(default=frozenset())

    def less(self, reserved: Mapping[str, Amounts]) -> Topology:
        """Return the topology with each of these amounts taken off every NUMA node, as far as there is any."""
        numa_nodes = self.numa_nodes
        for amounts in reserved.values():
            numa_nodes = tuple(numa_node.less(amounts) for numa_node in numa_nodes)
        return replace(self, numa_nodes=numa_nodes)


def alignment_of(nrt: NodeResourceTopology) -> AlignmentPolicy:
    """Return the alignment policy that the object declares; invalid values are ignored."""
    policy, scope, numa_nodes_max = "none", _CONTAINER_SCOPE, _NUMA_NODES_DEFAULT
    if nrt.topology_policies:
        policy, scope = _DEPRECATED.get(nrt.topology_policies[0], (policy, scope))
    for entry in nrt.attributes:
        if entry.name not in _ATTRIBUTE_CHECKS or not _ATTRIBUTE_CHECKS[entry.name](entry.value):
            continue
        if entry.name == _SCOPE_ATTRIBUTE:
            scope = entry.value
        elif entry.name == POLICY_ATTRIBUTE:
            policy = entry.value
        else:
            numa_nodes_max = min(int(entry.value), _NUMA_NODES_LIMIT)
    return AlignmentPolicy(policy, scope, numa_nodes_max)


def topology_of(nrt: NodeResourceTopology) -> Topology:
    """Parse the object."""
    alignment = alignment_of(nrt)
    names = frozenset(resource.name for zone in nrt.zones for resource in zone.resources)
    try:
        numa_nodes = {numa_node.id: numa_node for numa_node in reversed(list(_numa_nodes(nrt)))}
    except FieldError as error:
        return Topology(alignment, problem=f"NodeResourceTopology {nrt.key}: {error}", resource_names=names)
    in_order = [numa_id for zone in nrt.zones if (numa_id := numa_id_of(zone)) is not None]
    return Topology(alignment, tuple(numa_nodes[numa_id] for numa_id in dict.fromkeys(in_order)), "", names)


def oddities(nrt: NodeResourceTopology) -> Iterator[str]:
    """Yield what is ignored or suspicious in the object, each with its field."""
    path = f"NodeResourceTopology {nrt.key}: "
    for index, name in enumerate(nrt.topology_policies[:1]):
        if name not in _DEPRECATED:
            yield f"{path}topologyPolicies[{index}]: {cut(name)} is ignored"
    for entry in nrt.attributes:
        if entry.name in _ATTRIBUTE_CHECKS and not _ATTRIBUTE_CHECKS[entry.name](entry.value):
            yield f"{path}attributes[{entry.name}]: {cut(entry.value)} is ignored"
    topology = topology_of(nrt)
    if topology.problem:
        yield topology.problem
    elif not topology.numa_nodes:
        yield f"{path}zones: none is a NUMA node, of the type Node and named node-0 to node-{ZONES_MAX - 1}"
    for numa_node in topology.numa_nodes:
        if not numa_node.available:
            yield f"{path}zones[node-{numa_node.id}].resources: is empty"
        for name, amount in numa_node.available.items():
            if amount < 0:
                yield f"{path}zones[node-{numa_node.id}].resources[{cut(name)}].available: is negative"


def numa_id_of(zone: NRTZone) -> int | None:
    """Return the number of the zone's NUMA node; None if the zone is none that counts."""
    return _id_of(zone.name) if zone.type == _ZONE_TYPE else None


def _id_of(name: str) -> int | None:
    match = _ZONE_NAME.fullmatch(name)
    return int(match[1]) if match is not None and int(match[1][-20:]) < ZONES_MAX and len(match[1]) <= 20 else None


def _numa_nodes(nrt: NodeResourceTopology) -> Iterator[NumaNode]:
    for index, zone in enumerate(nrt.zones):
        if (numa_id := numa_id_of(zone)) is None:
            continue
        path = f"zones[{index}].resources"
        costs = {target: cost.value for cost in zone.costs if (target := _id_of(cost.name)) is not None}
        yield NumaNode(
            numa_id,
            {
                resource.name: _milli(resource.available, f"{path}[{resource.name}].available")
                for resource in zone.resources
            },
            {
                resource.name: _milli(resource.allocatable, f"{path}[{resource.name}].allocatable")
                for resource in zone.resources
            },
            costs,
        )


def _milli(raw: str | float, path: str) -> int:
    try:
        return parse(raw).nano_value // _MILLI_IN_NANO
    except QuantityError as error:
        raise FieldError(path, str(error)) from error
