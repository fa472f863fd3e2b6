"""What is read from a NodeResourceTopology, traps of upstream included."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.manifests import read_manifest
from podium.plugins.contrib.node_resource_topology_match.objects import NODE_RESOURCE_TOPOLOGIES
from podium.plugins.contrib.node_resource_topology_match.topology import AlignmentPolicy, Topology, topology_of
from tests.unit.plugins.contrib.node_resource_topology_match.numa_bench import COUNT, POLICY, SCOPE, topology, zone


def parsed(*zones: Any, **fields: Any) -> Topology:
    return topology_of(read_manifest(topology("n1", *zones, **fields), NODE_RESOURCE_TOPOLOGIES))


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        (("SingleNUMANodePodLevel",), ("single-numa-node", "pod")),
        (("SingleNUMANodeContainerLevel",), ("single-numa-node", "container")),
        (("BestEffortPodLevel", "SingleNUMANodePodLevel"), ("best-effort", "pod")),
        (("RestrictedContainerLevel",), ("restricted", "container")),
        # Plain names are ignored, though the API has them.
        (("Restricted",), ("none", "container")),
        (("BestEffort",), ("none", "container")),
        (("None",), ("none", "container")),
    ],
)
def test_the_deprecated_policies_count_with_their_level(policies: tuple[str, ...], expected: tuple[str, str]) -> None:
    alignment = parsed(policies=policies, other="x").alignment
    assert (alignment.policy, alignment.scope) == expected


def test_attributes_override_policies_and_invalid_values_are_ignored() -> None:
    alignment = parsed(policies=("RestrictedPodLevel",), **{POLICY: "single-numa-node", COUNT: "16"}).alignment
    assert alignment == AlignmentPolicy("single-numa-node", "pod", 16)
    ignored = parsed(**{POLICY: "odd", SCOPE: "odd", COUNT: "1"}).alignment
    assert ignored == AlignmentPolicy("none", "container", 8)
    assert parsed(**{COUNT: "4096"}).alignment.numa_nodes_max == 1024
    assert parsed(**{COUNT: "many"}).alignment.numa_nodes_max == 8


def test_only_numbered_zones_of_the_type_node_count() -> None:
    """The number 64 makes upstream panic; here it is left out as those above it are."""
    zones = [zone(63, cpu="1"), zone(64, cpu="1"), zone(65, cpu="1"), {**zone(1, cpu="1"), "type": "Socket"}]
    zones += [{**zone(2), "name": "numa-2"}, {**zone(2), "name": "node--2"}, {**zone(2), "name": f"node-{9 * 10**30}"}]
    assert [numa_node.id for numa_node in parsed(*zones).numa_nodes] == [63]


def test_a_second_zone_of_a_number_is_left_out() -> None:
    [numa_node] = parsed(zone(0, cpu="1"), zone(0, cpu="9")).numa_nodes
    assert numa_node.available == {"cpu": 1000}


def test_zones_without_resources_or_costs_are_read() -> None:
    numa_nodes = parsed({"name": "node-0", "type": "Node"}, zone(1, {0: 21, 99: 3}, cpu="1500m")).numa_nodes
    assert [(numa_node.available, numa_node.costs) for numa_node in numa_nodes] == [({}, {}), ({"cpu": 1500}, {0: 21})]


def test_reservations_are_taken_off_every_numa_node_and_no_further_than_0() -> None:
    less = parsed(zone(0, cpu="4"), zone(1, cpu="1", memory="1Ki")).less({"a/x": {"cpu": 1500}, "a/y": {"cpu": 500}})
    assert [numa_node.available for numa_node in less.numa_nodes] == [{"cpu": 2000}, {"cpu": 0, "memory": 1024_000}]
