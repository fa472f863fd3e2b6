"""Decides when a deleted object is removed: finalizers keep any object, a grace period keeps a pod that has a node.

Source: apiserver pkg/registry/rest/delete.go, kubernetes pkg/registry/core/pod/strategy.go (v1.36).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from podium.sandbox.errors import bad_request
from podium.sandbox.resources import ResourceType

Json = dict[str, Any]


def is_finished(metadata: Json) -> bool:
    """Return whether an object that is being deleted can be removed now."""
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )


def mark(resource: ResourceType, obj: Json, options: Json, current_time: datetime) -> Json | None:
    """Return the object marked as being deleted, or None if it can be removed at once.

    Raises:
        ApiError: 400, the grace period is not a number.
    """
    metadata = obj["metadata"]
    grace_s = _grace_period_s(resource, obj, options)
    if grace_s == 0 and not metadata.get("finalizers"):
        return None
    # A repeated deletion may shorten the grace period, but not extend it.
    if "deletionTimestamp" in metadata and grace_s >= (metadata.get("deletionGracePeriodSeconds") or 0):
        return obj | {"metadata": dict(metadata)}
    deletion_time = current_time + timedelta(seconds=grace_s)
    deletion_fields = {
        "deletionTimestamp": deletion_time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "deletionGracePeriodSeconds": grace_s,
        "generation": metadata.get("generation", 0) + 1,
    }
    return obj | {"metadata": metadata | deletion_fields}


def _grace_period_s(resource: ResourceType, obj: Json, options: Json) -> int:
    if resource.storage != "pods":
        return 0
    spec, phase = obj.get("spec") or {}, (obj.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
        return 0
    grace_s = options.get("gracePeriodSeconds")
    if grace_s is None:
        grace_s = spec.get("terminationGracePeriodSeconds", 30)
    if not isinstance(grace_s, int):
        raise bad_request("gracePeriodSeconds is not a number")
    return max(0, grace_s)
