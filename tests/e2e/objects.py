"""Nodes and pods as a user would post them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"


def node(
    name: str,
    *,
    cpu: str = "16",
    memory: str = "64Gi",
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
    cordoned: bool = False,
) -> Json:
    """A ready node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": {"taints": list(taints), "unschedulable": cordoned},
        "status": {
            "capacity": {"cpu": cpu, "memory": memory, "pods": "110"},
            "allocatable": {"cpu": cpu, "memory": memory, "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def nodes(count: int, **fields: Any) -> list[Json]:
    """Nodes of one kind: node-0, node-1…"""
    return [node(f"node-{index}", **fields) for index in range(count)]


def pod(
    name: str,
    *,
    cpu: str = "100m",
    scheduler: str = "podium",
    host_port: int | None = None,
    **spec: Any,
) -> Json:
    """A pending pod of one container; what has no keyword of its own is given as it stands in the API's spec."""
    container: Json = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    if host_port is not None:
        container["ports"] = [{"containerPort": host_port, "hostPort": host_port}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": scheduler, "containers": [container], **spec},
    }


def pods(count: int, prefix: str = "web", **fields: Any) -> list[Json]:
    """Pods of one kind: web-0, web-1…"""
    return [pod(f"{prefix}-{index}", **fields) for index in range(count)]


def condition(item: Json, kind: str = "PodScheduled") -> Json:
    """The pod's condition of that type; empty where it has none."""
    return next((each for each in item.get("status", {}).get("conditions", ()) if each["type"] == kind), {})
