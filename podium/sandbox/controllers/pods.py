"""The pods of a workload: creating them from a template, and deciding which of them count."""

from __future__ import annotations

from typing import Any

from podium.sandbox.controllers.ownership import owner_reference
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store

Json = dict[str, Any]

PODS = resource_named("pods")
FINISHED = ("Succeeded", "Failed")


def create_pod(
    store: Store,
    owner: Json,
    *,
    template: Json | None = None,
    name: str = "",
    prefix: str = "",
    labels: Json | None = None,
    annotations: Json | None = None,
    finalizers: list[str] | None = None,
) -> None:
    """Create one pod from a workload's template.

    Args:
        template: another template than the workload's own.
        name: the name of the pod; without it, a name is generated.
        prefix: how a generated name begins, if not with the name of the workload.

    Raises:
        ApiError: the store refuses the pod.
    """
    template = template or owner["spec"].get("template") or {}
    template_metadata = template.get("metadata") or {}
    metadata = {
        "name": name,
        "generateName": "" if name else prefix or f"{owner['metadata']['name']}-",
        "labels": (template_metadata.get("labels") or {}) | (labels or {}),
        "annotations": (template_metadata.get("annotations") or {}) | (annotations or {}),
        "finalizers": finalizers or [],
        "ownerReferences": [owner_reference(owner)],
    }
    fields = {field: value for field, value in metadata.items() if value}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": fields, "spec": template.get("spec") or {}}
    store.create(pod, namespace=owner["metadata"]["namespace"])


def phase_of(pod: Json) -> str:
    """Return the phase of a pod, from its status."""
    return str((pod.get("status") or {}).get("phase", "Pending"))


def is_active(pod: Json) -> bool:
    """Return whether a pod counts for its workload: it has not ended and is not being deleted."""
    return phase_of(pod) not in FINISHED and "deletionTimestamp" not in pod["metadata"]


def is_ready(pod: Json) -> bool:
    """Return whether a pod's Ready condition is true."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)
