"""Nodes and pods to measure with, as data: a workload is a row in `WORKLOADS`.

Source: kubernetes test/integration/scheduler_perf (templates and sizes), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

SCHEDULER_NAME: Final = "bench"
NAMESPACE: Final = "default"
ZONES: Final = ("zone-a", "zone-b", "zone-c")

_REGION = "region-1"
_RESOURCES: Final = {
    "cpu": "32",
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


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods of one kind. `spec` is merged over the plain pod's spec, key by key."""

    name: str
    about: str
    labels: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)

    def pod(self, number: int) -> Json:
        """The pod of that number, as it is created."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{self.name}-{number:06}",
                "namespace": NAMESPACE,
                "labels": {"app": self.name, **self.labels},
            },
            "spec": {
                "schedulerName": SCHEDULER_NAME,
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.invalid/app:1",
                        "ports": [{"containerPort": 80}],
                        "resources": {
                            "requests": {"cpu": "100m", "memory": "500Mi"},
                            "limits": {"cpu": "100m", "memory": "500Mi"},
                        },
                    }
                ],
                **self.spec,
            },
        }


def _zone_is_one_of(*zones: str) -> Json:
    requirement = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(zones)}
    terms = [{"matchExpressions": [requirement]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


WORKLOADS: Final[Mapping[str, Workload]] = {
    each.name: each
    for each in (
        Workload("plain", "pods with requests and nothing else"),
        Workload(
            "node-affinity",
            "required node affinity to two of three zones",
            spec={"affinity": _zone_is_one_of("zone-a", "zone-b")},
        ),
    )
}


def node(number: int) -> Json:
    """A ready node of about 4 KB, as a kubelet would report it; zones take turns."""
    name = f"node-{number:05}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "general-32",
                "topology.kubernetes.io/region": _REGION,
                "topology.kubernetes.io/zone": ZONES[number % len(ZONES)],
            },
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"podCIDR": f"10.{number >> 8 & 255}.{number & 255}.0/24", "providerID": f"bench:///{name}"},
        "status": {
            "capacity": dict(_RESOURCES),
            "allocatable": dict(_RESOURCES),
            "conditions": [_condition(*each) for each in _CONDITIONS],
            "addresses": [
                {"type": "InternalIP", "address": f"172.16.{number >> 8 & 255}.{number & 255}"},
                {"type": "Hostname", "address": name},
            ],
            "images": [_image(number % 7 + index) for index in range(_IMAGES_PER_NODE)],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "containerd://2.2.0",
                "kernelVersion": "6.12.0",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.2",
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


def _image(number: int) -> Json:
    digest = f"{number:064x}"
    return {
        "names": [f"registry.invalid/service-{number}@sha256:{digest}", f"registry.invalid/service-{number}:1"],
        "sizeBytes": _IMAGE_BYTES * (number + 1),
    }
