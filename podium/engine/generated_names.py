"""Names for objects that only have `generateName`, each one that no other object has.

Differs: the name is derived from the object instead of chance, so that the same question has the same answer.
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
    """The object with a name, if it has only `generateName`.

    Args:
        is_taken: whether an object of the same name exists, so that another name is derived.
        start: how many names to leave out, if the first is taken: as many as there may be objects of the same content.
    """
    metadata = manifest.get("metadata")
    prefix = metadata.get("generateName") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or metadata.get("name") or not isinstance(prefix, str) or not prefix:
        return manifest
    content = json.dumps(manifest, sort_keys=True, default=str)
    for number in chain([0], count(max(start, 1))):
        named = {**manifest, "metadata": {**metadata, "name": generated_name(prefix, number, content)}}
        if not is_taken(named):
            return named
    raise AssertionError("there are as many names as numbers")


def with_free_name(manifest: Manifest, resource: ResourceType[Any], store: ObjectStore) -> Manifest:
    """The object with a name that no object of the store has, if it has only `generateName`."""

    def is_taken(named: Manifest) -> bool:
        metadata = named["metadata"]
        namespace = f"{metadata.get('namespace') or DEFAULT_NAMESPACE}/" if is_namespaced(resource) else ""
        return store.get(resource, f"{namespace}{metadata['name']}") is not None

    named = with_generated_name(manifest)
    if named is manifest or not is_taken(named):
        return named
    return with_generated_name(manifest, is_taken, len(store.objects(resource)))
