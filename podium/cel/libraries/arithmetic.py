"""`+`, `-`, `*`, `/` and `%`. Integers have 64 bits, and an overflow is an error."""

from __future__ import annotations

import math
from typing import Any

from podium.cel.errors import EvaluationError
from podium.cel.functions import Overload, per_size
from podium.cel.values import Duration, Timestamp, UInt, check_size, duration, int64, timestamp, uint64


def _divide_int(lhs: int, rhs: int) -> int:
    if rhs == 0:
        raise EvaluationError("division by zero")
    return int64(_quotient(lhs, rhs))


def _quotient(lhs: int, rhs: int) -> int:
    magnitude = abs(lhs) // abs(rhs)
    return magnitude if (lhs < 0) == (rhs < 0) else -magnitude


def _modulo_int(lhs: int, rhs: int) -> int:
    if rhs == 0:
        raise EvaluationError("modulus by zero")
    int64(_quotient(lhs, rhs))
    return lhs - rhs * _quotient(lhs, rhs)


def _divide_uint(lhs: int, rhs: int) -> UInt:
    if rhs == 0:
        raise EvaluationError("division by zero")
    return UInt(lhs // rhs)


def _modulo_uint(lhs: int, rhs: int) -> UInt:
    if rhs == 0:
        raise EvaluationError("modulus by zero")
    return UInt(lhs % rhs)


def _divide_double(lhs: float, rhs: float) -> float:
    if rhs:
        return lhs / rhs
    if not lhs or math.isnan(lhs):
        return math.nan
    return math.copysign(math.inf, math.copysign(1, lhs) * math.copysign(1, rhs))


def _times(lhs: float, rhs: float) -> float:
    return lhs * rhs


def _add_int(lhs: int, rhs: int) -> int:
    return int64(lhs + rhs)


def _add_uint(lhs: int, rhs: int) -> UInt:
    return uint64(lhs + rhs)


def _add_double(lhs: float, rhs: float) -> float:
    return lhs + rhs


def _concatenate(lhs: Any, rhs: Any) -> Any:
    return check_size(lhs + rhs)


def _add_durations(lhs: Duration, rhs: Duration) -> Duration:
    return duration(lhs.ns + rhs.ns)


def _later(moment: Timestamp, length: Duration) -> Timestamp:
    return timestamp(moment.ns + length.ns, moment.offset_s)


def _earlier(moment: Timestamp, length: Duration) -> Timestamp:
    return timestamp(moment.ns - length.ns, moment.offset_s)


_TRAVERSAL = per_size(0.1, 0, 1)

OVERLOADS = (
    Overload("add_bytes", "_+_(bytes, bytes) -> bytes", _concatenate, _TRAVERSAL),
    Overload("add_double", "_+_(double, double) -> double", _add_double),
    Overload("add_duration_duration", "_+_(duration, duration) -> duration", _add_durations),
    Overload("add_duration_timestamp", "_+_(duration, timestamp) -> timestamp", lambda d, t: _later(t, d)),
    Overload("add_timestamp_duration", "_+_(timestamp, duration) -> timestamp", _later),
    Overload("add_int64", "_+_(int, int) -> int", _add_int),
    Overload("add_list", "_+_(list(A), list(A)) -> list(A)", _concatenate),
    Overload("add_string", "_+_(string, string) -> string", _concatenate, _TRAVERSAL),
    Overload("add_uint64", "_+_(uint, uint) -> uint", _add_uint),
    Overload("subtract_double", "_-_(double, double) -> double", lambda a, b: a - b),
    Overload("subtract_duration_duration", "_-_(duration, duration) -> duration", lambda a, b: duration(a.ns - b.ns)),
    Overload("subtract_int64", "_-_(int, int) -> int", lambda a, b: int64(a - b)),
    Overload("subtract_timestamp_duration", "_-_(timestamp, duration) -> timestamp", _earlier),
    Overload(
        "subtract_timestamp_timestamp", "_-_(timestamp, timestamp) -> duration", lambda a, b: duration(a.ns - b.ns)
    ),
    Overload("subtract_uint64", "_-_(uint, uint) -> uint", lambda a, b: uint64(a - b)),
    Overload("multiply_double", "_*_(double, double) -> double", _times),
    Overload("multiply_int64", "_*_(int, int) -> int", lambda a, b: int64(a * b)),
    Overload("multiply_uint64", "_*_(uint, uint) -> uint", lambda a, b: uint64(a * b)),
    Overload("divide_double", "_/_(double, double) -> double", _divide_double),
    Overload("divide_int64", "_/_(int, int) -> int", _divide_int),
    Overload("divide_uint64", "_/_(uint, uint) -> uint", _divide_uint),
    Overload("modulo_int64", "_%_(int, int) -> int", _modulo_int),
    Overload("modulo_uint64", "_%_(uint, uint) -> uint", _modulo_uint),
    Overload("negate_double", "-_(double) -> double", lambda a: -a),
    Overload("negate_int64", "-_(int) -> int", lambda a: int64(-a)),
)
