"""Makes classes of protobuf messages from tables at run time, since generated code is tied to a version of protoc."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Message: TypeAlias = Any
"""A message whose class is created at run time."""

Messages: TypeAlias = Mapping[str, Mapping[str, tuple[int, str]]]
"""Message → field → (number, type). A type with * is repeated, one in <> a map from text; a name is another message."""

_SCALARS = ("string", "bytes", "int32", "int64", "double")


def message_classes(file_name: str, package: str, messages: Messages) -> Mapping[str, type[Message]]:
    """Return the classes, in a separate descriptor pool, so that no other file of that name can conflict."""
    file = descriptor_pb2.FileDescriptorProto(name=file_name, package=package, syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            _add_field(message, f".{package}", name, field, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages}


def _add_field(message: Message, package: str, owner: str, field: str, number: int, kind: str) -> None:
    repeated = kind[0] in "*<"
    if kind.startswith("<"):
        # protoc's own name for the entry of a map; on the wire a map is a list of these.
        entry = f"{field[0].upper()}{field[1:]}Entry"
        nested = message.nested_type.add(name=entry)
        nested.options.map_entry = True
        _add_field(nested, package, entry, "key", 1, "string")
        _add_field(nested, package, entry, "value", 2, kind.strip("<>"))
        kind = f"{owner}.{entry}"
    message_field = message.field.add(name=field, number=number)
    message_field.label = message_field.LABEL_REPEATED if repeated else message_field.LABEL_OPTIONAL
    plain = kind.lstrip("*")
    if plain in _SCALARS:
        message_field.type = getattr(message_field, f"TYPE_{plain.upper()}")
    else:
        message_field.type = message_field.TYPE_MESSAGE
        message_field.type_name = f"{package}.{plain}"
