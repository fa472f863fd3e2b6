"""Computes the NUMA topology of a node after the victims of a preemption are evicted.

Source: sigs.k8s.io/scheduler-plugins pkg/noderesourcetopology/preemption (2026-08).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from podium.cluster import NodeInfo
from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.plugins.contrib.node_resource_topology_match.demands import demands_of, is_exclusive, is_guaranteed
from podium.plugins.contrib.node_resource_topology_match.placement import ContainerKey
from podium.plugins.contrib.node_resource_topology_match.topology import Topology

_EXCEEDS_ALLOCATABLE: Final = "resource release request exceeds NUMA allocatable"
_NOTHING_FREED: Final = "no resources to add, cannot process eviction simulation"


@dataclass(slots=True, eq=False)
class EvictedPods:
    """The pods that a dry run has removed, by key."""

    pods: dict[str, Pod] = field(default_factory=dict)
    EXTENSIONS: ClassVar[fwk.PreFilterExtensions]

    def clone(self) -> EvictedPods:
        """Return a copy for a dry run."""
        return EvictedPods(dict(self.pods))


class _Extensions(fwk.PreFilterExtensions):
    def add_pod(self, state: fwk.CycleState, pod: Pod, added_pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Record that the dry run no longer evicts the pod."""
        state.read(EvictedPods).pods.pop(added_pod.key, None)
        return None

    def remove_pod(self, state: fwk.CycleState, pod: Pod, removed_pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Record that the dry run evicts the pod."""
        state.read(EvictedPods).pods[removed_pod.key] = removed_pod
        return None


EvictedPods.EXTENSIONS = _Extensions()


def after_eviction(topology: Topology, victims: Iterable[Pod], placement: Mapping[ContainerKey, int]) -> Topology | str:
    """Return the topology with the victims' exclusive resources available again, or the reason that there is none."""
    freed_amounts = _exclusive_amounts(victims, placement, topology.resource_names)
    if not freed_amounts:
        return _NOTHING_FREED
    numa_nodes = []
    for numa_node in topology.numa_nodes:
        available = dict(numa_node.available)
        for name, amount in freed_amounts.get(numa_node.id, {}).items():
            if name in available:
                available[name] += amount
                if available[name] > numa_node.allocatable[name]:
                    return _EXCEEDS_ALLOCATABLE
        numa_nodes.append(replace(numa_node, available=available))
    return replace(topology, numa_nodes=tuple(numa_nodes))


def _exclusive_amounts(
    victims: Iterable[Pod], placement: Mapping[ContainerKey, int], resource_names: frozenset[str]
) -> Mapping[int, Mapping[str, int]]:
    """Return the amounts that the victims' containers hold exclusively, by NUMA node and resource."""
    freed_amounts: dict[int, dict[str, int]] = {}
    for victim in victims:
        guaranteed, demands = is_guaranteed(victim), demands_of(victim.spec)
        for demand in demands.containers:
            numa_id = placement.get((victim.metadata.namespace, victim.metadata.name, demand.name))
            if numa_id is None or numa_id < 0:
                continue
            for name, amount in demand.requests.items():
                if is_exclusive(name, amount, resource_names, guaranteed=guaranteed):
                    amounts = freed_amounts.setdefault(numa_id, {})
                    amounts[name] = amounts.get(name, 0) + amount
    return freed_amounts
