"""The views of a stored object: its API versions, and metadata only.

Events are stored in their core/v1 form; events.k8s.io/v1 is a view with other names for the same fields.
Source: kubernetes pkg/apis/events/v1/conversion.go (v1.36).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.sandbox.errors import nested_too_deep
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
_ALWAYS_SHOWN: Json = {
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
"""The fields of an Event that an API server shows even when nobody has set them: kubectl can sort by them."""
_EVENTS_TO_CORE = {new: old for old, new in _CORE_TO_EVENTS.items()}


_DEPTH_MAX = 100


def without_nulls(value: Any, depth: int = 0) -> Any:
    """Return a JSON value without fields that are null: to an API server such a field is not there.

    Raises:
        ApiError: 400, it is nested too deep.
    """
    if not isinstance(value, dict | list):
        return value
    if depth > _DEPTH_MAX:
        raise nested_too_deep()
    if isinstance(value, list):
        return [without_nulls(item, depth + 1) for item in value]
    return {name: without_nulls(item, depth + 1) for name, item in value.items() if item is not None}


def to_stored(resource: ResourceType, obj: Json) -> Json:
    """Convert an object from a client to its stored form."""
    if resource.group != "events.k8s.io":
        return obj
    return {_EVENTS_TO_CORE.get(name, name): value for name, value in obj.items()} | {"apiVersion": "v1"}


def shape_of(resource: ResourceType) -> Callable[[Json], Json] | None:
    """Return the function that converts a stored object to this type, or None if no conversion is needed."""
    if resource.kind != "Event":
        return None
    return _as_events_v1 if resource.group == "events.k8s.io" else _as_core_event


def _as_core_event(obj: Json) -> Json:
    return _ALWAYS_SHOWN | obj


def _as_events_v1(obj: Json) -> Json:
    fields = {_CORE_TO_EVENTS.get(name, name): value for name, value in _as_core_event(obj).items()}
    return fields | {"apiVersion": "events.k8s.io/v1"}


def metadata_only(obj: Json) -> Json:
    """Return the object as a `PartialObjectMetadata`."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
