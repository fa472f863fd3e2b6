"""Where containers run by the placement that agents report, and what victims free there."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.manifests import read_manifest
from podium.framework.contract.cycle_state import CycleState
from podium.objects.resource_types import PODS
from podium.plugins.contrib.node_resource_topology_match.eviction import EvictedPods, after_eviction
from podium.plugins.contrib.node_resource_topology_match.fingerprints import xxh64
from podium.plugins.contrib.node_resource_topology_match.objects import NODE_RESOURCE_TOPOLOGIES
from podium.plugins.contrib.node_resource_topology_match.placement import decode_vector, placement_of
from podium.plugins.contrib.node_resource_topology_match.topology import topology_of
from tests.unit.plugins.contrib.node_resource_topology_match.numa_bench import (
    POLICY,
    cluster,
    guaranteed,
    node,
    pod,
    topology,
    zone,
)

METADATA, VECTOR = "topology.node.k8s.io/numaplacement-metadata", "topology.node.k8s.io/numaplacement-vector"
CONTAINERS = [("a", name, "c0") for name in ("one", "two", "three")]
IN_ORDER = sorted(CONTAINERS, key=lambda key: xxh64("\0".join(key).encode()))


def nrt(metadata: str, vectors: dict[int, str], *, policy: str = "single-numa-node") -> Any:
    zones = [
        zone(
            number,
            attributes=[{"name": VECTOR, "value": vectors[number]}] if number in vectors else (),
            cpu="0",
            memory="0",
        )
        for number in range(2)
    ]
    return read_manifest(topology("n1", *zones, **{POLICY: policy, METADATA: metadata}), NODE_RESOURCE_TOPOLOGIES)


@pytest.mark.parametrize(
    ("vector", "expected"),
    [
        ("", []),
        ("!#", [0, 1]),
        ("f!", [64]),
        ("g#", [129]),
        ('"', None),
        ("!f", None),
        ("é", None),
    ],
)
def test_vectors_are_decoded(vector: str, expected: list[int] | None) -> None:
    assert decode_vector(vector) == expected


def test_containers_are_on_the_numa_node_whose_vector_lists_them_or_on_the_busiest() -> None:
    placement = placement_of(nrt("npv0v001::cc=3::nn=2::bn=0::ve=leb89", {1: "#"}), CONTAINERS)
    assert placement == {IN_ORDER[0]: 0, IN_ORDER[1]: 1, IN_ORDER[2]: 0}
    deltas = placement_of(nrt("npv0v001::ve=leb89::cc=3::nn=2::bn=0", {1: "!$"}), CONTAINERS)
    assert deltas == {IN_ORDER[0]: 1, IN_ORDER[1]: 0, IN_ORDER[2]: 1}


@pytest.mark.parametrize(
    ("metadata", "vectors"),
    [
        ("npv0v001::ve=leb89::cc=2::nn=2::bn=0", {}),
        ("npv0v001::ve=leb89::cc=3::nn=2::bn=2", {}),
        ("npv0v001::ve=leb89::cc=3::nn=2::bn=0", {0: "!"}),
        ("npv0v001::ve=leb89::cc=3::nn=2::bn=0", {1: "$%"}),
        ("npv0v001::ve=leb89::cc=3::nn=2::bn=0", {1: "!!"}),
        ("npv0v001::ve=leb89::cc=3::nn=1::bn=0", {1: "!"}),
        ("npv0v001::ve=leb89::cc=3::nn=2::bn=0", {1: '"'}),
        ("npv0v002::ve=leb89::cc=3::nn=2::bn=0", {}),
        ("npv0v001::ve=plain::cc=3::nn=2::bn=0", {}),
        ("npv0v001::ve=leb89::cc=three::nn=2::bn=0", {}),
        ("", {}),
    ],
)
def test_a_placement_that_contradicts_itself_is_unknown(metadata: str, vectors: dict[int, str]) -> None:
    assert placement_of(nrt(metadata, vectors), CONTAINERS) == {}


def test_other_policies_have_no_placement() -> None:
    assert placement_of(nrt("npv0v001::ve=leb89::cc=3::nn=2::bn=0", {}, policy="restricted"), CONTAINERS) == {}


def test_victims_free_what_their_containers_have_for_themselves() -> None:
    parsed = topology_of(read_manifest(topology("n1", zone(0, cpu="0", memory="0")), NODE_RESOURCE_TOPOLOGIES))
    victim = read_manifest(guaranteed("a/x", {"cpu": "2"}, {"cpu": "500m"}), PODS)
    placement = {("a", "x", "c0"): 0, ("a", "x", "c1"): 0}
    remaining = after_eviction(parsed, [victim], placement)
    assert not isinstance(remaining, str)
    assert remaining.numa_nodes[0].available == {"cpu": 2000, "memory": 2 * (1 << 20) * 1000}
    shared = read_manifest(pod("a/x", "2"), PODS)
    assert after_eviction(parsed, [shared], {("a", "x", "c"): 0}) == (
        "no resources to add, cannot process eviction simulation"
    )
    full = topology_of(read_manifest(topology("n1", zone(0, cpu="64Gi")), NODE_RESOURCE_TOPOLOGIES))
    assert after_eviction(full, [victim], placement) == "resource release request exceeds NUMA allocatable"


def test_extensions_follow_the_victims_of_a_dry_run() -> None:
    state, item = CycleState(), read_manifest(pod("a/x"), PODS)
    extensions: Any = EvictedPods.EXTENSIONS
    with pytest.raises(KeyError):
        extensions.remove_pod(state, item, item, None)
    state.write(EvictedPods())
    extensions.remove_pod(state, item, item, None)
    twin = state.clone()
    extensions.add_pod(twin, item, item, None)
    assert state.read(EvictedPods).pods == {"a/x": item}
    assert twin.read(EvictedPods).pods == {}


@pytest.mark.parametrize(("mode", "nominated"), [("Enabled", "n1"), ("Disabled", None)])
def test_preemption_counts_what_victims_free_only_if_it_is_enabled(mode: str, nominated: str | None) -> None:
    victim = guaranteed("a/x", {"cpu": "4"}, node="n1")
    metadata = "npv0v001::ve=leb89::cc=1::nn=1::bn=0"
    report = topology(
        "n1",
        zone(0, cpu="0", memory="1Gi"),
        **{POLICY: "single-numa-node", METADATA: metadata, "nodeTopologyPodsFingerprint": ""},
    )
    world = cluster(node("n1", "4"), victim, report, preemptionMode=mode, cacheResyncPeriodSeconds=5)
    # The report is taken over with the pods of that time once another scope has been declared.
    changed = {**report, "attributes": [*report["attributes"], {"name": "topologyManagerMaxNUMANodes", "value": "9"}]}
    plugin: Any = world.profiles["default-scheduler"].plugins["NodeResourceTopologyMatch"]
    asked = guaranteed("a/new", {"cpu": "4"}, priority=9)
    world.schedule(asked)
    item = read_manifest(changed, NODE_RESOURCE_TOPOLOGIES)
    world.store.put(NODE_RESOURCE_TOPOLOGIES, item)
    plugin.handle.clock.advance(5)
    assert world.schedule(asked).as_dict().get("nominated") == nominated
