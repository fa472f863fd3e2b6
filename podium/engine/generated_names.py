"""Generates unique names for objects that only have `generateName`.

Differs: the name is derived from the object, not random, so that the same question has the same answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain, count
from typing import Any

from podium.engine.derivation.pods import generated_name
from podium.engine.manifests import DEFAULT_NAMESPACE, Manifest, is_namespaced
from podium.engine.store import ObjectStore
from podium.objects.resource_types import ResourceType


def with_generated_name(
    manifest: Manifest, is_taken: Callable[[Manifest], bool] = lambda _: False, start: int = 0
) -> Manifest:
    """Return the object with a name, if it has only `generateName`.

    Args:
        is_taken: whether an object of the same name exists, so that another name is derived.
        start: how many names to skip if the first one is taken: the number of objects that may have the same content.
    """
    metadata = manifest.get("metadata")
    prefix = metadata.get("generateName") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or metadata.get("name") or not isinstance(prefix, str) or not prefix:
        return manifest
    content = json.dumps(manifest, sort_keys=True, default=str)
    for number in chain([0], count(max(start, 1))):
        candidate = {**manifest, "metadata": {**metadata, "name": generated_name(prefix, number, content)}}
        if not is_taken(candidate):
            return candidate
    raise AssertionError("there are as many names as numbers")


def with_free_name(manifest: Manifest, resource: ResourceType[Any], store: ObjectStore) -> Manifest:
    """Return the object with a name that no object of the store has, if it has only `generateName`."""

    def is_taken(candidate: Manifest) -> bool:
        metadata = candidate["metadata"]
        namespace = f"{metadata.get('namespace') or DEFAULT_NAMESPACE}/" if is_namespaced(resource) else ""
        return store.get(resource, f"{namespace}{metadata['name']}") is not None

    candidate = with_generated_name(manifest)
    if candidate is manifest or not is_taken(candidate):
        return candidate
    return with_generated_name(manifest, is_taken, len(store.objects(resource)))
