"""Refusing Events that no API server would store.

Source: kubernetes pkg/apis/core/validation/events.go (v1.36).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podium.sandbox.errors import Cause
from podium.sandbox.resources import ResourceType
from podium.sandbox.validation import mapping

Json = dict[str, Any]


def validate_new_event(resource: ResourceType, event: Json) -> list[Cause]:
    """Validate an event (in stored form) that is being created through the API of `resource`.

    An event without eventTime has the old format, for which core/v1 checks only the namespace.
    """
    involved = mapping(event, "involvedObject").get("namespace") or "default"
    causes = []
    if event["metadata"]["namespace"] != involved:
        causes.append(Cause("involvedObject.namespace", f'Invalid value: "{involved}": does not match event.namespace'))
    if resource.group == "events.k8s.io":
        if not event.get("eventTime"):
            causes.append(Cause("eventTime", "Required value", "FieldValueRequired"))
        if event.get("type") not in ("Normal", "Warning"):
            causes.append(Cause("type", f'Invalid value: "{event.get("type", "")}": has invalid value'))
    if event.get("eventTime"):
        causes.extend(_modern_event(event))
    return causes


def _modern_event(event: Json) -> Iterator[Cause]:
    for field, label in _REQUIRED_OF_EVENTS.items():
        if not event.get(field):
            yield Cause(label, "Required value", "FieldValueRequired")
    for field, limit in (("action", 128), ("reason", 128), ("reportingInstance", 128), ("message", 1024)):
        if len(str(event.get(field) or "").encode()) > limit:
            yield Cause(field, f"Invalid value: can have at most {limit} characters")


_REQUIRED_OF_EVENTS = {
    "reportingComponent": "reportingController",
    "reportingInstance": "reportingInstance",
    "action": "action",
    "reason": "reason",
}
