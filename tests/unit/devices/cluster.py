"""Slices, classes and claims for tests, from the few words that matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from podium.config import RELEASES, Release
from podium.devices import AllocatedDevices, Allocator, Inventory, Refusal
from podium.devices.interruptible import run_uninterrupted
from podium.objects.claims import AllocationResult, ResourceClaim
from podium.objects.devices import DeviceClass, ResourceSlice

OLD, NEW = RELEASES["1.36"], RELEASES["1.37"]

DRIVER = "gpu.example.com"
CLASSES = {
    "gpu": msgspec.convert({"metadata": {"name": "gpu"}}, DeviceClass),
    "tuned": msgspec.convert(
        {
            "metadata": {"name": "tuned"},
            "spec": {"config": [{"opaque": {"driver": DRIVER, "parameters": {"mtu": 9000}}}]},
        },
        DeviceClass,
    ),
}


def device(name: str, **fields: Any) -> dict[str, Any]:
    """A device; attributes by name as plain values, capacity as quantities."""
    kinds = {str: "string", bool: "bool", int: "int"}
    attributes = {key: {kinds[type(value)]: value} for key, value in fields.pop("attributes", {}).items()}
    capacity = {
        key: value if isinstance(value, dict) else {"value": value} for key, value in fields.pop("capacity", {}).items()
    }
    return {"name": name, "attributes": attributes, "capacity": capacity, **fields}


def a_slice(
    name: str, *devices: Any, pool: str = "p", generation: int = 1, slices: int = 1, **spec: Any
) -> ResourceSlice:
    """A slice of node n1, unless the spec says otherwise."""
    if not spec.keys() & {"nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection"}:
        spec["nodeName"] = "n1"
    spec = {"driver": DRIVER, **spec}
    spec["pool"] = {"name": pool, "generation": generation, "resourceSliceCount": slices}
    spec["devices"] = [device(item) if isinstance(item, str) else item for item in devices]
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def request(name: str = "r", **fields: Any) -> dict[str, Any]:
    """An exact request of class gpu."""
    return {"name": name, "exactly": {"deviceClassName": "gpu", **fields}}


def either(name: str, *alternatives: dict[str, Any]) -> dict[str, Any]:
    """A request for the first of these exact ones."""
    return {"name": name, "firstAvailable": [{"name": item["name"], **item["exactly"]} for item in alternatives]}


def claim(*requests: dict[str, Any], name: str = "c", **devices: Any) -> ResourceClaim:
    """A claim that is not allocated yet."""
    spec = {"devices": {"requests": list(requests) or [request()], **devices}}
    return msgspec.convert({"metadata": {"name": name, "namespace": "ns"}, "spec": spec}, ResourceClaim)


def allocation(*results: dict[str, Any]) -> AllocationResult:
    """An allocation of devices of pool p, each given by what its result says."""
    full = [{"driver": DRIVER, "pool": "p", **item} for item in results]
    return msgspec.convert({"devices": {"results": full}}, AllocationResult)


def allocator(
    *slices: ResourceSlice,
    claim_in_use: AllocationResult | None = None,
    steps_max: int = 0,
    release: Release = NEW,
) -> Allocator:
    """The allocator for these slices, and devices that claims hold."""
    devices_in_use = AllocatedDevices()
    if claim_in_use is not None:
        devices_in_use.add(claim_in_use)
    return Allocator(Inventory(slices, release.devices), CLASSES.get, devices_in_use, Random(1), steps_max)


def allocate(
    claims: Any,
    *slices: ResourceSlice,
    node: str = "n1",
    claim_in_use: AllocationResult | None = None,
    release: Release = NEW,
) -> Any:
    """Return the allocator's answer for a node without labels."""
    claim_list = [claims] if isinstance(claims, ResourceClaim) else claims
    return answer_of(allocator(*slices, claim_in_use=claim_in_use, release=release), claim_list, node)


def answer_of(
    allocator: Allocator, claims: Sequence[ResourceClaim], node: str = "n1", labels: Mapping[str, str] | None = None
) -> tuple[AllocationResult, ...] | Refusal:
    """Return the allocator's answer without interruption."""
    return run_uninterrupted(allocator.allocate_interruptibly(node, {} if labels is None else labels, claims))


def devices_of(answer: Any) -> Any:
    """The names of the devices, as one list for each claim; a refusal stays as it is."""
    if not isinstance(answer, tuple):
        return answer
    return [[result.device for result in item.devices.results] for item in answer]
