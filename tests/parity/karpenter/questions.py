"""What a question to Karpenter is made of, and objects that only questions need.

The clusters are those of the unit tests, completed as an API server completes them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from podium.objects.times import format_time
from podium.provisioner.reports.cases import CONSOLIDATE, SOLVE
from tests.unit.provisioner.clusters import NOW, TYPES, Document, instance_type, pod, requirement
from tests.unit.provisioner.fleets import cluster

Part: TypeAlias = "Document | Sequence[Part]"
"""An object, or several, in lists of lists."""

API_VERSIONS = {
    "NodePool": "karpenter.sh/v1",
    "NodeClaim": "karpenter.sh/v1",
    "NodeOverlay": "karpenter.sh/v1alpha1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "PodDisruptionBudget": "policy/v1",
    "StorageClass": "storage.k8s.io/v1",
    "CSINode": "storage.k8s.io/v1",
}
DISRUPTION = {
    "consolidateAfter": "0s",
    "consolidationPolicy": "WhenEmptyOrUnderutilized",
    "budgets": [{"nodes": "10%"}],
}
DRIVER = "disk.example.com"

WINDOWS = instance_type("windows", 4, "8Gi", 110, price=0.6) | {"operatingSystems": ["windows"]}
GPU = instance_type("gpu", 8, "16Gi", 110, price=2.0)
GPU["resources"]["example.com/gpu"] = "2"
FPGA = instance_type("fpga", 8, "16Gi", 110, price=3.0)
FPGA["resources"]["example.com/fpga"] = "1"
SINGLE = instance_type("single", 4, "8Gi", 1, price=0.3)
MIXED = (*TYPES, WINDOWS, GPU, FPGA, SINGLE)
"""Instance types of each kind: Karpenter's stand-in for a cloud has the like."""


def sized_types(count: int, **fields: Any) -> tuple[Document, ...]:
    """Instance types of 1, 2, 3… cores, twice as many GiB, and ten times as many pods."""
    return tuple(
        instance_type(f"size-{size:02d}", size, f"{2 * size}Gi", 10 * size, **fields) for size in range(1, count + 1)
    )


@dataclass(frozen=True, eq=False)
class Question:
    """One question.

    Attributes:
        category: The part of Karpenter that it is about.
        sentence: What is to be seen; with the category it is the question's id.
    """

    category: str
    sentence: str
    kind: str
    objects: Sequence[Document]
    types: Sequence[Document]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The name of the question."""
        return f"{self.category}: {self.sentence}"

    def row(self, catalogue: str) -> Document:
        """The question as a line of a file; the catalogue stands on a line before."""
        return {
            "id": self.id,
            "kind": self.kind,
            "now": format_time(NOW),
            "settings": dict(self.settings),
            "catalogue": catalogue,
            "objects": [_complete(document) for document in self.objects],
        }


def solve(category: str, sentence: str, *parts: Part, types: Sequence[Document] = TYPES, **settings: Any) -> Question:
    """Ask which nodes are bought; with one NodePool if there is none among the objects."""
    return Question(category, sentence, SOLVE, cluster(*_documents(parts)), types, settings)


def consolidate(category: str, sentence: str, *parts: Part, types: Sequence[Document], **settings: Any) -> Question:
    """Ask which nodes may go."""
    return Question(category, sentence, CONSOLIDATE, cluster(*_documents(parts)), types, settings)


def _documents(parts: Iterable[Part]) -> Iterator[Document]:
    for part in parts:
        if isinstance(part, dict):
            yield part
        else:
            yield from _documents(part)


def _complete(document: Document) -> Document:
    """The object with what an API server fills in."""
    document = copy.deepcopy(document)
    kind, metadata = document["kind"], document["metadata"]
    # Numbers would depend on what was made before.
    metadata["uid"] = f"uid-{metadata['name']}"
    if kind == "NodePool":
        document["spec"]["disruption"] = DISRUPTION | document["spec"].get("disruption", {})
        document["spec"]["template"]["spec"].setdefault("expireAfter", "720h")
    return {"apiVersion": API_VERSIONS.get(kind, "v1"), **document}


def gates(**values: bool) -> Document:
    """Settings with these feature gates."""
    return {"featureGates": values}


def replicas(count: int, prefix: str = "web", **fields: Any) -> list[Document]:
    """Pods of one kind."""
    return [pod(f"{prefix}-{index}", **fields) for index in range(count)]


def selector(**labels: str) -> Document:
    """A pod's node selector."""
    return {"nodeSelector": labels}


