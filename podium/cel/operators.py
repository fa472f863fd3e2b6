"""Compile operators that are not plain calls (logic, conditional, equality), literals, and calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.cel.access import as_read, read_value
from podium.cel.errors import EvaluationError, no_such_overload
from podium.cel.frame import Frame, Run, charge
from podium.cel.functions import Function, Matcher, Overload
from podium.cel.libraries.comparisons import smaller_size
from podium.cel.values import Opaque, Optional, UInt, assert_hashable, equals, key_of

_SCALARS = frozenset({str, int, bool})
_MEMBERS = frozenset({str, int, UInt, bool, float})


def logical(terms: list[Run], deciding: bool) -> Run:
    """`||` (deciding: True) or `&&` (False). A deciding term absorbs the errors of all other terms."""
    if len(terms) == 2:
        return _logical_pair(terms[0], terms[1], deciding)
    name = _name_of(deciding)

    def run(frame: Frame) -> Any:
        failure: EvaluationError | None = None
        for term in terms:
            try:
                value = term(frame)
            except EvaluationError as error:
                failure = failure or error
                continue
            if value is deciding:
                return deciding
            if value is not (not deciding):
                failure = failure or no_such_overload(name)
        if failure is not None:
            raise failure
        return not deciding

    return run


def _logical_pair(first: Run, second: Run, deciding: bool) -> Run:
    name = _name_of(deciding)

    def run(frame: Frame) -> Any:
        try:
            value = first(frame)
            if value is deciding:
                return deciding
            if value is not (not deciding):
                raise no_such_overload(name)
        except EvaluationError:
            if second(frame) is deciding:
                return deciding
            raise
        value = second(frame)
        if value is True or value is False:
            return value
        raise no_such_overload(name)

    return run


def _name_of(deciding: bool) -> str:
    return "_||_" if deciding else "_&&_"


def conditional(condition: Run, when_true: Run, when_false: Run) -> Run:
    """Compile `condition ? when_true : when_false`."""

    def run(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            return as_read(when_true(frame))
        if value is False:
            return as_read(when_false(frame))
        raise no_such_overload("_?_:_")

    return run


def equal(left: Run, right: Run, constant: Any, *, tracked: bool) -> Run:
    """Compile `left == right`. `constant` is the value of the right side if it is a constant."""

    def run(frame: Frame) -> bool:
        found = equals(left(frame), right(frame))
        if found is None:
            raise no_such_overload("_==_")
        return found

    def run_constant(frame: Frame) -> bool:
        value = left(frame)
        if type(value) is kind:
            return bool(value == constant)
        found = equals(value, constant)
        if found is None:
            raise no_such_overload("_==_")
        return found

    def run_tracked(frame: Frame) -> bool:
        values = (left(frame), right(frame))
        charge(frame, 1 if isinstance(values[0], Opaque) else smaller_size(values, None))
        found = equals(*values)
        if found is None:
            raise no_such_overload("_==_")
        return found

    if tracked:
        return run_tracked
    kind = type(constant)
    return run_constant if kind in _SCALARS else run


def not_equal(left: Run, right: Run, *, tracked: bool) -> Run:
    """Compile `left != right`, which is true if equality is not defined."""

    def run(frame: Frame) -> bool:
        values = (left(frame), right(frame))
        if tracked:
            charge(frame, smaller_size(values, None))
        return equals(*values) is not True

    return run


def optional_or(held: Run, other: Run, *, unwrap: bool) -> Run:
    """`held.or(other)` or, with `unwrap`, `held.orValue(other)`. `other` is evaluated only if needed."""

    def run(frame: Frame) -> Any:
        value = held(frame)
        if type(value) is not Optional:
            return value
        if value.present:
            return read_value(value) if unwrap else value
        return other(frame)

    return run


def call(function: Function, ids: list[str], arguments: list[Run], known: list[bool], *, tracked: bool) -> Run:
    """Compile a call.

    Args:
        ids: the overloads that are possible for the types.
        known: for each argument whether every value of its static type has exactly that type at run time.
        tracked: whether costs are counted.
    """
    overload = function.by_id[ids[0]] if len(ids) == 1 and (all(known) or not function.by_value) else None
    if tracked:
        return _tracked_call(function, overload, arguments)
    if overload is None or len(arguments) > 2:
        return _checked_call(function, overload, arguments)
    if all(known):
        return _plain_call(overload.run, arguments)
    matchers = [None if sure else match for sure, match in zip(known, overload.matchers, strict=True)]
    return _matched_call(overload, arguments, matchers)


def _plain_call(run: Callable[..., Any], arguments: list[Run]) -> Run:
    match arguments:
        case [only]:
            return lambda frame: run(only(frame))
        case [first, second]:
            return lambda frame: run(first(frame), second(frame))
    return lambda frame: run(*[each(frame) for each in arguments])


def _matched_call(overload: Overload, arguments: list[Run], matchers: list[Matcher]) -> Run:
    """A call with one or two arguments. Only the arguments that have a matcher are tested."""
    first, *others = arguments
    match_first, *other_matchers = matchers
    run, name = overload.run, overload.name

    def run_one(frame: Frame) -> Any:
        value = first(frame)
        if match_first is None or match_first(value):
            return run(value)
        raise no_such_overload(name)

    if not others:
        return run_one
    (second,) = others
    (match_second,) = other_matchers

    def run_two(frame: Frame) -> Any:
        left, right = first(frame), second(frame)
        if (match_first is None or match_first(left)) and (match_second is None or match_second(right)):
            return run(left, right)
        raise no_such_overload(name)

    return run_two


def _applicable(function: Function, overload: Overload | None, values: tuple[Any, ...]) -> Overload:
    if overload is None:
        return function.for_values(values)
    if overload.accepts(values):
        return overload
    raise no_such_overload(function.name)


def _checked_call(function: Function, overload: Overload | None, arguments: list[Run]) -> Run:
    def run(frame: Frame) -> Any:
        values = tuple([each(frame) for each in arguments])
        return _applicable(function, overload, values).run(*values)

    return run


def _tracked_call(function: Function, overload: Overload | None, arguments: list[Run]) -> Run:
    def run(frame: Frame) -> Any:
        values = tuple([each(frame) for each in arguments])
        found = _applicable(function, overload, values)
        if not found.postpaid:
            charge(frame, found.cost(values, None))
            return found.run(*values)
        result = found.run(*values)
        charge(frame, found.cost(values, result))
        return result

    return run


def is_member(value: Run, members: list[Any]) -> Run | None:
    """`value in [1, 2]` for constants of a simple type, which has no cost; None for other constants."""
    if any(type(each) not in _MEMBERS for each in members):
        return None
    wanted = frozenset(each for each in members if type(each) is str)

    def run(frame: Frame) -> bool:
        held = value(frame)
        if type(held) is str:
            return held in wanted
        assert_hashable(held)
        return any(equals(held, each) is True for each in members)

    return run


def list_literal(elements: list[Run], optional: frozenset[int]) -> Run:
    """Compile a list literal such as `[a, ?b]`."""
    if not optional:
        return lambda frame: [each(frame) for each in elements]

    def run(frame: Frame) -> list[Any]:
        found = []
        for i, element in enumerate(elements):
            value = element(frame)
            if i in optional:
                held = _optional(value)
                if held.present:
                    found.append(held.value)
            else:
                found.append(value)
        return found

    return run


def _optional(value: Any) -> Optional:
    if type(value) is not Optional:
        raise EvaluationError("cannot initialize an optional element from a value that is not optional")
    return value


def map_literal(entries: list[tuple[Run, Run, bool]]) -> Run:
    """Compile a map literal such as `{key: value, ?key: value}`."""

    def run(frame: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value, optional in entries:
            place, held = key_of(key(frame)), value(frame)
            if place is None:
                raise EvaluationError("unsupported key type")
            if optional:
                held = _optional(held)
                if not held.present:
                    found.pop(place, None)
                    continue
                held = held.value
            found[place] = held
        return found

    return run
