"""The metadata of objects that are created and updated: what the server sets, and what nobody may change."""

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
    """The metadata of an object that is being created, as far as its sender decides it.

    Args:
        namespace: that of the URL; None leaves it to the object, else to "default".
        chance: makes the names of those who have a generateName only.

    Raises:
        ApiError: 400, it has a resourceVersion, or the namespace of the URL is another one.
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


def updated_metadata(resource: ResourceType, before: Json, obj: Json) -> Json:
    """The metadata an update leads to; what is fixed stays as it was.

    Raises:
        ApiError: 400 another name; 409 another uid, or not the present resourceVersion.
    """
    given = obj.get("metadata") or {}
    name = before["name"]
    if given.get("name", name) != name:
        raise bad_request(f"the name of the object ({given['name']}) does not match the name on the URL ({name})")
    if given.get("resourceVersion") not in (None, "", "0", before["resourceVersion"]):
        raise stale(resource, name)
    if given.get("uid") not in (None, "", before.get("uid")):
        why = f"Precondition failed: UID in precondition: {given['uid']}, UID in object meta: {before.get('uid')}"
        raise conflict(resource, name, why)
    metadata = {field: value for field, value in given.items() if field not in _FIXED and field != "managedFields"}
    return metadata | {field: before[field] for field in _FIXED if field in before}
