"""JSON Patch (RFC 6902): making operations, and applying those that add, replace or remove a value.

And JSON Merge Patch (RFC 7386), as people write it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Operation: TypeAlias = Mapping[str, Any]
"""One operation of a patch, as it is written in JSON."""

_NOTHING = object()


def operation(op: str, path: str, value: Any = _NOTHING) -> Operation:
    """An operation; `remove` has no value."""
    return {"op": op, "path": path} if value is _NOTHING else {"op": op, "path": path, "value": value}


def pointer(*parts: str | int) -> str:
    """The JSON Pointer (RFC 6901) of these members and indexes."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def patched(document: Any, operations: Iterable[Operation]) -> Any:
    """The document after these operations. The document itself is not changed.

    Raises:
        KeyError, IndexError, ValueError: a path does not exist.
    """
    for each in operations:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]]
        document = _at(document, parts, each)
    return document


def merged(document: Any, changes: Any) -> Any:
    """The document after a JSON Merge Patch: members replace those of the same name, null removes one."""
    if not isinstance(changes, Mapping):
        return changes
    found = dict(document) if isinstance(document, Mapping) else {}
    for name, value in changes.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found


def _at(document: Any, parts: list[str], change: Operation) -> Any:
    first, *rest = parts
    if isinstance(document, list | tuple):
        copy: Any = list(document)
        index: Any = len(copy) if first == "-" else int(first)
    else:
        copy, index = dict(document), first
    if rest:
        copy[index] = _at(copy[index], rest, change)
    elif change["op"] == "remove":
        del copy[index]
    elif change["op"] == "add" and isinstance(copy, list):
        copy.insert(index, change["value"])
    else:
        if change["op"] == "replace":
            copy[index]  # must exist
        copy[index] = change["value"]
    return copy
