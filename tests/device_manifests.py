"""Slices, classes and claims of devices as a user or a driver would post them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.manifests import Json

GPU_DRIVER, NIC_DRIVER = "gpu.example.com", "nic.example.com"
RESOURCE_API = "resource.k8s.io/v1"


def device(name: str, **fields: Any) -> Json:
    """A device; attributes by name as plain values, capacity as quantities."""
    kinds = {str: "string", bool: "bool", int: "int"}
    attributes = {key: {kinds[type(value)]: value} for key, value in fields.pop("attributes", {}).items()}
    capacity = {key: {"value": value} for key, value in fields.pop("capacity", {}).items()}
    return {"name": name, "attributes": attributes, "capacity": capacity, **fields}


def devices(count: int, prefix: str = "gpu", **fields: Any) -> list[Json]:
    """Devices of one kind: gpu-0, gpu-1…"""
    return [device(f"{prefix}-{index}", **fields) for index in range(count)]


def resource_slice(
    name: str,
    device_list: Iterable[Json],
    *,
    node: str | None = None,
    pool: str | None = None,
    driver: str = GPU_DRIVER,
    generation: int = 1,
    slices: int = 1,
    **spec: Any,
) -> Json:
    """A slice of a node's pool; of all nodes if it names none."""
    where = {"allNodes": True} if node is None else {"nodeName": node}
    pool_spec = {"name": pool or node or name, "generation": generation, "resourceSliceCount": slices}
    spec = {"driver": driver, "pool": pool_spec, **where, "devices": list(device_list), **spec}
    return {"apiVersion": RESOURCE_API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> Json:
    """A class of the devices that the expressions select; of those of its driver unless any is given."""
    cel_expressions = expressions or (f'device.driver == "{name}.example.com"',)
    selectors = [{"cel": {"expression": expression}} for expression in cel_expressions]
    return {
        "apiVersion": RESOURCE_API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors, **spec},
    }


def exactly(name: str = "gpu", device_class: str = "gpu", *expressions: str, **fields: Any) -> Json:
    """A request for devices of a class that the expressions select."""
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return {"name": name, "exactly": {"deviceClassName": device_class, "selectors": selectors, **fields}}


def resource_claim(name: str, *requests: Json, constraints: Iterable[Json] = (), **status: Any) -> Json:
    """A claim of these requests."""
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    spec = {"devices": {"requests": list(requests), "constraints": list(constraints)}}
    return {
        "apiVersion": RESOURCE_API,
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def held_claim(name: str, devices_by_node: Mapping[str, Iterable[str]], users: Iterable[str] = ()) -> Json:
    """A claim that has these devices, by the node whose pool they are of."""
    results = [
        {"request": "gpu", "driver": GPU_DRIVER, "pool": node, "device": device_name}
        for node, names in devices_by_node.items()
        for device_name in names
    ]
    reserved = [{"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in users]
    return resource_claim(name, exactly(), allocation={"devices": {"results": results}}, reservedFor=reserved)


def claiming(*names: str) -> list[Json]:
    """`spec.resourceClaims` of a pod that uses these claims."""
    return [{"name": f"claim-{index}", "resourceClaimName": claim_name} for index, claim_name in enumerate(names)]
