"""The metadata of created and updated objects: which fields the server sets, and which are immutable."""

from __future__ import annotations

import random
import string
from typing import Any

from podium.sandbox.errors import bad_request, conflict, stale
from podium.sandbox.resources import ResourceType

Json = dict[str, Any]

_SET_BY_SERVER = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
)
_FIXED = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "name",
    "namespace",
    "generateName",
)


def new_metadata(resource: ResourceType, namespace: str | None, obj: Json, chance: random.Random) -> Json:
    """Return the metadata of an object that is being created, without the fields that the store sets.

    Args:
        namespace: the namespace of the URL. With None the object's own counts, else "default".
        chance: generates the name of an object that has only a generateName.

    Raises:
        ApiError: 400, the object has a resourceVersion, or its namespace differs from the URL's.
    """
    metadata = dict(obj.get("metadata") or {})
    if metadata.pop("resourceVersion", None):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for name in _SET_BY_SERVER:
        metadata.pop(name, None)
    if resource.namespaced:
        if namespace and metadata.get("namespace") not in (None, "", namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = namespace or metadata.get("namespace") or "default"
    else:
        metadata.pop("namespace", None)
    if not metadata.get("name") and metadata.get("generateName"):
        suffix = "".join(chance.choices(string.ascii_lowercase + string.digits, k=5))
        metadata["name"] = metadata["generateName"] + suffix
    return metadata


def updated_metadata(resource: ResourceType, previous: Json, obj: Json) -> Json:
    """Return the metadata after an update. Immutable fields keep their values.

    Raises:
        ApiError: 400, the name differs; 409, the uid differs or the resourceVersion is not the present one.
    """
    new_metadata = obj.get("metadata") or {}
    name = previous["name"]
    if new_metadata.get("name", name) != name:
        raise bad_request(
            f"the name of the object ({new_metadata['name']}) does not match the name on the URL ({name})"
        )
    if new_metadata.get("resourceVersion") not in (None, "", "0", previous["resourceVersion"]):
        raise stale(resource, name)
    if new_metadata.get("uid") not in (None, "", previous.get("uid")):
        reason = (
            f"Precondition failed: UID in precondition: {new_metadata['uid']}, "
            f"UID in object meta: {previous.get('uid')}"
        )
        raise conflict(resource, name, reason)
    metadata = {
        field: value for field, value in new_metadata.items() if field not in _FIXED and field != "managedFields"
    }
    return metadata | {field: previous[field] for field in _FIXED if field in previous}
