"""Whether a pod fits into single NUMA nodes of a node.

Units: thousandths.
Source: sigs.k8s.io/scheduler-plugins pkg/noderesourcetopology/filter.go (2026-08).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podium.cluster import NodeInfo
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_counted_resource
from podium.plugins.contrib.node_resource_topology_match.demands import Demands, is_host_level, is_numa_affine
from podium.plugins.contrib.node_resource_topology_match.topology import Amounts, Topology

_ALWAYS_ALLOCATABLE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
_ALL: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Misfit:
    """The part of the pod that fits into no NUMA node, as messages call it.

    Attributes:
        container: its name; "" for the pod as a whole.
        resource: the resource that ruled the last NUMA node out.
        amount: what is requested of it, in thousandths.
        largest_free: the most of it that a NUMA node has left, in thousandths; None if no NUMA node has it.
    """

    kind: str
    container: str
    resource: str
    amount: int
    largest_free: int | None


@dataclass(slots=True)
class _FreeNode:
    """A NUMA node with what is left of it while containers are placed."""

    id: int
    available: dict[str, int]


def misfit(demands: Demands, topology: Topology, node: NodeInfo, *, guaranteed: bool) -> Misfit | None:
    """Return what does not fit on the node; None if all does."""
    free = [_FreeNode(numa_node.id, dict(numa_node.available)) for numa_node in topology.numa_nodes]
    if topology.alignment.is_per_pod:
        placement = _place(demands.pod, free, node, guaranteed=guaranteed)
        return None if isinstance(placement, int) else _misfit("pod", "", placement, demands.pod, free)
    for demand in demands.init_containers:
        placement = _place(demand.requests, free, node, guaranteed=guaranteed)
        if not isinstance(placement, int):
            return _misfit(demand.kind, demand.name, placement, demand.requests, free)
    for demand in demands.containers:
        placement = _place(demand.requests, free, node, guaranteed=guaranteed)
        if not isinstance(placement, int):
            return _misfit(demand.kind, demand.name, placement, demand.requests, free)
        _take(demand.requests, free, placement, guaranteed=guaranteed)
    return None


def _misfit(kind: str, container: str, resource: str, requests: Amounts, free: Sequence[_FreeNode]) -> Misfit:
    amounts = [numa_node.available[resource] for numa_node in free if resource in numa_node.available]
    return Misfit(kind, container, resource, requests[resource], max(amounts, default=None))


def _place(requests: Amounts, free: Sequence[_FreeNode], node: NodeInfo, *, guaranteed: bool) -> int | str:
    """Return the number of the NUMA node that the kubelet would choose, or the resource that rules the last one out."""
    mask = _ALL
    for name, amount in requests.items():
        if not amount:
            continue
        if not _is_allocatable(node, name):
            return name
        bits, is_listed = 0, False
        for numa_node in free:
            available = numa_node.available.get(name)
            if available is None:
                continue
            is_listed = True
            if available >= amount or (not guaranteed and is_numa_affine(name)):
                bits |= 1 << numa_node.id
        if not is_listed and is_host_level(name):
            continue
        mask &= bits
        if not mask:
            return name
    return (mask & -mask).bit_length() - 1


def _is_allocatable(node: NodeInfo, name: str) -> bool:
    return name in _ALWAYS_ALLOCATABLE or (is_counted_resource(name) and name in node.node.status.allocatable)


def _take(requests: Amounts, free: Sequence[_FreeNode], numa_id: int, *, guaranteed: bool) -> None:
    """Take a container's requests off its NUMA node, as far as it keeps them for itself."""
    for numa_node in free:
        if numa_node.id != numa_id:
            continue
        for name, amount in requests.items():
            if name in numa_node.available and (guaranteed or not is_numa_affine(name)):
                numa_node.available[name] -= amount
