"""Nodes to measure with, as a kubelet would report them.

Source: kubernetes test/integration/scheduler_perf (templates), v1.36.2.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

ZONES: Final = ("zone-a", "zone-b", "zone-c")
CPUS: Final = 32

_REGION = "region-1"
_RESOURCES: Final = {
    "cpu": str(CPUS),
    "memory": "128Gi",
    "ephemeral-storage": "200Gi",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
    "pods": "110",
}
_IMAGES_PER_NODE = 10
_IMAGE_BYTES = 24_000_000
_READY_SINCE = "2026-01-01T00:00:00Z"
_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
)


def name(number: int) -> str:
    """The name of that node."""
    return f"node-{number:05}"


def node(number: int) -> Json:
    """A ready node of about 4 KB, as a kubelet would report it; zones take turns."""
    own = name(number)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": own,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": own,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "general-32",
                "topology.kubernetes.io/region": _REGION,
                "topology.kubernetes.io/zone": ZONES[number % len(ZONES)],
            },
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"podCIDR": f"10.{number >> 8 & 255}.{number & 255}.0/24", "providerID": f"bench:///{own}"},
        "status": {
            "capacity": dict(_RESOURCES),
            "allocatable": dict(_RESOURCES),
            "conditions": [_condition(*condition) for condition in _CONDITIONS],
            "addresses": [
                {"type": "InternalIP", "address": f"172.16.{number >> 8 & 255}.{number & 255}"},
                {"type": "Hostname", "address": own},
            ],
            "images": [image(number % 7 + index) for index in range(_IMAGES_PER_NODE)],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "containerd://2.2.0",
                "kernelVersion": "6.12.0",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.37.2",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "Linux",
                "systemUUID": "",
            },
        },
    }


def _condition(kind: str, status: str, reason: str) -> Json:
    times = {"lastHeartbeatTime": _READY_SINCE, "lastTransitionTime": _READY_SINCE}
    return {"type": kind, "status": status, "reason": reason, "message": f"kubelet reports {reason}", **times}


def image(number: int) -> Json:
    digest = f"{number:064x}"
    return {
        "names": [f"registry.invalid/service-{number}@sha256:{digest}", f"registry.invalid/service-{number}:1"],
        "sizeBytes": _IMAGE_BYTES * (number + 1),
    }
