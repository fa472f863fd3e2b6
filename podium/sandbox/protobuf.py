r"""Reading the few protobuf bodies that kubectl sends where it could send JSON: small creates, reviews, evictions.

A body is the bytes `k8s\0` and a `runtime.Unknown`: the type's name and its own encoding. Answers are always JSON.
Source: generated.proto of apimachinery and k8s.io/api (v0.36) for the field numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

MAGIC = b"k8s\x00"

# field number -> (name, type): a scalar's type, "strings" for a list, "map" of strings to strings, or a message
_Schema = dict[int, tuple[str, "str | _Schema"]]

_OBJECT_META: _Schema = {
    1: ("name", "string"),
    2: ("generateName", "string"),
    3: ("namespace", "string"),
    5: ("uid", "string"),
    6: ("resourceVersion", "string"),
    11: ("labels", "map"),
    12: ("annotations", "map"),
    14: ("finalizers", "strings"),
}
_DELETE_OPTIONS: _Schema = {
    1: ("gracePeriodSeconds", "int"),
    2: ("preconditions", {1: ("uid", "string"), 2: ("resourceVersion", "string")}),
    4: ("propagationPolicy", "string"),
    5: ("dryRun", "strings"),
}
_METADATA: _Schema = {1: ("metadata", _OBJECT_META)}
_SCHEMAS: dict[str, _Schema] = {
    "Namespace": _METADATA,
    "ServiceAccount": _METADATA,
    "ConfigMap": _METADATA | {2: ("data", "map")},
    "PriorityClass": _METADATA
    | {
        2: ("value", "int"),
        3: ("globalDefault", "bool"),
        4: ("description", "string"),
        5: ("preemptionPolicy", "string"),
    },
    "DeleteOptions": _DELETE_OPTIONS,
    "Eviction": _METADATA | {2: ("deleteOptions", _DELETE_OPTIONS)},
    # What a review asks does not matter here: the answer is always yes.
    "SelfSubjectAccessReview": _METADATA,
    "SelfSubjectRulesReview": _METADATA,
    "SelfSubjectReview": _METADATA,
}
_UNKNOWN: _Schema = {1: ("type", {1: ("apiVersion", "string"), 2: ("kind", "string")}), 2: ("raw", "bytes")}
_MAP_ENTRY: _Schema = {1: ("key", "string"), 2: ("value", "string")}


def decode_object(body: bytes) -> Json:
    """The object in a body.

    Raises:
        ValueError: it is broken, or of a kind that is not read here.
    """
    if not body.startswith(MAGIC):
        raise ValueError("no Kubernetes protobuf")
    envelope = _message(body[len(MAGIC) :], _UNKNOWN)
    named = envelope.get("type", {})
    schema = _SCHEMAS.get(named.get("kind", ""))
    if schema is None:
        raise ValueError(f"{named.get('kind', 'this kind')} is read as JSON only")
    decoded: Json = named | _message(envelope.get("raw", b""), schema)
    return decoded


def _message(body: bytes, schema: _Schema) -> Json:
    result: Json = {}
    for number, value in _fields(body):
        name, kind = schema.get(number, ("", ""))
        if not name:
            continue
        if kind == "map":
            entry = _message(_bytes(value), _MAP_ENTRY)
            result.setdefault(name, {})[entry.get("key", "")] = entry.get("value", "")
        elif kind == "strings":
            result.setdefault(name, []).append(_bytes(value).decode())
        elif isinstance(kind, dict):
            result[name] = _message(_bytes(value), kind)
        elif kind in ("string", "bytes"):
            text = _bytes(value)
            result[name] = text if kind == "bytes" else text.decode()
        else:
            result[name] = bool(value) if kind == "bool" else _signed(value)
    return {name: value for name, value in result.items() if value != ""}


def _fields(body: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(body):
        tag, position = _varint(body, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, position = _varint(body, position)
            yield number, value
            continue
        if wire_type == 2:
            length, position = _varint(body, position)
        elif wire_type in (1, 5):
            length = 8 if wire_type == 1 else 4
        else:
            raise ValueError(f"wire type {wire_type}")
        if position + length > len(body):
            raise ValueError("the message is cut short")
        yield number, body[position : position + length]
        position += length


def _varint(body: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(body):
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("the message is cut short")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number stands where text should be")  # noqa: TRY004 - every broken body is a ValueError
    return value


def _signed(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ValueError("text stands where a number should be")  # noqa: TRY004
    return value - (1 << 64) if value >= 1 << 63 else value
