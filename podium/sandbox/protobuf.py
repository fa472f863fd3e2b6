r"""Decode the protobuf bodies that kubectl sends instead of JSON: creates, reviews, evictions.

A body consists of the bytes `k8s\0` and a `runtime.Unknown`, which has the type's name and the encoded object. Answers
are always JSON. `podium.sandbox.protobuf_schemas` lists the fields that are read.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from podium.sandbox.protobuf_schemas import ENVELOPE, SCHEMAS, Map, Schema, Type

Json = dict[str, Any]

MAGIC = b"k8s\x00"

_QUANTITY: Schema = {1: ("text", "string")}
_INT_OR_STRING: Schema = {1: ("is_text", "bool"), 2: ("number", "int"), 3: ("text", "string")}


def decode_object(body: bytes) -> Json:
    """Decode the object in a body.

    Raises:
        ValueError: the body is malformed, or its kind is not supported.
    """
    if not body.startswith(MAGIC):
        raise ValueError("not Kubernetes protobuf")
    envelope = _message(body[len(MAGIC) :], ENVELOPE)
    type_meta = envelope.get("type", {})
    schema = SCHEMAS.get(type_meta.get("kind", ""))
    if schema is None:
        raise ValueError(f"{type_meta.get('kind', 'this kind')} is read as JSON only")
    manifest: Json = type_meta | _message(envelope.get("raw", b""), schema)
    return manifest


def _message(body: bytes, schema: Schema) -> Json:
    result: Json = {}
    for number, value in _fields(body):
        name, kind = schema.get(number, ("", ""))
        if not name:
            continue
        if isinstance(kind, Map):
            key, entry = _map_entry(_bytes(value), kind.value)
            result.setdefault(name, {})[key] = entry
        elif isinstance(kind, list):
            result.setdefault(name, []).append(_value(value, kind[0]))
        else:
            result[name] = _value(value, kind)
    return {name: value for name, value in result.items() if value != ""}


def _map_entry(body: bytes, kind: Type) -> tuple[str, Any]:
    entry = _message(body, {1: ("key", "string"), 2: ("value", kind)})
    return entry.get("key", ""), entry.get("value", "")


def _value(value: int | bytes, kind: Type) -> Any:
    if isinstance(kind, dict):
        return _message(_bytes(value), kind)
    match kind:
        case "string":
            return _bytes(value).decode()
        case "bytes":
            return _bytes(value)
        case "base64":
            return b64encode(_bytes(value)).decode()
        case "bool":
            return bool(value)
        case "quantity":
            return _message(_bytes(value), _QUANTITY).get("text", "0")
        case "int-or-string":
            fields = _message(_bytes(value), _INT_OR_STRING)
            return fields.get("text", "") if fields.get("is_text") else fields.get("number", 0)
        case _:
            return _as_signed(value)


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


def _as_signed(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ValueError("text stands where a number should be")  # noqa: TRY004
    return value - (1 << 64) if value >= 1 << 63 else value
