"""Resource types of CustomResourceDefinitions that plugins watch, made from group, version and plural.

Owns the table of these types, so that files, recordings and questions read the same objects as the informers. A type is
added when the module of a plugin that reads it is imported, and is never removed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec

from podium.objects.meta import ClusterObject, NamespacedObject
from podium.objects.node_metrics import NODE_METRICS
from podium.objects.resource_types import ALL, CUSTOM, CustomEventResource, ResourceType

CustomT = TypeVar("CustomT", bound=NamespacedObject | ClusterObject)

_API_VERSION: Final = re.compile(r"[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+/v[0-9][a-z0-9]*")
_PLURAL: Final = re.compile(r"[a-z][a-z0-9-]*")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")

_TYPES: dict[str, ResourceType[Any]] = {}
"""The types by the path of their collection."""


def custom_resource(api_version: str, plural: str, objects: type[CustomT]) -> ResourceType[CustomT]:
    """Return the resource type of a CustomResourceDefinition, for `handle.lister`.

    Changes of its objects are the cluster events `<plural>.<version>.<group>`.

    Args:
        api_version: group and version, such as `scheduling.x-k8s.io/v1alpha1`.
        objects: the type that objects are decoded to, derived from `NamespacedObject` or `ClusterObject` and named
            after the kind; `raw_objects` makes one without declared fields.

    Raises:
        ValueError: an argument is malformed, or the resource is decoded to another type already.
        TypeError: `objects` is another type.
    """
    if not _API_VERSION.fullmatch(api_version):
        raise ValueError(f"api_version: expected <group>/<version> such as example.com/v1, got {api_version!r}")
    if not _PLURAL.fullmatch(plural):
        raise ValueError(f"plural: expected a name in lower case such as elasticquotas, got {plural!r}")
    if not issubclass(objects, NamespacedObject | ClusterObject):
        raise TypeError(f"objects: {objects!r} is not derived from NamespacedObject or ClusterObject")
    group, _, version = api_version.partition("/")
    event = CustomEventResource(f"{plural}.{version}.{group}")
    kind = str(objects.__struct_config__.tag)
    resource = ResourceType(kind, f"/apis/{api_version}/{plural}", objects, event=event, gate=CUSTOM)
    former = _TYPES.get(resource.path)
    if former is not None and _name_of(former) != _name_of(resource):
        raise ValueError(f"{plural}.{group}: its objects are decoded to {_name_of(former)} already; use that type")
    if former is not None and former.type.__struct_fields__ == objects.__struct_fields__:
        return former
    _TYPES[resource.path] = resource
    return resource


def raw_objects(kind: str, fields: Sequence[str] = ("spec", "status"), *, namespaced: bool = True) -> type[Any]:
    """Return a type of objects whose fields are kept as parsed from JSON: dicts, lists, texts and numbers.

    Args:
        fields: the top-level fields to keep beside `metadata`, as attributes of the same name; an absent one is {}.

    Raises:
        ValueError: the kind is not a name such as `ElasticQuota`.
    """
    if not _KIND.fullmatch(kind):
        raise ValueError(f"kind: expected a name such as ElasticQuota, got {kind!r}")
    base = NamespacedObject if namespaced else ClusterObject
    columns: list[tuple[str, Any, Any]] = [(field, Any, msgspec.field(default_factory=dict)) for field in fields]
    return msgspec.defstruct(kind, columns, bases=(base,), frozen=True, kw_only=True, tag_field="kind", tag=kind)


def custom_resources() -> tuple[ResourceType[Any], ...]:
    """Return the resource types that plugins have made so far."""
    return tuple(_TYPES.values())


def all_resources() -> tuple[ResourceType[Any], ...]:
    """Return every resource type that podium or a plugin can read."""
    return (*ALL, NODE_METRICS, *_TYPES.values())


def custom_resource_of(api_version: str, kind: str) -> ResourceType[Any] | None:
    """Return the type of a manifest's objects, of its version or else of its group; None if there is none."""
    group = api_version.partition("/")[0]
    candidates = [resource for resource in _TYPES.values() if (resource.group, resource.kind) == (group, kind)]
    exact = (resource for resource in candidates if resource.api_version == api_version)
    return next(exact, candidates[0] if candidates else None)


def _name_of(resource: ResourceType[Any]) -> str:
    return f"{resource.type.__module__}.{resource.type.__qualname__}"
