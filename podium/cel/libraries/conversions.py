"""Conversions between types. Each is a function named after its target type."""

from __future__ import annotations

import re
from typing import Any

from podium.cel.errors import EvaluationError
from podium.cel.functions import Overload, per_size, unit_cost
from podium.cel.libraries import times
from podium.cel.libraries.floats import format_double, parse_double
from podium.cel.libraries.string_format import decode
from podium.cel.values import (
    NANOSECONDS,
    Duration,
    TypeValue,
    UInt,
    double_to_int,
    int64,
    timestamp,
    type_of,
    uint64,
)  # fmt: skip

_INT, _UINT = re.compile(r"[+-]?[0-9]+"), re.compile(r"[0-9]+")
_DIGITS_MAX = 20
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})

FUNCTIONS = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"})
"""The conversions that are evaluated at compile time if their argument is a constant."""


def _fail(kind: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from 'string' to '{kind}'")


def _parse_bool(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise _fail("bool")


def _parse_int(text: str) -> int:
    if _INT.fullmatch(text) is None or len(text.lstrip("+-0")) > _DIGITS_MAX:
        raise _fail("int")
    return int64(int(text))


def _parse_uint(text: str) -> UInt:
    if _UINT.fullmatch(text) is None or len(text.lstrip("0")) > _DIGITS_MAX:
        raise _fail("uint")
    return uint64(int(text))


def _double_to_uint(number: float) -> UInt:
    if not 0 <= number < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return UInt(number)


def _no_duration(_number: int) -> Duration:
    """Fail in every case: upstream declares this conversion without an implementation."""
    raise EvaluationError("type conversion error from 'int' to 'google.protobuf.Duration'")


def _same(value: Any) -> Any:
    return value


def _whole(kind: str, *sources: tuple[str, str, Any]) -> tuple[Overload, ...]:
    """Return the conversions to one type, from triples of overload, source type and implementation."""
    return tuple(
        Overload(name, f"{kind}({source}) -> {kind}", run, per_size(0.1, 0) if name in _TRAVERSING else unit_cost)
        for name, source, run in sources
    )


_TRAVERSING = frozenset({"string_to_bytes", "bytes_to_string"})

UNCHECKED = frozenset({"int64_to_duration"})
"""The overloads that environments which check arguments do not have."""

OVERLOADS = (
    *_whole("bool", ("bool_to_bool", "bool", _same), ("string_to_bool", "string", _parse_bool)),
    *_whole("bytes", ("bytes_to_bytes", "bytes", _same), ("string_to_bytes", "string", str.encode)),
    *_whole(
        "double",
        ("double_to_double", "double", _same),
        ("int64_to_double", "int", float),
        ("string_to_double", "string", parse_double),
        ("uint64_to_double", "uint", float),
    ),
    *_whole(
        "duration",
        ("duration_to_duration", "duration", _same),
        ("int64_to_duration", "int", _no_duration),
        ("string_to_duration", "string", times.parse_duration),
    ),
    Overload("to_dyn", "dyn(A) -> dyn", _same),
    *_whole(
        "int",
        ("int64_to_int64", "int", _same),
        ("double_to_int64", "double", double_to_int),
        ("duration_to_int64", "duration", lambda value: value.ns),
        ("string_to_int64", "string", _parse_int),
        ("timestamp_to_int64", "timestamp", lambda value: value.ns // NANOSECONDS),
        ("uint64_to_int64", "uint", lambda value: int64(int(value))),
    ),
    *_whole(
        "string",
        ("string_to_string", "string", _same),
        ("bool_to_string", "bool", lambda value: "true" if value else "false"),
        ("bytes_to_string", "bytes", decode),
        ("double_to_string", "double", format_double),
        ("duration_to_string", "duration", times.format_duration),
        ("int64_to_string", "int", str),
        ("timestamp_to_string", "timestamp", times.format_timestamp),
        ("uint64_to_string", "uint", lambda value: str(int(value))),
    ),
    *_whole(
        "timestamp",
        ("timestamp_to_timestamp", "timestamp", _same),
        ("int64_to_timestamp", "int", lambda value: timestamp(value * NANOSECONDS)),
        ("string_to_timestamp", "string", times.parse_timestamp),
    ),
    Overload("type", "type(A) -> type(A)", lambda value: TypeValue(type_of(value))),
    *_whole(
        "uint",
        ("uint64_to_uint64", "uint", _same),
        ("double_to_uint64", "double", _double_to_uint),
        ("int64_to_uint64", "int", uint64),
        ("string_to_uint64", "string", _parse_uint),
    ),
)
