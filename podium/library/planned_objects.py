"""What a plan of nodes reads of a cluster beside what a scheduler reads: further kinds, and further fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import fields

from podium.engine.cluster import Cluster
from podium.engine.derivation.control_objects import CONTROL_RESOURCES
from podium.engine.files import Found
from podium.engine.manifests import DEFAULT_NAMESPACE, Manifest, as_manifest
from podium.objects.resource_types import ALL, ResourceType

NODE_POOL: Final = "NodePool"
_ONLY_PLANNED: Final = frozenset({NODE_POOL, "NodeClaim"})
"""The kinds that only plans read."""
_FULLER: Final = frozenset({"Node", "PersistentVolume", "PodDisruptionBudget"})
"""The kinds of which plans read more fields than a scheduler does."""
_NAMESPACED: Final = frozenset({"PodDisruptionBudget"})

Kept = Mapping[tuple[str, str], Found]


def to_keep(found: Found) -> tuple[str, str] | None:
    """Kind and key of an object that is kept for plans as it was given; None for other objects."""
    kind, metadata = found.manifest.get("kind"), found.manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if kind not in _ONLY_PLANNED | _FULLER or not isinstance(metadata, Mapping) or not isinstance(name, str):
        return None
    return kind, f"{metadata.get('namespace') or DEFAULT_NAMESPACE}/{name}" if kind in _NAMESPACED else name


def objects_to_plan(cluster: Cluster, kept: Kept) -> list[Found]:
    """All objects that plans read, as they are now."""
    found = [
        Found(_whole(resource, item, kept.get((resource.kind, item.key))), resource.kind)
        for resource in ALL
        for item in cluster.store.objects(resource).values()
    ]
    for resource in CONTROL_RESOURCES:
        manifests = cluster.admission.objects.of_kind(resource.kind).values()
        found += [Found(manifest, resource.kind) for manifest in manifests]
    return found + [each for (kind, _), each in kept.items() if kind in _ONLY_PLANNED]


def _whole(resource: ResourceType[Any], item: Any, given: Found | None) -> Manifest:
    """The object as it is now, with the fields of the given one that a scheduler does not read."""
    manifest = as_manifest(resource, item)
    if given is None:
        return manifest
    for section in ("spec", "status"):
        part, before = getattr(item, section, None), given.manifest.get(section)
        if part is not None and isinstance(before, Mapping):
            read = {each.encode_name for each in fields(part)}
            others = {name: value for name, value in before.items() if name not in read}
            manifest[section] = others | manifest.get(section, {})
    return manifest
