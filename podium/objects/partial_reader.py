"""Partial decoding of an object that does not decode: every field except those of a wrong type.

Owns decoding an object part by part. Never decides what an unreadable field means: `objects.unreadable` does.

Cost: linear in the size. A part that decodes is decoded as a whole, and after `UNREAD_MAX` unreadable fields the rest
of their lists and maps is skipped.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from podium.objects.errors import FieldError

UNREAD_MAX: Final = 100
_AT_ONCE: Final = 256
"""How many items of a list or map are decoded together first, because most of them decode."""


_NOT_READ: Final = object()
_NOT_DECODED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_fields_of = msgspec.json.Decoder(dict[str, Raw]).decode
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_encode = msgspec.json.Encoder().encode
_items_of = msgspec.json.Decoder(list[Raw]).decode


class _Fault(NamedTuple):
    """The reason why a value does not decode, and the path to the fault as far as the error names it.

    A part that is known to fail is not decoded as a whole again.
    """

    detail: str
    below: tuple[str, ...]

    @classmethod
    def of(cls, error: str) -> _Fault:
        detail, _, path = error.partition(" - at `$")
        return cls(detail, tuple(name or index for name, index in _STEP.findall(path.partition("[...]")[0])))

    def at(self, step: str) -> _Fault | None:
        """Return the same fault relative to the part behind this step, or None if the fault is elsewhere."""
        return _Fault(self.detail, self.below[1:]) if self.below[:1] == (step,) else None


class PartialReader:
    """Decodes one object. `unread` are the unreadable fields in the order in which they were found."""

    def __init__(self) -> None:
        self.unread: list[FieldError] = []

    def read(self, raw: bytes | Raw, kind: type[Struct], error: str) -> Any:
        """Decode the readable fields of an object that failed to decode with this error; None if it is not an object.

        Returns: the object with every readable field.
        """
        part = self._struct(raw, kind, "", _Fault.of(error))
        return None if part is _NOT_READ else part

    def _read(self, raw: bytes | Raw, kind: Any, path: str, fault: _Fault | None) -> Any:
        if fault is None:
            try:
                return _decoder(kind)(raw)
            except _NOT_DECODED as error:
                fault = _Fault.of(str(error))
        part: Any = _NOT_READ
        if (struct := _struct_in(kind)) is not None:
            part = self._struct(raw, struct, path, fault)
        if part is _NOT_READ and (item := _item_of(kind)) is not None:
            part = self._list(raw, item, path, fault)
        if part is _NOT_READ and (value := _value_of(kind)) is not None:
            part = self._map(raw, value, path)
        if part is _NOT_READ:
            self.unread.append(FieldError(path, fault.detail))
        return part

    def _struct(self, raw: bytes | Raw, kind: type[Struct], path: str, fault: _Fault) -> Any:
        try:
            contents = _fields_of(raw)
        except _NOT_DECODED:
            return _NOT_READ
        values: dict[str, Any] = {}
        for field in _fields(kind):
            name, content = field.encode_name, contents.get(field.encode_name)
            if content is None or bytes(content) == b"null":
                continue
            part = self._read(content, field.type, f"{path}.{name}" if path else name, fault.at(name))
            if part is not _NOT_READ:
                values[field.name] = part
        try:
            return kind(**values)
        except TypeError:  # a required field is missing
            return _NOT_READ

    def _list(self, raw: bytes | Raw, kind: Any, path: str, fault: _Fault) -> Any:
        try:
            items = _items_of(raw)
        except _NOT_DECODED:
            return _NOT_READ
        decode = _decoder(list[kind])
        parts: list[Any] = []
        for start in range(0, len(items), _AT_ONCE):
            batch = {str(index): item for index, item in enumerate(items[start : start + _AT_ONCE], start)}
            fails = any(step in batch for step in fault.below[:1])
            objects_decoded: Any = _NOT_READ if fails else _together(decode, list(batch.values()))
            if objects_decoded is not _NOT_READ:
                parts += objects_decoded
                continue
            parts += [item for _, item in self._each(batch, kind, path, fault)]
            if len(self.unread) >= UNREAD_MAX:
                break
        return tuple(parts)

    def _map(self, raw: bytes | Raw, kind: Any, path: str) -> Any:
        try:
            fields = _fields_of(raw)
        except _NOT_DECODED:
            return _NOT_READ
        decode = _decoder(dict[str, kind])
        parts: dict[str, Any] = {}
        remaining_fields = iter(fields.items())
        while batch := dict(islice(remaining_fields, _AT_ONCE)):
            objects_decoded = _together(decode, batch)
            if objects_decoded is not _NOT_READ:
                parts |= objects_decoded
                continue
            parts |= self._each(batch, kind, path, _UNKNOWN)
            if len(self.unread) >= UNREAD_MAX:
                break
        return parts

    def _each(self, items: Mapping[str, Raw], kind: Any, path: str, fault: _Fault) -> Iterator[tuple[str, Any]]:
        for key, item in items.items():
            if bytes(item) == b"null":
                continue
            part = self._read(item, kind, f"{path}[{key}]", fault.at(key))
            if part is not _NOT_READ:
                yield key, part
            if len(self.unread) >= UNREAD_MAX:
                return


_UNKNOWN: Final = _Fault("", ())


def _together(decode: Callable[[bytes], Any], batch: object) -> Any:
    try:
        return decode(_encode(batch))
    except _NOT_DECODED:
        return _NOT_READ


# ---------------------------------------------------------------- types

_decoder = cache(lambda kind: msgspec.json.Decoder(kind).decode)
_fields = cache(msgspec.structs.fields)


def _options(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) in (types.UnionType, typing.Union) else (kind,)


@cache
def _struct_in(kind: Any) -> type[Struct] | None:
    return next((option for option in _options(kind) if isinstance(option, type) and issubclass(option, Struct)), None)


@cache
def _item_of(kind: Any) -> Any:
    return next((typing.get_args(option)[0] for option in _options(kind) if typing.get_origin(option) is tuple), None)


@cache
def _value_of(kind: Any) -> Any:
    return next((typing.get_args(option)[1] for option in _options(kind) if typing.get_origin(option) is dict), None)