def toleration(key: str, **fields: str) -> Document:
    """A toleration of all taints with the key."""
    return {"key": key, "operator": "Exists", **fields}


def taint(key: str, effect: str = "NoSchedule", value: str = "true") -> Document:
    """A taint."""
    return {"key": key, "value": value, "effect": effect}


def at_most(count: int) -> Document:
    """The budget of a NodePool of which so many nodes may go at a time."""
    return {"budgets": [{"nodes": str(count)}]}


def overlay(name: str, *requirements: Document, weight: int | None = None, **spec: Any) -> Document:
    """A NodeOverlay."""
    optional = {} if weight is None else {"weight": weight}
    return {
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": {"requirements": list(requirements), **optional, **spec},
    }


def disruption_budget(name: str = "budget", *, app: str = "web", disruptions: int = 0, **fields: Any) -> Document:
    """A PodDisruptionBudget over an app, in the namespace of its pods unless another is given."""
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": fields.pop("namespace", "default")},
        "spec": {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1, **fields},
        "status": {"disruptionsAllowed": disruptions},
    }


def storage_class(name: str = "standard", *zones: str, **fields: Any) -> Document:
    """A storage class that binds when a pod comes, in these zones or everywhere."""
    terms = [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": list(zones)}]}]
    return {
        "kind": "StorageClass",
        "metadata": {"name": name, **fields.pop("metadata", {})},
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
        **({"allowedTopologies": terms} if zones else {}),
        **fields,
    }


def volume_claim(
    name: str = "data",
    *,
    of: str | None = "standard",
    volume: str = "",
    metadata: Document | None = None,
    **fields: Any,
) -> Document:
    """A volume claim, bound if a volume is named."""
    binding = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if volume else {}
    spec = {"volumeName": volume} if volume else {}
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", **(binding if metadata is None else metadata)},
        "spec": {**spec, **({} if of is None else {"storageClassName": of})},
        "status": {"phase": "Bound" if volume else "Pending", **fields},
    }


def volume(name: str = "disk", *terms: Document | Sequence[Document], **fields: Any) -> Document:
    """A volume of the driver, on nodes that meet any of the terms, or on all."""
    node_terms = [{"matchExpressions": [term] if isinstance(term, dict) else list(term)} for term in terms]
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": node_terms}}} if terms else {}
    source = fields.pop("source", {"csi": {"driver": DRIVER, "volumeHandle": name}})
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name, **fields.pop("metadata", {})},
        "spec": {**source, **affinity, **fields},
    }


def mounts(*claims: str) -> Document:
    """The volumes of a pod that uses these claims."""
    return {
        "volumes": [
            {"name": f"volume-{index}", "persistentVolumeClaim": {"claimName": claim}}
            for index, claim in enumerate(claims)
        ]
    }


def in_zone(*zones: str) -> Document:
    """The requirement to be in one of the zones."""
    return requirement("topology.kubernetes.io/zone", "In", *zones)


def csi_node(name: str, count: int | None) -> Document:
    """How many volumes of the driver a node takes; None is unlimited."""
    limit = {} if count is None else {"allocatable": {"count": count}}
    return {
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": name, **limit}]},
    }


def replica_set(name: str = "web", **selector_fields: Any) -> Document:
    """A ReplicaSet that selects the pods of an app of its name, or otherwise."""
    label_selector = selector_fields or {"matchLabels": {"app": name}}
    return {
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": label_selector, "template": {"metadata": {}, "spec": {"containers": []}}},
    }


def service(name: str = "web", namespace: str = "default", **labels: str) -> Document:
    """A Service that selects these labels."""
    return {"kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": {"selector": labels}}


def namespace(name: str, **labels: str) -> Document:
    """A namespace."""
    return {"kind": "Namespace", "metadata": {"name": name, "labels": labels}}
