"""How many devices each node has on the live page, and how many of them are allocated."""

from __future__ import annotations

from podium.daemon.live_page import NodeDevices
from podium.engine.cluster import Cluster
from tests.builders import node as built
from tests.device_manifests import device_class, devices, held_claim, resource_slice
from tests.manifests import node, pod


def node_devices_of(cluster: Cluster) -> NodeDevices:
    return NodeDevices(lambda: {"default-scheduler": cluster.framework_for(cluster.pods[-1])})


def test_devices_are_counted_by_driver_with_those_that_claims_have() -> None:
    slices = [resource_slice(name, devices(2), node=name) for name in ("n1", "n2")]
    claim = held_claim("train", {"n1": ["gpu-1"]}, ["trainer-0"])
    cluster = Cluster.load(
        [node("n1"), node("n2"), device_class("gpu"), *slices, claim, pod("p", scheduler="default-scheduler")]
    )
    counts = node_devices_of(cluster)
    cluster_devices = counts.cluster_devices()
    assert cluster_devices is not None
    assert counts.on_node(cluster_devices, built("n1")) == {"gpu.example.com": (1, 2)}
    assert counts.on_node(cluster_devices, built("n2")) == {"gpu.example.com": (0, 2)}
    assert counts.on_node(cluster_devices, built("other")) == {}


def test_a_node_is_counted_again_only_after_a_change() -> None:
    cluster = Cluster.load(
        [
            node("n1"),
            device_class("gpu"),
            resource_slice("n1", devices(2), node="n1"),
            pod("p", scheduler="default-scheduler"),
        ]
    )
    counts = node_devices_of(cluster)
    cluster_devices, first_node = counts.cluster_devices(), built("n1")
    assert cluster_devices is not None
    first_counts = counts.on_node(cluster_devices, first_node)
    assert counts.on_node(cluster_devices, first_node) is first_counts
    counts.forget_others({})
    assert counts.on_node(cluster_devices, first_node) is not first_counts


def test_without_a_profile_that_allocates_devices_there_are_no_counts() -> None:
    assert NodeDevices(dict).cluster_devices() is None
