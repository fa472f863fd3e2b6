"""Workloads, claims and classes as a user would post them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.manifests import Json, pod

SCHEDULER = "default-scheduler"
_API_VERSIONS = {"Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1"}


def template(cpu: str = "1", labels: Mapping[str, str] | None = None, **spec: Any) -> Json:
    """A pod template with one container."""
    return {"metadata": {"labels": dict(labels or {})}, "spec": pod("any", cpu, scheduler=SCHEDULER, **spec)["spec"]}


def workload(
    kind: str,
    name: str = "web",
    replicas: int | None = None,
    *,
    cpu: str = "1",
    pod_spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """A workload that selects its pods by `app`; other fields of its spec are given as in the API."""
    labels = {"app": name}
    selector = {} if kind in ("Job", "CronJob") else {"selector": {"matchLabels": labels}}
    count = {} if replicas is None else {"replicas": replicas}
    manifest = {
        "apiVersion": _API_VERSIONS.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**selector, **count, "template": template(cpu, labels, **(pod_spec or {})), **spec},
    }
    return manifest if status is None else {**manifest, "status": dict(status)}


def with_owner(item: Json, kind: str, name: str, uid: str = "") -> Json:
    """The object as one that a workload controls."""
    reference = {
        "apiVersion": _API_VERSIONS.get(kind, "apps/v1"),
        "kind": kind,
        "name": name,
        "uid": uid or f"{kind}/default/{name}",
        "controller": True,
    }
    return {**item, "metadata": {**item["metadata"], "ownerReferences": [reference]}}


def claim_template(name: str = "data", size: str = "5Gi", storage_class: str | None = "slow") -> Json:
    """A template of a claim to storage."""
    class_fields = {} if storage_class is None else {"storageClassName": storage_class}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **class_fields}
    return {"metadata": {"name": name}, "spec": spec}


def claim(
    name: str = "data",
    size: str = "5Gi",
    storage_class: str | None = "slow",
    *,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """A claim to storage; other fields of its metadata and spec are given as in the API."""
    manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", **(metadata or {})},
        "spec": {**claim_template(name, size, storage_class)["spec"], **spec},
    }
    return manifest if status is None else {**manifest, "status": dict(status)}


def storage(size: str, name: str = "slow", *, is_default: bool = False) -> list[Json]:
    """A class that waits for its first consumer, and how much its driver has left on all nodes."""
    driver = f"{name}.example.com"
    marks = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name, "annotations": marks},
            "provisioner": driver,
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": driver},
            "spec": {"storageCapacity": True},
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": f"{name}-left", "namespace": "default"},
            "storageClassName": name,
            "nodeTopology": {},
            "capacity": size,
        },
    ]


def limit_range(*items: Mapping[str, Any]) -> Json:
    """A LimitRange of the default namespace."""
    metadata = {"name": "limits", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": list(items)}}


def quota(name: str = "quota", usage: Mapping[str, str] | None = None, **spec: Any) -> Json:
    """A ResourceQuota of the default namespace; `hard` is a field of its spec."""
    status = {} if usage is None else {"status": {"hard": spec.get("hard"), "used": dict(usage)}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec, **status}


def runtime_class(name: str = "kata", **fields: Any) -> Json:
    """A RuntimeClass with these fields."""
    metadata = {"name": name}
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": metadata, "handler": name, **fields}


def priority_class(name: str, value: int, **fields: Any) -> Json:
    """A PriorityClass."""
    metadata = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata,
        "value": value,
        **fields,
    }


def budget(labels: Mapping[str, str], name: str = "budget", **spec: Any) -> Json:
    """A PodDisruptionBudget of the pods with these labels."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": dict(labels)}, **spec},
    }


def device_claim_template(name: str, *requests: Json) -> Json:
    """A ResourceClaimTemplate of these requests."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": list(requests)}}},
    }


def claims_from(*templates: str) -> list[Json]:
    """`spec.resourceClaims` of a pod that has claims of these templates."""
    return [{"name": name, "resourceClaimTemplateName": name} for name in templates]


def ready(since: str | None = None, *, is_ready: bool = True) -> Json:
    """The status of a running pod."""
    condition = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": since}
    return {"phase": "Running", "conditions": [{key: value for key, value in condition.items() if value is not None}]}


def names_of(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of objects."""
    return [item["metadata"]["name"] for item in items]
