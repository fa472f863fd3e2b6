"""Decodes manifests into typed objects, with the metadata that an API server would add.

Differs: adds only the metadata that everything else depends on: a namespace, and a unique UID.
`podium.engine.derivation.admission` adds the other defaults, for files that no API server has admitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from podium.engine.errors import ManifestError
from podium.engine.versions import current_form
from podium.objects import resource_types
from podium.objects.core import Pod
from podium.objects.custom_resources import custom_resource_of
from podium.objects.errors import field_and_detail
from podium.objects.meta import NamespacedObject
from podium.objects.node_metrics import NODE_METRICS
from podium.objects.resource_types import KubeObject, ResourceType
from podium.objects.unreadable import readable_part
from podium.objects.wire import without_nulls

Manifest: TypeAlias = Mapping[str, Any]
"""An object as parsed from JSON or YAML."""

ObjectT = TypeVar("ObjectT", bound=KubeObject)

DEFAULT_NAMESPACE = "default"

_RESOURCES: Mapping[tuple[str, str], ResourceType[Any]] = {
    (resource.group, resource.kind): resource for resource in (*resource_types.ALL, NODE_METRICS)
}


def resource_of(manifest: Manifest) -> ResourceType[Any] | None:
    """Return the resource type of the object; None if a scheduler does not read it."""
    version, kind = manifest.get("apiVersion"), manifest.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return None
    return _RESOURCES.get((version.rpartition("/")[0], kind)) or custom_resource_of(version, kind)


def read_manifest(manifest: object, resource: ResourceType[ObjectT]) -> ObjectT:
    """Decode the object. A running pod, a node or a budget is read as far as possible, because it must count.

    Raises:
        ManifestError: a field has a value of a wrong type, or the object has no name.
    """
    if not isinstance(manifest, dict):
        raise ManifestError(f"{resource.kind}: expected an object, got {type(manifest).__name__}")
    manifest = dict(current_form(manifest, resource.kind))
    metadata = manifest.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise ManifestError(f"{resource.kind}: metadata: expected an object, got {type(metadata).__name__}")
    if metadata.get("name") in (None, ""):
        raise ManifestError(f"{resource.kind}: metadata.name: required")
    namespace = metadata.get("namespace") or (DEFAULT_NAMESPACE if is_namespaced(resource) else "")
    key = f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
    uid = metadata.get("uid") or f"{resource.kind}/{key}"
    full_manifest = {**manifest, "metadata": {**metadata, "namespace": namespace, "uid": uid}}
    try:
        return msgspec.convert(full_manifest, resource.type)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(without_nulls(full_manifest), resource.type)
    except msgspec.ValidationError as error:
        part: ObjectT | None = readable_part(resource.type, msgspec.Raw(msgspec.json.encode(full_manifest)), str(error))
        if part is not None:
            return part
        field, detail = field_and_detail(str(error))
        raise ManifestError(": ".join(filter(None, (f"{resource.kind} {key}", field, detail)))) from None


def as_manifest(resource: ResourceType[ObjectT], item: ObjectT) -> dict[str, Any]:
    """Return the object as a manifest with the fields that a scheduler reads."""
    manifest: dict[str, Any] = msgspec.to_builtins(item)
    if node := manifest.pop("nodeName", ""):
        manifest["spec"] = {**manifest.get("spec", {}), "nodeName": node}
    return {"apiVersion": resource.api_version, "kind": resource.kind, **manifest}


def is_namespaced(resource: ResourceType[Any]) -> bool:
    """Return whether objects of the resource have a namespace."""
    return issubclass(resource.type, (NamespacedObject, Pod))
