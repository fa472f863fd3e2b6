"""The `scale` subresource: the replicas of a workload as a separate object.

Source: kubernetes pkg/registry/apps/deployment/storage (v1.36), autoscaling/v1.
"""

from __future__ import annotations

from typing import Any

from podium.sandbox.errors import Cause, invalid
from podium.sandbox.journal import Record
from podium.sandbox.resources import ResourceType
from podium.sandbox.selectors import label_selector_text
from podium.sandbox.store import Store
from podium.sandbox.validation import mapping

Json = dict[str, Any]

_SHOWN_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(record: Record) -> Json:
    """Return the `Scale` of a workload."""
    metadata, spec = record.obj["metadata"], record.obj.get("spec") or {}
    selector = spec.get("selector") or {}
    if record.obj["kind"] == "ReplicationController":
        selector = {"matchLabels": selector}
    status = {"replicas": (record.obj.get("status") or {}).get("replicas", 0)}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _SHOWN_METADATA if name in metadata},
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": status | {"selector": label_selector_text(selector)},
    }


def replace_replicas(store: Store, resource: ResourceType, record: Record, scale: Json) -> Record:
    """Set the replicas of a workload from a `Scale`.

    Raises:
        ApiError: 409, the `Scale` has an outdated resourceVersion; 422, the replicas are not a valid number.
    """
    replicas = mapping(scale, "spec").get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
        reason = f'Invalid value: "{replicas}": must be greater than or equal to 0'
        raise invalid(resource, record.key[1], [Cause("spec.replicas", reason)])
    scale_metadata = mapping(scale, "metadata")
    metadata = record.obj["metadata"] | {
        name: scale_metadata[name] for name in ("uid", "resourceVersion") if scale_metadata.get(name)
    }
    spec = (record.obj.get("spec") or {}) | {"replicas": replicas}
    return store.update_record(resource, record, record.obj | {"metadata": metadata, "spec": spec})
