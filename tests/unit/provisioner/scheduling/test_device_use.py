"""Devices are counted by driver, those that are published and those that are allocated."""

from __future__ import annotations

from typing import Any

from podium.provisioner.scheduling.device_use import DeviceUse
from tests.device_manifests import resource_claim

API = "resource.k8s.io/v1"


def resource_slice(name: str, count: int, *, driver: str = "gpu", pool: str = "n1", generation: int = 1) -> Any:
    devices = [{"name": f"d{index}"} for index in range(count)]
    spec = {"driver": driver, "nodeName": "n1", "pool": {"name": pool, "generation": generation}, "devices": devices}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def claim(name: str, *results: Any) -> Any:
    allocation = {
        "devices": {"results": [{"request": "r", "pool": "n1", "device": "d", **result} for result in results]}
    }
    return resource_claim(name, allocation=allocation) if results else resource_claim(name)


def test_devices_are_counted_by_driver() -> None:
    slices = [resource_slice("a", 2), resource_slice("b", 3), resource_slice("c", 4, driver="nic", pool="x")]
    claims = [claim("one", {"driver": "gpu"}, {"driver": "nic"}), claim("two", {"driver": "gpu"}), claim("unallocated")]
    device_use = DeviceUse.of_manifests([*slices, *claims, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}])
    assert device_use.published == {"gpu": 5, "nic": 4}
    assert device_use.allocated == {"gpu": 2, "nic": 1}


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    slices = [
        resource_slice("first", 8, generation=1),
        resource_slice("republished", 2, generation=2),
        resource_slice("obsolete", 4, generation=1),
        resource_slice("other-pool", 1, pool="n2"),
    ]
    assert DeviceUse.of_manifests(slices).published == {"gpu": 3}


def test_devices_with_admin_access_are_not_counted_as_allocated() -> None:
    device_use = DeviceUse.of_manifests([resource_slice("a", 2), claim("one", {"driver": "gpu", "adminAccess": True})])
    assert device_use.allocated == {}
    assert DeviceUse.of_manifests([]).published == {}
