"""Finds misspelt fields in objects that people wrote: fields that are not read and resemble one that is.

kubectl has the API server refuse unknown fields. In a file such a field would be ignored, and the question answered for
another object than the one that was meant.

Differs: a field that resembles none is ignored, since a scheduler does not know all fields of an object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Final, NamedTuple

import msgspec
from msgspec import inspect

from podium.engine.derivation.admission import is_admitted
from podium.engine.manifests import Manifest
from podium.lib.nearest import MISSPELT, nearest

_REAL: Final = frozenset({"allocatedResourcesStatus", "zone"})
"""The fields of Kubernetes and Karmada that are as similar to one that is read, and not read themselves."""


class _Content(NamedTuple):
    """The struct that a field holds, once, in an array or as the values of a map."""

    struct: type[msgspec.Struct]
    is_map: bool


def misspelt_fields(manifest: Manifest, struct: type[msgspec.Struct]) -> Iterator[str]:
    """Yield an error for each misspelt field of an object that is read as this struct; none if it has been admitted."""
    if not is_admitted(manifest):
        yield from _misspelt(manifest, struct, "")


def _misspelt(value: object, struct: type[msgspec.Struct], path: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        return
    known_fields = _fields_of(struct)
    for name, inner_value in value.items():
        field = f"{path}{name}"
        if name in known_fields:
            if (content := known_fields[name]) is not None:
                for inner_field, element in _elements(inner_value, field, is_map=content.is_map):
                    yield from _misspelt(element, content.struct, f"{inner_field}.")
        elif suggestion := _suggestion(str(name), struct):
            yield f"{field}: unknown field{suggestion}"


# Every object has fields that are not read, and a comparison of names is dear.
@lru_cache(maxsize=1024)
def _suggestion(name: str, struct: type[msgspec.Struct]) -> str:
    return "" if name in _REAL else nearest(name, _fields_of(struct), cutoff=MISSPELT)


def _elements(value: object, field: str, *, is_map: bool) -> Iterable[tuple[str, object]]:
    if isinstance(value, list):
        return ((f"{field}[{index}]", element) for index, element in enumerate(value))
    if is_map and isinstance(value, Mapping):
        return ((f"{field}[{key}]", element) for key, element in value.items())
    return ((field, value),)


@cache
def _fields_of(struct: type[msgspec.Struct]) -> Mapping[str, _Content | None]:
    """Return the fields of the struct by their names on the wire; None for those without structs."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: _content_of(field.type) for field in info.fields}


def _content_of(kind: inspect.Type) -> _Content | None:
    if isinstance(kind, inspect.StructType):
        return _Content(kind.cls, is_map=False)
    if isinstance(kind, inspect.UnionType):
        return next(filter(None, map(_content_of, kind.types)), None)
    if isinstance(kind, inspect.VarTupleType):
        return _content_of(kind.item_type)
    if isinstance(kind, inspect.DictType) and (content := _content_of(kind.value_type)) is not None:
        return content._replace(is_map=True)
    return None
