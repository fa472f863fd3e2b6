"""The topologies less what was placed since they were reported."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from podium.cluster import Snapshot
from podium.engine.manifests import read_manifest, resource_of
from podium.engine.offline import OfflineHandle
from podium.engine.store import ObjectStore
from podium.lib.clock import ManualClock
from podium.objects.resource_types import PODS
from podium.plugins.contrib.node_resource_topology_match.args import CacheArgs, NodeResourceTopologyMatchArgs
from podium.plugins.contrib.node_resource_topology_match.caches import Caches, Topologies
from podium.plugins.contrib.node_resource_topology_match.fingerprints import fingerprint
from podium.queues import Nominator
from podium.testing import node as typed_node
from podium.testing.one_cycle import snapshot_of
from tests.unit.plugins.contrib.node_resource_topology_match.numa_bench import POLICY, SCOPE, guaranteed, topology, zone

ATTRIBUTE, METHOD = "nodeTopologyPodsFingerprint", "nodeTopologyPodsFingerprintMethod"
ONE = zone(0, cpu="4", memory="8Gi")


class Bench:
    """A cache with a clock, over objects that change."""

    def __init__(self, *objects: Any, **args: Any) -> None:
        self.store = ObjectStore.of(objects)
        self.clock = ManualClock()
        handle = OfflineHandle(
            self.clock,
            Random(1),
            Nominator(lambda key: None),
            self.snapshot,
            self.store.lister,
            scheduler_names=frozenset({"default-scheduler"}),
        )
        self.caches = Caches(handle)
        self.cache: Topologies = self.caches.of(NodeResourceTopologyMatchArgs(**args))

    def put(self, manifest: Any) -> Any:
        resource = resource_of(manifest)
        assert resource is not None
        item = read_manifest(manifest, resource)
        self.store.put(resource, item)
        return item

    def refresh(self) -> None:
        self.cache.refresh()

    def snapshot(self) -> Snapshot:
        pods = [pod for pod in self.store.objects(PODS).values() if pod.node_name]
        return snapshot_of(typed_node("n1"), *pods)

    def cpu(self, name: str = "n1") -> int | None:
        """The cpu that the first NUMA node has; None without a topology."""
        self.refresh()
        seen = self.cache.get(name)
        return None if seen is None else seen.numa_nodes[0].available["cpu"]


def reported(*zones: Any, pods: Any = (), method: str = "", **attributes: str) -> Any:
    """A topology with the fingerprint of these pods."""
    extra = {METHOD: method} if method else {}
    keys = [tuple(key.split("/")) for key in pods]
    return topology(
        "n1", *(zones or (ONE,)), **{POLICY: "single-numa-node", ATTRIBUTE: fingerprint(keys), **extra, **attributes}
    )


def placed(key: str, scheduler: str = "default-scheduler", **fields: Any) -> Any:
    return guaranteed(key, {"cpu": "1"}, node="n1", spec={"schedulerName": scheduler}, **fields)


def reserving(*objects: Any, period: int = 5, **cache: Any) -> Bench:
    return Bench(*objects, cache_resync_period_seconds=period, cache=CacheArgs(**cache))


def test_topologies_pass_through_as_they_are_reported() -> None:
    bench = Bench(topology("n1", ONE))
    item = read_manifest(guaranteed("a/x", {"cpu": "1"}), PODS)
    assert bench.cpu() == 4000
    bench.cache.reserve(item, "n1")
    assert bench.cpu() == 4000
    bench.put(topology("n1", zone(0, cpu="2")))
    assert bench.cpu() == 2000
    assert bench.cpu("elsewhere") is None


def test_a_node_to_which_a_pod_is_being_bound_is_discarded() -> None:
    bench = Bench(topology("n1", ONE), discard_reserved_nodes=True, cache_resync_period_seconds=5)
    one, two = (read_manifest(guaranteed(f"a/{name}", {"cpu": "1"}), PODS) for name in "xy")
    bench.cache.reserve(one, "n1")
    bench.cache.reserve(two, "n1")
    bench.cache.unreserve(one, "n1")
    assert not bench.cache.is_fresh("n1")
    bench.cache.confirm(two, "n1")
    assert bench.cache.is_fresh("n1")
    bench.cache.confirm(two, "n1")


def test_placed_pods_are_reserved_until_a_report_contains_them() -> None:
    bench = reserving(reported())
    item = read_manifest(guaranteed("a/x", {"cpu": "1"}), PODS)
    assert bench.cpu() == 4000
    bench.cache.reserve(item, "n1")
    assert bench.cpu() == 3000
    bench.cache.unreserve(item, "n1")
    assert bench.cpu() == 4000
    bench.cache.reserve(item, "n1")
    bench.put(placed("a/x"))

    bench.put(reported(zone(0, cpu="2")))
    bench.clock.advance(5)
    bench.cache.suspect("n1")
    assert bench.cpu() == 3000, "the report lacks the pod"
    bench.put(reported(zone(0, cpu="2"), pods=["a/x"]))
    assert bench.cpu() == 2000


def test_a_pod_that_runs_after_its_report_came_is_noticed_in_the_next_period() -> None:
    bench = reserving(reported())
    bench.refresh()
    bench.cache.suspect("n1")
    bench.put(reported(zone(0, cpu="2"), pods=["a/x"]))
    assert bench.cpu() == 4000
    bench.put(placed("a/x"))
    assert bench.cpu() == 4000, "the period has not passed"
    bench.clock.advance(5)
    assert bench.cpu() == 2000


def test_a_node_that_nothing_suspects_keeps_its_report() -> None:
    bench = reserving(reported())
    assert bench.cpu() == 4000
    bench.put(reported(zone(0, cpu="1")))
    bench.clock.advance(5)
    assert bench.cpu() == 4000


def test_nodes_that_join_later_are_learnt() -> None:
    """Upstream lets pods onto them unchecked until it is restarted."""
    bench = reserving()
    assert bench.cpu() is None
    bench.put(reported())
    assert bench.cpu() == 4000


def test_another_policy_is_taken_over_without_a_fingerprint() -> None:
    bench = reserving(reported())
    only_resources = reserving(reported(), resync_scope="OnlyResources")
    for each in (bench, only_resources):
        each.refresh()
        each.put(reported(zone(0, cpu="1"), **{SCOPE: "pod", ATTRIBUTE: ""}))
        each.clock.advance(5)
    assert bench.cpu() == 1000
    assert only_resources.cpu() == 4000


def test_pods_of_other_schedulers_make_a_report_unreliable_until_the_next_one() -> None:
    bench = reserving(reported())
    bench.refresh()
    assert bench.cache.is_fresh("n1")
    bench.put(placed("a/foreign", scheduler="other"))
    assert not bench.cache.is_fresh("n1")
    bench.put(reported(zone(0, cpu="3"), pods=["a/foreign"]))
    bench.clock.advance(5)
    assert bench.cpu() == 3000
    assert bench.cache.is_fresh("n1")


@pytest.mark.parametrize(("detect", "is_fresh"), [("None", True), ("OnlyExclusiveResources", True), ("All", False)])
def test_which_foreign_pods_matter_is_set_by_the_args(detect: str, is_fresh: bool) -> None:
    shared = guaranteed("a/foreign", {}, node="n1", spec={"schedulerName": "other"})
    shared["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    bench = reserving(reported(), shared, foreign_pods_detect=detect)
    bench.refresh()
    assert bench.cache.is_fresh("n1") is is_fresh


def test_a_node_that_became_empty_is_taken_over() -> None:
    """Upstream never checks a node without pods."""
    bench = reserving(reported())
    bench.refresh()
    item = bench.put(placed("a/foreign", scheduler="other"))
    bench.store.drop(PODS, item)
    bench.clock.advance(5)
    bench.refresh()
    assert bench.cache.is_fresh("n1")


@pytest.mark.parametrize(
    ("cache", "method", "pods", "matches"),
    [
        ({}, "", ["a/x", "a/shared"], True),
        ({}, "with-exclusive-resources", ["a/x"], True),
        ({"resync_method": "All"}, "with-exclusive-resources", ["a/x"], False),
        ({"resync_method": "OnlyExclusiveResources"}, "", ["a/x"], True),
        ({"informer_mode": "Shared"}, "", ["a/x", "a/shared"], True),
        ({"informer_mode": "Shared"}, "", ["a/x", "a/shared", "a/unknown"], False),
        ({}, "", ["a/x", "a/shared", "a/pending"], False),
    ],
)
def test_which_pods_a_fingerprint_covers(cache: Any, method: str, pods: list[str], matches: bool) -> None:
    shared = placed("a/shared")
    shared["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    pending = placed("a/pending", status={"phase": "Pending"})
    bench = reserving(reported(), placed("a/x"), shared, pending, **cache)
    bench.refresh()
    bench.cache.suspect("n1")
    bench.put(reported(zone(0, cpu="1"), pods=pods, method=method))
    bench.clock.advance(5)
    assert (bench.cpu() == 1000) is matches


def test_an_annotation_counts_where_there_is_no_attribute() -> None:
    bench = reserving(reported())
    bench.refresh()
    bench.cache.suspect("n1")
    annotations = {"topology.node.k8s.io/fingerprint": fingerprint([])}
    bench.put(topology("n1", zone(0, cpu="1"), annotations=annotations))
    bench.clock.advance(5)
    assert bench.cpu() == 1000


def test_a_topology_that_is_deleted_is_forgotten() -> None:
    bench = reserving(reported())
    item = bench.put(reported())
    assert bench.cpu() == 4000
    bench.cache.reserve(read_manifest(guaranteed("a/x", {"cpu": "1"}), PODS), "n1")
    resource = resource_of(reported())
    assert resource is not None
    bench.store.drop(resource, item)
    assert bench.cpu() is None


def test_profiles_with_equal_args_share_a_cache() -> None:
    """Upstream keeps one for each profile, which does not see the other's pods."""
    bench = reserving()
    assert bench.caches.of(NodeResourceTopologyMatchArgs(cache_resync_period_seconds=5)) is bench.cache
    assert bench.caches.of(NodeResourceTopologyMatchArgs(cache_resync_period_seconds=6)) is not bench.cache
    assert bench.caches.of(NodeResourceTopologyMatchArgs(cache_resync_period_seconds=-1)) is bench.caches.of(
        NodeResourceTopologyMatchArgs()
    )
