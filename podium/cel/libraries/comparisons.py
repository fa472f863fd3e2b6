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


def compare(left: Any, right: Any) -> int:
    """Compare two values: -1, 0 or 1.

    Raises: EvaluationError: values of these types cannot be ordered.
    """
    kind, other = type(left), type(right)
    if kind is other and kind in (int, str, bytes, bool, UInt):
        return int(left > right) - int(left < right)
    if kind is other and kind in (Timestamp, Duration):
        return int(left.ns > right.ns) - int(left.ns < right.ns)
    if kind in (int, UInt, float) and other in (int, UInt, float):
        return _compare_numbers(left, right)
    raise EvaluationError("no such overload")


def compare_leniently(left: Any, right: Any) -> int:
    """Like `compare`, but values of different ordered types count as equal, and so does NaN.

    Raises: EvaluationError: values of one of the types cannot be ordered.
    """
    kinds = {type(left), type(right)}
    if len(kinds) == 2 and kinds <= _ORDERED and not kinds <= _ORDERED_NUMBERS:
        return 0
    if left != left or right != right:
        return 0
    return compare(left, right)


def _compare_numbers(left: float, right: float) -> int:
    """Compare an integer with a double as doubles, unless the double exceeds the range of the integer's type."""
    if left != left or right != right:
        raise EvaluationError("NaN values cannot be ordered")
    if type(left) is float and type(right) is not float:
        lowest, highest = (0, UINT_MAX) if type(right) is UInt else (INT_MIN, INT_MAX)
        if left < lowest:
            return -1
        if left > float(highest):
            return 1
        right = float(right)
    elif type(right) is float and type(left) is not float:
        return -_compare_numbers(right, left)
    return (left > right) - (left < right)


def _ordering(holds: Callable[[int, int], bool]) -> Callable[[Any, Any], bool]:
    def run(left: Any, right: Any) -> bool:
        return holds(compare(left, right), 0)

    return run


def smaller_size(arguments: tuple[Any, ...], _result: Any) -> int:
    """The cost of comparing two values element by element until they differ."""
    return ceiling(min(size_of(arguments[0]), size_of(arguments[1])) * 0.1)


def _overloads() -> Iterator[Overload]:
    for name, prefix, holds in _OPERATORS:
        run = _ordering(holds)
        for kind in _SAME:
            cost: CallCost = smaller_size if kind in _TRAVERSED else unit_cost
            yield Overload(f"{prefix}_{_NAMES.get(kind, kind)}", f"{name}({kind}, {kind}) -> bool", run, cost)
        for left in _NUMBERS:
            for right in _NUMBERS:
                if left != right:
                    mixed = f"{prefix}_{_NAMES.get(left, left)}_{_NAMES.get(right, right)}"
                    yield Overload(mixed, f"{name}({left}, {right}) -> bool", run)


def _contains(value: Any, values: list[Any]) -> bool:
    return any(equals(value, each) is True for each in values)


def _element_cost(arguments: tuple[Any, ...], _result: Any) -> int:
    return len(arguments[1])


OVERLOADS = (
    *_overloads(),
    Overload("in_list", "@in(A, list(A)) -> bool", _contains, _element_cost),
    Overload("in_map", "@in(A, map(A, B)) -> bool", lambda value, held: has_key(held, value)),
    Overload("logical_not", "!_(bool) -> bool", operator.not_),
)
