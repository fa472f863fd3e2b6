"""Objects as they lie in files."""

from __future__ import annotations

from typing import Any


def node(name: str, cpu: str = "4", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": 110}},
    }


def pod(
    name: str, cpu: str = "1", *, on: str = "", status: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """A pod of one container; `on` is the node it is bound to."""
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    placed = {"nodeName": on} if on else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **placed, **spec},
        "status": status or {},
    }
