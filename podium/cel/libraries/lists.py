"""Lists and sets, and the function `size` of all types.

Source: the lists extension of cel-go 0.26.0 and 0.29.2, version 3; its sets; Kubernetes' lists library.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from podium.cel.errors import CostLimitError, EvaluationError
from podium.cel.functions import Overload
from podium.cel.libraries.arithmetic import OVERLOADS as _ARITHMETIC
from podium.cel.libraries.comparisons import compare_leniently
from podium.cel.libraries.strings import traversing
from podium.cel.values import NONE, SIZE_MAX, Duration, Optional, UInt, equals, walk

_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SORTABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZEROS: dict[str, Any] = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}
_ADDITIONS = {overload.arguments: overload.run for overload in _ARITHMETIC if overload.name == "_+_"}
_PROTO_NAMES = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(values):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _flatten(values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    for _ in range(min(depth, _DEPTH_MAX)):
        # An argument of millions would otherwise repeat a pass that changes nothing.
        if not any(type(element) is list for element in values):
            break
        for element in values:
            if type(element) is list:
                walk(element)
        values = [inner for element in values for inner in (element if type(element) is list else (element,))]
    return values


_DEPTH_MAX = 10_000


def _range(count: int) -> list[int]:
    if count > SIZE_MAX:
        # The list would exceed the cost limit of every selector.
        raise CostLimitError(f"lists.range({count}) exceeds the limit of {SIZE_MAX}")
    return list(range(count))


def _checked_range(count: int) -> list[int]:
    if count < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {count}")
    if count > SIZE_MAX:
        raise EvaluationError(f"lists.range: size {count} exceeds maximum allowed ({SIZE_MAX})")
    return list(range(count))


def _checked_range_cost(arguments: tuple[Any, ...], _result: Any) -> int:
    (count,) = arguments
    return int(count) + 11 if 0 <= count <= SIZE_MAX else 12


def _includes(target: Any, value: Any) -> bool:
    """Tell whether a list has an element equal to the value, or whether anything else is equal to it."""
    elements = target if type(target) is list else (target,)
    return any(equals(element, value) is True for element in elements)


def _distinct(values: list[Any]) -> list[Any]:
    distinct: list[Any] = []
    for value in values:
        # Not by hashing, as CEL's equality is not Python's.
        if not any(equals(value, element) is True for element in distinct):
            distinct.append(value)
    return distinct


def _sort_by(values: list[Any], keys: list[Any]) -> list[Any]:
    if len(values) != len(keys):
        raise EvaluationError("@sortByAssociatedKeys() expected a list of the same size as the associated keys list")
    if len(keys) > 1 and any(type(key) is not type(keys[0]) for key in keys):
        raise EvaluationError("list elements must have the same type")
    if keys:
        # A single key is compared as well, to refuse types without an order.
        compare_leniently(keys[0], keys[0])
    by_key = functools.cmp_to_key(compare_leniently)
    return [values[i] for i in sorted(range(len(keys)), key=lambda i: by_key(keys[i]))]


def _sort(values: list[Any]) -> list[Any]:
    return _sort_by(values, values)


def _first(values: list[Any]) -> Optional:
    return Optional(values[0]) if values else NONE


def _last(values: list[Any]) -> Optional:
    return Optional(values[-1]) if values else NONE


def _index_of(values: list[Any], target: Any) -> int:
    return next((i for i, element in enumerate(values) if equals(element, target) is True), -1)


def _last_index_of(values: list[Any], target: Any) -> int:
    return next((i for i in range(len(values) - 1, -1, -1) if equals(values[i], target) is True), -1)


def _is_sorted(values: list[Any]) -> bool:
    return all(compare_leniently(values[i], values[i + 1]) <= 0 for i in range(len(values) - 1))


def _extreme(name: str, sign: int) -> Callable[[list[Any]], Any]:
    def run(values: list[Any]) -> Any:
        if not values:
            raise EvaluationError(f"{name} called on empty list")
        best = values[0]
        for value in values[1:]:
            if compare_leniently(best, value) == sign:
                best = value
        return best

    return run


def _sum(kind: str) -> Callable[[list[Any]], Any]:
    zero = _ZEROS[kind]

    def run(values: list[Any]) -> Any:
        total = zero
        for value in values:
            if type(value) is not type(zero):
                raise EvaluationError("no such overload")
            total = add(total, value)
        return total

    (add,) = (run for arguments, run in _ADDITIONS.items() if _is_of(arguments, kind))
    return run


def _is_of(arguments: tuple[Any, ...], kind: str) -> bool:
    return [argument.kind for argument in arguments] == [kind, kind]


def _contains_all(values: list[Any], required_values: list[Any]) -> bool:
    return all(any(equals(element, value) is True for value in values) for element in required_values)


def _intersects(lhs: list[Any], rhs: list[Any]) -> bool:
    return any(equals(element, value) is True for element in lhs for value in rhs)


def _equivalent(lhs: list[Any], rhs: list[Any]) -> bool:
    return _contains_all(lhs, rhs) and _contains_all(rhs, lhs)


def _pairs_cost(factor: int) -> Callable[[tuple[Any, ...], Any], int]:
    def cost(arguments: tuple[Any, ...], _result: Any) -> int:
        return factor * len(arguments[0]) * len(arguments[1]) + 1

    return cost


def _result_cost(_arguments: tuple[Any, ...], result: Any) -> int:
    """Return the cost of a call that builds a list."""
    return len(result) + 11


def _flatten_cost(arguments: tuple[Any, ...], _result: Any) -> int:
    depth = arguments[1] if len(arguments) == 2 else 1
    return len(arguments[0]) * depth + 11


def _quadratic_cost(arguments: tuple[Any, ...], _result: Any) -> int:
    """Return the cost of comparing all elements with each other."""
    values = arguments[-1]
    factor = 2.1 if values and isinstance(values[0], (str, bytes)) else 2.0
    return int(len(values) ** 2 * factor) + 11


def _templates() -> Iterator[Overload]:
    for kind in _COMPARABLE:
        yield Overload(f"list_{kind}_is_sorted_bool", f"list({kind}).isSorted() -> bool", _is_sorted, traversing)
        yield Overload(f"list_{kind}_max_{kind}", f"list({kind}).max() -> {kind}", _extreme("max", -1), traversing)
        yield Overload(f"list_{kind}_min_{kind}", f"list({kind}).min() -> {kind}", _extreme("min", 1), traversing)
    for kind in _ZEROS:
        yield Overload(f"list_{kind}_sum_{kind}", f"list({kind}).sum() -> {kind}", _sum(kind), traversing)
    for kind in _SORTABLE:
        name = _PROTO_NAMES.get(kind, kind)
        yield Overload(f"list_{name}_sort", f"list({kind}).sort() -> list({kind})", _sort, _quadratic_cost)
        yield Overload(
            f"list_{name}_sortByAssociatedKeys",
            f"list(T).@sortByAssociatedKeys(list({kind})) -> list(T)",
            _sort_by,
            _quadratic_cost,
        )


def _sizes() -> Iterator[Overload]:
    for kind, argument in (("bytes", "bytes"), ("list", "list(A)"), ("map", "map(A, B)"), ("string", "string")):
        yield Overload(f"size_{kind}", f"size({argument}) -> int", len)
        yield Overload(f"{kind}_size", f"{argument}.size() -> int", len)


OVERLOADS = (
    *_templates(),
    *_sizes(),
    Overload("list_slice", "list(T).slice(int, int) -> list(T)", _slice, _result_cost, postpaid=True),
    Overload("list_flatten", "list(list(T)).flatten() -> list(T)", _flatten, _flatten_cost, loose=True),
    Overload("list_flatten_int", "list(dyn).flatten(int) -> list(dyn)", _flatten, _flatten_cost),
    Overload("lists_range", "lists::range(int) -> list(int)", _range, lambda counts, _: max(*counts, 0) + 11),
    Overload("list_reverse", "list(T).reverse() -> list(T)", lambda values: values[::-1], _result_cost, postpaid=True),
    Overload("list_distinct", "list(T).distinct() -> list(T)", _distinct, _quadratic_cost),
    Overload("list_first", "list(V).first() -> optional(V)", _first),
    Overload("list_last", "list(V).last() -> optional(V)", _last),
    Overload("list_a_index_of_int", "list(A).indexOf(A) -> int", _index_of, traversing),
    Overload("list_a_last_index_of_int", "list(A).lastIndexOf(A) -> int", _last_index_of, traversing),
    Overload("list_includes_dyn_dyn", "dyn.includes(dyn) -> bool", _includes),
    Overload("list_sets_contains_list", "sets::contains(list(T), list(T)) -> bool", _contains_all, _pairs_cost(1)),
    Overload("list_sets_intersects_list", "sets::intersects(list(T), list(T)) -> bool", _intersects, _pairs_cost(1)),
    Overload("list_sets_equivalent_list", "sets::equivalent(list(T), list(T)) -> bool", _equivalent, _pairs_cost(2)),
)

CHECKED = (Overload("lists_range", "lists::range(int) -> list(int)", _checked_range, _checked_range_cost),)
CHARGED = (Overload("list_includes_dyn_dyn", "dyn.includes(dyn) -> bool", _includes, traversing),)
