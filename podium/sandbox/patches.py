"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902). A patch never changes its input object."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from podium.sandbox.errors import ApiError, bad_request
from podium.sandbox.strategic import strategic_merge

Json = dict[str, Any]


def apply_patch(target: Json, patch: Any, how: str, kind: str) -> Json:
    """Apply a patch to an object of a kind; `how` is merge, strategic, json or apply.

    Raises:
        ApiError: 400 for a malformed patch, 422 for one that does not apply.
    """
    if how == "json":
        return json_patch(target, patch)
    if not isinstance(patch, dict):
        raise bad_request("the patch is not an object")
    patched: Json = merge_patch(target, patch) if how == "merge" else strategic_merge(target, patch, kind)
    return patched


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch: null removes, objects merge, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def json_patch(target: Json, operations: Any) -> Json:
    """Apply a JSON patch.

    Raises:
        ApiError: 400 for a malformed operation, 422 for a path that does not exist or a test that fails.
    """
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    document: Any = copy.deepcopy(target)
    for operation in operations:
        if not isinstance(operation, dict):
            raise bad_request("an operation of a JSON patch is an object")
        document = _apply(document, operation)
    if not isinstance(document, dict):
        raise _impossible("the patched document is not an object")
    return document


def _apply(document: Any, operation: Json) -> Any:
    path = _pointer(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _add(document, path, _value(operation))
        case "remove":
            return _remove(document, path)[0]
        case "replace":
            _lookup(document, path)
            return _set(document, path, _value(operation))
        case "test":
            if _lookup(document, path) != _value(operation):
                raise _impossible(f"testing value {operation['path']} failed")
            return document
        case "move":
            document, value = _remove(document, _pointer(operation.get("from")))
            return _add(document, path, value)
        case "copy":
            return _add(document, path, copy.deepcopy(_lookup(document, _pointer(operation.get("from")))))
        case other:
            raise bad_request(f"unknown operation of a JSON patch: {other!r}")


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise bad_request(f"not a JSON pointer: {text!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _value(operation: Json) -> Any:
    if "value" not in operation:
        raise bad_request(f"operation {operation.get('op')!r} needs a value")
    return operation["value"]


def _lookup(document: Any, path: Sequence[str]) -> Any:
    for part in path:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(part, len(document) - 1)]
        else:
            raise _impossible(f"path not found: /{'/'.join(path)}")
    return document


def _index(part: str, highest: int) -> int:
    if not part.isdecimal() or int(part) > highest:
        raise _impossible(f"index out of range: {part}")
    return int(part)


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _lookup(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else _index(last, len(parent)), value)
    elif isinstance(parent, dict):
        parent[last] = value
    else:
        raise _impossible(f"path not found: /{'/'.join(path)}")
    return document


def _set(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _lookup(document, path[:-1]), path[-1]
    parent[int(last) if isinstance(parent, list) else last] = value
    return document


def _remove(document: Any, path: list[str]) -> tuple[Any, Any]:
    value = _lookup(document, path)
    if not path:
        return None, value
    parent, last = _lookup(document, path[:-1]), path[-1]
    del parent[int(last) if isinstance(parent, list) else last]
    return document, value


def _impossible(message: str) -> ApiError:
    return ApiError(422, "Invalid", f"the server rejected our request due to an error in our request: {message}")
