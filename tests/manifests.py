"""Nodes and pods as a user would post them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def node(
    name: str,
    cpu: str = "16",
    *,
    memory: str = "64Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
    unschedulable: bool = False,
) -> Json:
    """A ready node."""
    resources = {"cpu": cpu, "memory": memory, "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {
            "capacity": resources,
            "allocatable": dict(resources),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def nodes(count: int, **fields: Any) -> list[Json]:
    """Nodes of one kind: node-0, node-1…"""
    return [node(f"node-{index}", **fields) for index in range(count)]


def pod(
    name: str,
    cpu: str = "100m",
    *,
    memory: str = "64Mi",
    image: str = "app",
    labels: Mapping[str, str] | None = None,
    node: str = "",
    scheduler: str | None = "podium",
    host_port: int | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """A pod of one container, pending unless it has a node; other fields of its spec are given as in the API.

    With `scheduler=None` it names none.
    """
    container: Json = {"name": "main", "image": image, "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    if host_port is not None:
        container["ports"] = [{"containerPort": host_port, "hostPort": host_port}]
    optional_fields = {"nodeName": node or None, "schedulerName": scheduler}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": dict(labels or {})},
        "spec": {
            **{key: name for key, name in optional_fields.items() if name is not None},
            "containers": [container],
            **spec,
        },
    }
    return manifest if status is None else {**manifest, "status": dict(status)}


def pods(count: int, prefix: str = "web", **fields: Any) -> list[Json]:
    """Pods of one kind: web-0, web-1…"""
    return [pod(f"{prefix}-{index}", **fields) for index in range(count)]


def condition(item: Json, kind: str = "PodScheduled") -> Json:
    """The pod's condition of that type; empty where it has none."""
    return next((entry for entry in item.get("status", {}).get("conditions", ()) if entry["type"] == kind), {})
