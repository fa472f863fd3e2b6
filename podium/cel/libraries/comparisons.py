"""Order: `<`, `<=`, `>` and `>=`. Numbers of different types are compared by value, unlike by `==` in literals."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from podium.cel.errors import EvaluationError
from podium.cel.functions import CallCost, Overload, ceiling, unit_cost
from podium.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, UInt, equals, has_key, size_of

_OPERATORS: tuple[tuple[str, str, Callable[[int, int], bool]], ...] = (
    ("_<_", "less", operator.lt),
    ("_<=_", "less_equals", operator.le),
    ("_>_", "greater", operator.gt),
    ("_>=_", "greater_equals", operator.ge),
)
_NAMES = {"int": "int64", "uint": "uint64"}
_NUMBERS = ("int", "uint", "double")
_ORDERED_NUMBERS = frozenset({int, UInt, float})
_ORDERED = _ORDERED_NUMBERS | {bool, str, bytes, Timestamp, Duration}
_SAME = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_TRAVERSED = frozenset({"string", "bytes"})


def compare(lhs: Any, rhs: Any) -> int:
    """Compare two values: -1, 0 or 1. Raises: EvaluationError: values of these types cannot be ordered."""
    kind, rhs_kind = type(lhs), type(rhs)
    if kind is rhs_kind and kind in (int, str, bytes, bool, UInt):
        return int(lhs > rhs) - int(lhs < rhs)
    if kind is rhs_kind and kind in (Timestamp, Duration):
        return int(lhs.ns > rhs.ns) - int(lhs.ns < rhs.ns)
    if kind in (int, UInt, float) and rhs_kind in (int, UInt, float):
        return _compare_numbers(lhs, rhs)
    raise EvaluationError("no such overload")


def compare_leniently(lhs: Any, rhs: Any) -> int:
    """Compare values as `compare` does, but count values of different ordered types as equal, and NaN too.

    Raises: EvaluationError: values of one of the types cannot be ordered.
    """
    kinds = {type(lhs), type(rhs)}
    if len(kinds) == 2 and kinds <= _ORDERED and not kinds <= _ORDERED_NUMBERS:
        return 0
    if lhs != lhs or rhs != rhs:
        return 0
    return compare(lhs, rhs)


def _compare_numbers(lhs: float, rhs: float) -> int:
    """Compare an integer with a double as doubles, unless the double exceeds the range of the integer's type."""
    if lhs != lhs or rhs != rhs:
        raise EvaluationError("NaN values cannot be ordered")
    if type(lhs) is float and type(rhs) is not float:
        lowest, highest = (0, UINT_MAX) if type(rhs) is UInt else (INT_MIN, INT_MAX)
        if lhs < lowest:
            return -1
        if lhs > float(highest):
            return 1
        rhs = float(rhs)
    elif type(rhs) is float and type(lhs) is not float:
        return -_compare_numbers(rhs, lhs)
    return (lhs > rhs) - (lhs < rhs)


def _ordering(holds: Callable[[int, int], bool]) -> Callable[[Any, Any], bool]:
    def run(lhs: Any, rhs: Any) -> bool:
        return holds(compare(lhs, rhs), 0)

    return run


def smaller_size(arguments: tuple[Any, ...], _result: Any) -> int:
    """Return the cost of comparing two values element by element until they differ."""
    return ceiling(min(size_of(arguments[0]), size_of(arguments[1])) * 0.1)


def _overloads() -> Iterator[Overload]:
    for name, prefix, holds in _OPERATORS:
        run = _ordering(holds)
        for kind in _SAME:
            cost: CallCost = smaller_size if kind in _TRAVERSED else unit_cost
            yield Overload(f"{prefix}_{_NAMES.get(kind, kind)}", f"{name}({kind}, {kind}) -> bool", run, cost)
        for lhs in _NUMBERS:
            for rhs in _NUMBERS:
                if lhs != rhs:
                    mixed = f"{prefix}_{_NAMES.get(lhs, lhs)}_{_NAMES.get(rhs, rhs)}"
                    yield Overload(mixed, f"{name}({lhs}, {rhs}) -> bool", run)


def _contains(value: Any, values: list[Any]) -> bool:
    return any(equals(value, element) is True for element in values)


def _element_cost(arguments: tuple[Any, ...], _result: Any) -> int:
    return len(arguments[1])


OVERLOADS = (
    *_overloads(),
    Overload("in_list", "@in(A, list(A)) -> bool", _contains, _element_cost),
    Overload("in_map", "@in(A, map(A, B)) -> bool", lambda value, mapping: has_key(mapping, value)),
    Overload("logical_not", "!_(bool) -> bool", operator.not_),
)
