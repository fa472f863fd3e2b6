"""Devices of a cluster in memory: what plugins write is carried out, undone, and private to a fork."""

from __future__ import annotations

from typing import Any

import pytest

from podium import Cluster
from podium.objects.resource_types import RESOURCE_CLAIMS
from tests.device_manifests import exactly, resource_claim

DRIVER = "gpu.example.com"


def an_object(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, **fields}


def a_pod(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "main"}], "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def cluster() -> Cluster:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": [{"name": "g0"}]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    node["status"] = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    return Cluster.load(
        [
            node,
            an_object("DeviceClass", "gpu"),
            an_object("ResourceSlice", "s", spec=spec),
            resource_claim("one", exactly()),
            resource_claim("two", exactly()),
        ]
    )


def users_of(cluster: Cluster, name: str) -> list[str]:
    claim = cluster.store.get(RESOURCE_CLAIMS, f"default/{name}")
    assert claim is not None
    return [consumer.name for consumer in claim.status.reserved_for]


def test_a_placed_pod_has_its_devices_until_that_is_undone(cluster: Cluster) -> None:
    first = cluster.place(a_pod("one"))
    assert first.node == "n1"
    assert users_of(cluster, "one") == ["one"]
    assert cluster.place(a_pod("two")).node is None
    cluster.undo(first)
    assert users_of(cluster, "one") == []
    assert cluster.place(a_pod("two")).node == "n1"


def test_devices_in_a_fork_are_its_own(cluster: Cluster) -> None:
    fork = cluster.fork()
    assert fork.place(a_pod("one")).node == "n1"
    assert users_of(cluster, "one") == []
    assert cluster.place(a_pod("two")).node == "n1"
    assert fork.place(a_pod("two")).node is None


def test_a_slice_that_is_added_has_its_devices_at_once(cluster: Cluster) -> None:
    assert cluster.place(a_pod("one")).node == "n1"
    pool = {"name": "more", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "allNodes": True, "pool": pool, "devices": [{"name": "g0"}]}
    cluster.add(an_object("ResourceSlice", "t", spec=spec))
    assert cluster.place(a_pod("two")).node == "n1"
