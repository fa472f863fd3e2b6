"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902). Applying a patch never changes the object that is patched."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from podium.sandbox.errors import ApiError, bad_request
from podium.sandbox.strategic import strategic_merge

Json = dict[str, Any]


def apply_patch(target: Json, patch: Any, patch_type: str, kind: str) -> Json:
    """Apply a patch to an object of a kind.

    Args:
        patch_type: merge, strategic, json or apply. A server-side apply is treated as a strategic merge.

    Raises:
        ApiError: 400 for a malformed patch, 422 for one that does not apply.
    """
    if patch_type == "json":
        return json_patch(target, patch)
    if not isinstance(patch, dict):
        raise bad_request("the patch is not an object")
    patched: Json = merge_patch(target, patch) if patch_type == "merge" else strategic_merge(target, patch, kind)
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
        raise _unprocessable("the patched document is not an object")
    return document


def _apply(document: Any, operation: Json) -> Any:
    path = _parse_pointer(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _add(document, path, _required_value(operation))
        case "remove":
            return _remove(document, path)[0]
        case "replace":
            _lookup(document, path)
            return _set(document, path, _required_value(operation))
        case "test":
            if _lookup(document, path) != _required_value(operation):
                raise _unprocessable(f"testing value {operation['path']} failed")
            return document
        case "move":
            document, value = _remove(document, _parse_pointer(operation.get("from")))
            return _add(document, path, value)
        case "copy":
            return _add(document, path, copy.deepcopy(_lookup(document, _parse_pointer(operation.get("from")))))
        case op:
            raise bad_request(f"unknown operation of a JSON patch: {op!r}")


def _parse_pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise bad_request(f"not a JSON pointer: {text!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in text.split("/")[1:]]


def _required_value(operation: Json) -> Any:
    if "value" not in operation:
        raise bad_request(f"operation {operation.get('op')!r} needs a value")
    return operation["value"]


def _lookup(document: Any, path: Sequence[str]) -> Any:
    for token in path:
        if isinstance(document, dict) and token in document:
            document = document[token]
        elif isinstance(document, list):
            document = document[_index(token, len(document) - 1)]
        else:
            raise _unprocessable(f"path not found: /{'/'.join(path)}")
    return document


def _index(token: str, index_max: int) -> int:
    if not token.isdecimal() or int(token) > index_max:
        raise _unprocessable(f"index out of range: {token}")
    return int(token)


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, token = _lookup(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        parent.insert(len(parent) if token == "-" else _index(token, len(parent)), value)
    elif isinstance(parent, dict):
        parent[token] = value
    else:
        raise _unprocessable(f"path not found: /{'/'.join(path)}")
    return document


def _set(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, token = _lookup(document, path[:-1]), path[-1]
    parent[int(token) if isinstance(parent, list) else token] = value
    return document


def _remove(document: Any, path: list[str]) -> tuple[Any, Any]:
    value = _lookup(document, path)
    if not path:
        return None, value
    parent, token = _lookup(document, path[:-1]), path[-1]
    del parent[int(token) if isinstance(parent, list) else token]
    return document, value


def _unprocessable(message: str) -> ApiError:
    return ApiError(422, "Invalid", f"the server rejected our request due to an error in our request: {message}")
