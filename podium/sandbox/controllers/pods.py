"""The pods of a workload: making them from a template, and telling which of them count."""

from __future__ import annotations

from typing import Any

from podium.sandbox.controllers.ownership import owner_reference
from podium.sandbox.journal import Record
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store

Json = dict[str, Any]

PODS = resource_named("pods")
FINISHED = ("Succeeded", "Failed")


def create_pod(store: Store, owner: Json, *, labels: Json | None = None, finalizers: list[str] | None = None) -> None:
    """Create one pod from a workload's template.

    Raises:
        ApiError: the API server refuses it.
    """
    template = owner["spec"].get("template") or {}
    given = template.get("metadata") or {}
    metadata = {
        "generateName": f"{owner['metadata']['name']}-",
        "labels": (given.get("labels") or {}) | (labels or {}),
        "annotations": given.get("annotations") or {},
        "finalizers": finalizers or [],
        "ownerReferences": [owner_reference(owner)],
    }
    kept = {field: value for field, value in metadata.items() if value}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": template.get("spec") or {}}
    store.create(pod, namespace=owner["metadata"]["namespace"])


def phase_of(pod: Json) -> str:
    """The phase in a pod's status."""
    return str((pod.get("status") or {}).get("phase", "Pending"))


def is_active(pod: Json) -> bool:
    """Whether a pod counts as one of its workload's: it has not ended and is not being deleted."""
    return phase_of(pod) not in FINISHED and "deletionTimestamp" not in pod["metadata"]


def is_ready(pod: Json) -> bool:
    """Whether its kubelet says that a pod is ready."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def by_dispensability(record: Record) -> tuple[bool, bool, bool, int]:
    """The order in which surplus pods go: those without a node, pending or unready ones first, then the newest."""
    pod = record.obj
    has_node = bool((pod.get("spec") or {}).get("nodeName"))
    return has_node, phase_of(pod) == "Running", is_ready(pod), -record.revision
