"""The shapes one stored object is shown in: its API version, and metadata only.

Events are stored in their core/v1 form; events.k8s.io/v1 is a view with other names for the same fields.
Source: kubernetes pkg/apis/events/v1/conversion.go (v1.36).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.sandbox.resources import ResourceType

Json = dict[str, Any]

_CORE_TO_EVENTS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENTS_TO_CORE = {new: old for old, new in _CORE_TO_EVENTS.items()}


def to_stored(resource: ResourceType, obj: Json) -> Json:
    """An object as a client sent it, in the form that is stored."""
    if resource.group != "events.k8s.io":
        return obj
    return {_EVENTS_TO_CORE.get(name, name): value for name, value in obj.items()} | {"apiVersion": "v1"}


def shape_of(resource: ResourceType) -> Callable[[Json], Json] | None:
    """How a stored object becomes what a reader of this type sees; None when it stays as it is."""
    return _as_events_v1 if resource.group == "events.k8s.io" else None


def _as_events_v1(obj: Json) -> Json:
    shown = {_CORE_TO_EVENTS.get(name, name): value for name, value in obj.items()}
    return shown | {"apiVersion": "events.k8s.io/v1"}


def metadata_only(obj: Json) -> Json:
    """The object as a `PartialObjectMetadata`."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
