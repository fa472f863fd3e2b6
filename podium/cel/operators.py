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
    """Compile `||` (deciding: True) or `&&` (False). A deciding term absorbs the errors of all other terms."""
    # Two terms are by far the most frequent case, and need neither the loop nor a failure to remember.
    if len(terms) == 2:
        return _logical_pair(terms[0], terms[1], deciding)
    name = _name_of(deciding)

    def run(frame: Frame) -> Any:
        failure: EvaluationError | None = None
        for term in terms:
            try:
                value = term(frame)
            except EvaluationError as error:
                # An error counts only if no other term decides: CEL's logic is commutative.
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
            # The second term may still decide; if it fails too, its own error is as good.
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


def conditional(condition: Run, when_true: Run, when_false: Run, *, keeps_optionals: bool) -> Run:
    """Compile `condition ? when_true : when_false`."""

    def run(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            return when_true(frame) if keeps_optionals else as_read(when_true(frame))
        if value is False:
            return when_false(frame) if keeps_optionals else as_read(when_false(frame))
        raise no_such_overload("_?_:_")

    return run


def equal(lhs: Run, rhs: Run, constant: Any, *, counts_costs: bool) -> Run:
    """Compile `lhs == rhs`. `constant` is the value of the right side if it is a constant."""

    def run(frame: Frame) -> bool:
        is_equal = equals(lhs(frame), rhs(frame))
        if is_equal is None:
            raise no_such_overload("_==_")
        return is_equal

    def run_constant(frame: Frame) -> bool:
        value = lhs(frame)
        # Python compares scalars of the same type as CEL does; bool and int differ in type.
        if type(value) is kind:
            return bool(value == constant)
        is_equal = equals(value, constant)
        if is_equal is None:
            raise no_such_overload("_==_")
        return is_equal

    def run_and_charge(frame: Frame) -> bool:
        values = (lhs(frame), rhs(frame))
        # Upstream's Kubernetes types have no size, and their comparison costs 1.
        charge(frame, 1 if isinstance(values[0], Opaque) else smaller_size(values, None))
        is_equal = equals(*values)
        if is_equal is None:
            raise no_such_overload("_==_")
        return is_equal

    if counts_costs:
        return run_and_charge
    kind = type(constant)
    return run_constant if kind in _SCALARS else run


def not_equal(lhs: Run, rhs: Run, *, counts_costs: bool) -> Run:
    """Compile `lhs != rhs`, which is true if equality is not defined."""

    def run(frame: Frame) -> bool:
        values = (lhs(frame), rhs(frame))
        if counts_costs:
            charge(frame, smaller_size(values, None))
        return equals(*values) is not True

    return run


def optional_or(optional: Run, alternative: Run, *, unwrap: bool, is_strict: bool) -> Run:
    """Compile `optional.or(alternative)` or, with `unwrap`, `optional.orValue(alternative)`.

    Args:
        is_strict: a value that is not optional is an error; else it is the result.
    """

    def run(frame: Frame) -> Any:
        value = optional(frame)
        if type(value) is not Optional:
            if is_strict:
                raise no_such_overload("orValue" if unwrap else "or")
            return value
        if value.present:
            return read_value(value) if unwrap else value
        return alternative(frame)

    return run


def call(
    function: Function, ids: list[str], arguments: list[Run], type_is_certain: list[bool], *, counts_costs: bool
) -> Run:
    """Compile a call.

    Args:
        ids: the overloads that are possible for the types.
        type_is_certain: for each argument, True if all values of its static type have exactly that type at run time.
        counts_costs: the closure counts costs.
    """
    # Operators go by the values at run time, unless these cannot have another type.
    overload = function.by_id[ids[0]] if len(ids) == 1 and (all(type_is_certain) or not function.by_value) else None
    if counts_costs:
        return _charged_call(function, overload, arguments)
    # Closures for one and two arguments avoid a tuple on each call; more arguments are rare.
    if overload is None or len(arguments) > 2:
        return _checked_call(function, overload, arguments)
    if all(type_is_certain):
        return _plain_call(overload.run, arguments)
    matchers = [None if sure else match for sure, match in zip(type_is_certain, overload.matchers, strict=True)]
    return _matched_call(overload, arguments, matchers)


def _plain_call(run: Callable[..., Any], arguments: list[Run]) -> Run:
    match arguments:
        case [only]:
            return lambda frame: run(only(frame))
        case [first, second]:
            return lambda frame: run(first(frame), second(frame))
    return lambda frame: run(*[argument(frame) for argument in arguments])


def _matched_call(overload: Overload, arguments: list[Run], matchers: list[Matcher]) -> Run:
    """Return a call with one or two arguments. Only the arguments that have a matcher are tested."""
    first, *tail = arguments
    match_first, *other_matchers = matchers
    run, name = overload.run, overload.name

    def run_one(frame: Frame) -> Any:
        value = first(frame)
        if match_first is None or match_first(value):
            return run(value)
        raise no_such_overload(name)

    if not tail:
        return run_one
    (second,) = tail
    (match_second,) = other_matchers

    def run_two(frame: Frame) -> Any:
        lhs, rhs = first(frame), second(frame)
        if (match_first is None or match_first(lhs)) and (match_second is None or match_second(rhs)):
            return run(lhs, rhs)
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
        values = tuple([argument(frame) for argument in arguments])
        return _applicable(function, overload, values).run(*values)

    return run


def _charged_call(function: Function, overload: Overload | None, arguments: list[Run]) -> Run:
    def run(frame: Frame) -> Any:
        values = tuple([argument(frame) for argument in arguments])
        choice = _applicable(function, overload, values)
        if not choice.postpaid:
            charge(frame, choice.cost(values, None))
            # The cost depends on the size of the result, which therefore must exist first.
            return choice.run(*values)
        result = choice.run(*values)
        charge(frame, choice.cost(values, result))
        return result

    return run


def is_member(value: Run, members: list[Any]) -> Run | None:
    """Compile `value in [1, 2]` for constants of simple types, which has no cost; None for other constants."""
    if any(type(member) not in _MEMBERS for member in members):
        return None
    # The set is for texts alone: in Python 1, 1.0 and True would be one member.
    texts = frozenset(member for member in members if type(member) is str)

    def run(frame: Frame) -> bool:
        candidate = value(frame)
        if type(candidate) is str:
            return candidate in texts
        # Upstream looks the value up in a set, and fails for one that it cannot hash.
        assert_hashable(candidate)
        return any(equals(candidate, member) is True for member in members)

    return run


def list_literal(elements: list[Run], optional: frozenset[int]) -> Run:
    """Compile a list literal such as `[a, ?b]`."""
    if not optional:
        return lambda frame: [element(frame) for element in elements]

    def run(frame: Frame) -> list[Any]:
        result = []
        for i, element in enumerate(elements):
            value = element(frame)
            if i in optional:
                element_value = _optional(value)
                if element_value.present:
                    result.append(element_value.value)
            else:
                result.append(value)
        return result

    return run


def _optional(value: Any) -> Optional:
    if type(value) is not Optional:
        raise EvaluationError("cannot initialize an optional element from a value that is not optional")
    return value


def map_literal(entries: list[tuple[Run, Run, bool]]) -> Run:
    """Compile a map literal such as `{key: value, ?key: value}`."""

    def run(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, value, optional in entries:
            place, content = key_of(key(frame)), value(frame)
            if place is None:
                raise EvaluationError("unsupported key type")
            if optional:
                content = _optional(content)
                if not content.present:
                    # As upstream: an absent optional entry removes one of that key before it.
                    result.pop(place, None)
                    continue
                content = content.value
            result[place] = content
        return result

    return run
