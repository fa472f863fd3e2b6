"""The kinds and fields that a plan of nodes reads of a cluster in addition to those a scheduler reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import fields

from podium.engine.cluster import Cluster
from podium.engine.derivation.control_objects import CONTROL_RESOURCES
from podium.engine.files import LocatedManifest
from podium.engine.manifests import DEFAULT_NAMESPACE, Manifest, as_manifest
from podium.objects.custom_resources import all_resources
from podium.objects.resource_types import ResourceType

NODE_POOL: Final = "NodePool"
_ONLY_PLANNED: Final = frozenset({NODE_POOL, "NodeClaim"})
"""The kinds that only plans read."""
_FULLER: Final = frozenset({"Node", "PersistentVolume", "PodDisruptionBudget"})
"""The kinds whose fields plans read more of than a scheduler does."""
_NAMESPACED: Final = frozenset({"PodDisruptionBudget"})

Originals = Mapping[tuple[str, str], LocatedManifest]


def original_key(document: LocatedManifest) -> tuple[str, str] | None:
    """Return kind and key of an object that plans need as it was given; None for other objects."""
    kind, metadata = document.manifest.get("kind"), document.manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if kind not in _ONLY_PLANNED | _FULLER or not isinstance(metadata, Mapping) or not isinstance(name, str):
        return None
    return kind, f"{metadata.get('namespace') or DEFAULT_NAMESPACE}/{name}" if kind in _NAMESPACED else name


def objects_to_plan(cluster: Cluster, originals: Originals) -> list[LocatedManifest]:
    """Return all objects that plans read, as they are now."""
    documents = [
        LocatedManifest(_full_manifest(resource, item, originals.get((resource.kind, item.key))), resource.kind)
        for resource in all_resources()
        if resource not in CONTROL_RESOURCES
        for item in cluster.store.objects(resource).values()
    ]
    for resource in CONTROL_RESOURCES:
        manifests = cluster.admission.objects.of_kind(resource.kind).values()
        documents += [LocatedManifest(manifest, resource.kind) for manifest in manifests]
    return documents + [original for (kind, _), original in originals.items() if kind in _ONLY_PLANNED]


def _full_manifest(resource: ResourceType[Any], item: Any, original: LocatedManifest | None) -> Manifest:
    """Return the object as it is now, with the original's fields that a scheduler does not read."""
    manifest = as_manifest(resource, item)
    if original is None:
        return manifest
    for section in ("spec", "status"):
        part, section_fields = getattr(item, section, None), original.manifest.get(section)
        if part is not None and isinstance(section_fields, Mapping):
            read = {field.encode_name for field in fields(part)}
            other_fields = {name: value for name, value in section_fields.items() if name not in read}
            manifest[section] = other_fields | manifest.get(section, {})
    return manifest
