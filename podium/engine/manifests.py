"""Objects as they lie in files, into typed ones: what an API server adds on the way in is filled in.

Differs: of what an API server adds, only what everything else rests on: a namespace, and a UID that no other object
has. `podium.engine.admission` knows the rest, for files that no API server has seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from podium.engine.errors import ManifestError
from podium.objects import resource_types
from podium.objects.core import NamespacedObject, Pod
from podium.objects.resource_types import KubeObject, ResourceType
from podium.objects.unreadable import readable_part
from podium.objects.wire import without_nulls

Manifest: TypeAlias = Mapping[str, Any]
"""An object as parsed from JSON or YAML."""

ObjectT = TypeVar("ObjectT", bound=KubeObject)

DEFAULT_NAMESPACE = "default"

_RESOURCES: Mapping[tuple[str, str], ResourceType[Any]] = {
    (resource.group, resource.kind): resource for resource in resource_types.ALL
}


def resource_of(manifest: Manifest) -> ResourceType[Any] | None:
    """The resource that the object belongs to; None for one that no scheduler reads."""
    version, kind = manifest.get("apiVersion"), manifest.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return None
    return _RESOURCES.get((version.rpartition("/")[0], kind))


def read_manifest(manifest: object, resource: ResourceType[ObjectT]) -> ObjectT:
    """The typed object; of a running pod, a node or a budget what can be read of it, as a scheduler has to count it.

    Raises:
        ManifestError: a field has a value of a wrong type, or the object has no name.
    """
    if not isinstance(manifest, dict):
        raise ManifestError(f"{resource.kind}: expected an object, got {type(manifest).__name__}")
    metadata = manifest.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise ManifestError(f"{resource.kind}: metadata: expected an object, got {type(metadata).__name__}")
    if not metadata.get("name"):
        raise ManifestError(f"{resource.kind}: metadata.name: required")
    namespace = metadata.get("namespace") or (DEFAULT_NAMESPACE if is_namespaced(resource) else "")
    key = f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
    uid = metadata.get("uid") or f"{resource.kind}/{key}"
    whole = {**manifest, "metadata": {**metadata, "namespace": namespace, "uid": uid}}
    try:
        return msgspec.convert(whole, resource.type)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(without_nulls(whole), resource.type)
    except msgspec.ValidationError as error:
        part: ObjectT | None = readable_part(resource.type, msgspec.Raw(msgspec.json.encode(whole)), str(error))
        if part is not None:
            return part
        raise ManifestError(f"{resource.kind} {key}: {_field_first(str(error))}") from None


def is_namespaced(resource: ResourceType[Any]) -> bool:
    """Whether objects of the resource live in namespaces."""
    return issubclass(resource.type, (NamespacedObject, Pod))


def _field_first(detail: str) -> str:
    """`Expected x, got y - at $.spec.z` as `spec.z: expected x, got y`."""
    what, _, path = detail.rpartition(" - at ")
    if not what:
        return detail
    return f"{path.strip('`').removeprefix('$.')}: {what[0].lower()}{what[1:]}".replace("`", "")
