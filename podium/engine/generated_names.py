"""Names of objects that only have `generateName`, as an API server makes them up.

Source: kubernetes apiserver pkg/storage/names/generate.go, apimachinery pkg/util/rand, v1.36.2.
Differs: the name is derived from the object instead of chance, so that the same question has the same answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from itertools import chain, count
from typing import Final

from podium.engine.manifests import Manifest

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, and no digits that look like them, so that no words come of it."""
_SUFFIX_LENGTH: Final = 5
_LENGTH_MAX: Final = 63


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
        named = {**manifest, "metadata": {**metadata, "name": generated_name(prefix, f"{number}\n{content}")}}
        if not is_taken(named):
            return named
    raise AssertionError("there are as many names as numbers")


def generated_name(prefix: str, seed: str) -> str:
    """The prefix, cut to what a name has room for, and five letters or digits that follow from the seed."""
    number = int.from_bytes(hashlib.sha256(seed.encode("utf-8", "surrogatepass")).digest())
    suffix = ""
    for _ in range(_SUFFIX_LENGTH):
        number, letter = divmod(number, len(_LETTERS))
        suffix += _LETTERS[letter]
    return prefix[: _LENGTH_MAX - _SUFFIX_LENGTH] + suffix
