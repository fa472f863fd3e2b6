"""Devices for the workload `devices`: eight on each node, and a claim for two of them at one PCIe root for each pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks import nodes, pods
from benchmarks.nodes import Json

PER_NODE: Final = 8
PER_CLAIM: Final = 2
_API_VERSION: Final = "resource.k8s.io/v1"
_DRIVER: Final = "gpu.driver.invalid"
_CLASS: Final = "gpu"
_ROOT: Final = "resource.kubernetes.io/pcieRoot"
_DEVICES_PER_ROOT: Final = 4


def pod_with_claim(number: int, app: str) -> Json:
    """A pod that uses the claim of its number."""
    claim = {"name": "gpus", "resourceClaimName": claim_name(number)}
    return pods.pod(f"{app}-{number:06}", app, resourceClaims=[claim])


def claims_and_devices(node_count: int, pod_count: int) -> Iterator[Json]:
    """The class, the devices of each node, and a claim for each pod."""
    selector = {"cel": {"expression": f'device.driver == "{_DRIVER}"'}}
    yield _object("DeviceClass", {"name": _CLASS}, {"selectors": [selector]})
    for number in range(node_count):
        yield _slice(nodes.name(number))
    for number in range(pod_count):
        yield _claim(number)


def allocated_claims(count: int) -> Iterator[Json]:
    """Claims that hold devices which no node of the cluster can reach."""
    for number in range(count):
        claim = _claim(number)
        claim["metadata"]["name"] = f"held-{number:06}"
        results = [
            {"request": "gpus", "driver": _DRIVER, "pool": f"elsewhere-{number:06}", "device": f"gpu-{index}"}
            for index in range(PER_CLAIM)
        ]
        claim["status"] = {"allocation": {"devices": {"results": results}}}
        yield claim


def claim_name(number: int) -> str:
    """The claim of the pod of that number."""
    return f"gpus-{number:06}"


def _claim(number: int) -> Json:
    expression = f'device.attributes["{_DRIVER}"].model == "large" && device.attributes["{_DRIVER}"].index >= 0'
    exactly = {
        "deviceClassName": _CLASS,
        "allocationMode": "ExactCount",
        "count": PER_CLAIM,
        "selectors": [{"cel": {"expression": expression}}],
    }
    devices = {
        "requests": [{"name": "gpus", "exactly": exactly}],
        "constraints": [{"requests": ["gpus"], "matchAttribute": _ROOT}],
    }
    metadata = {"name": claim_name(number), "namespace": pods.NAMESPACE}
    return _object("ResourceClaim", metadata, {"devices": devices})


def _slice(node_name: str) -> Json:
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {
                "index": {"int": index},
                "model": {"string": "large"},
                "uuid": {"string": f"{node_name}-{index}"},
                _ROOT: {"string": f"pci0000:{index // _DEVICES_PER_ROOT:02x}"},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for index in range(PER_NODE)
    ]
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": _DRIVER, "nodeName": node_name, "pool": pool, "devices": devices}
    return _object("ResourceSlice", {"name": f"{node_name}-gpus"}, spec)


def _object(kind: str, metadata: Json, spec: Json) -> Json:
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
