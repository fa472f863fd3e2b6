"""Read fields of objects that clients sent: what has the wrong type counts as absent."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def mapping_at(obj: object, *path: str) -> Json:
    """Return the object at a path; an empty one if the path leads to no object."""
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if isinstance(obj, dict) else {}


def items_at(obj: object, *path: str) -> list[Json]:
    """Return the objects in the list at a path; empty if there is no list."""
    items = mapping_at(obj, *path[:-1]).get(path[-1])
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def texts_at(obj: object, *path: str) -> list[str]:
    """Return the strings in the list at a path; empty if there is no list."""
    values = mapping_at(obj, *path[:-1]).get(path[-1])
    return [item for item in values if isinstance(item, str)] if isinstance(values, list) else []
