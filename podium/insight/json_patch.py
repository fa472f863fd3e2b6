"""Makes operations of JSON Patch (RFC 6902), and applies those that add, replace or remove a value.

Also applies JSON Merge Patches (RFC 7386), which are easier to write by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Operation: TypeAlias = Mapping[str, Any]
"""One operation of a patch, as it is written in JSON."""

_NOTHING = object()


def operation(op: str, path: str, value: Any = _NOTHING) -> Operation:
    """Make an operation; `remove` has no value."""
    return {"op": op, "path": path} if value is _NOTHING else {"op": op, "path": path, "value": value}


def pointer(*parts: str | int) -> str:
    """Return the JSON Pointer (RFC 6901) of these members and indexes."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def apply_patch(document: Any, operations: Iterable[Operation]) -> Any:
    """Return the document after these operations. The document itself is not changed.

    Raises:
        KeyError, IndexError, ValueError: a path does not exist.
    """
    for change in operations:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in change["path"].split("/")[1:]]
        document = _at(document, parts, change)
    return document


def apply_merge_patch(document: Any, changes: Any) -> Any:
    """Return the document after a JSON Merge Patch: a member replaces the one of its name, null removes it."""
    if not isinstance(changes, Mapping):
        return changes
    result = dict(document) if isinstance(document, Mapping) else {}
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = apply_merge_patch(result.get(name), value)
    return result


def _at(document: Any, parts: list[str], change: Operation) -> Any:
    first, *tail = parts
    if isinstance(document, list | tuple):
        copy: Any = list(document)
        index: Any = len(copy) if first == "-" else int(first)
    else:
        # Copies along the path only: documents share everything else.
        copy, index = dict(document), first
    if tail:
        copy[index] = _at(copy[index], tail, change)
    elif change["op"] == "remove":
        del copy[index]
    elif change["op"] == "add" and isinstance(copy, list):
        copy.insert(index, change["value"])
    else:
        if change["op"] == "replace":
            # RFC 6902: replacing what is not there is an error, unlike adding it.
            copy[index]  # must exist
        copy[index] = change["value"]
    return copy
