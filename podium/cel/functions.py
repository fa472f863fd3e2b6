"""Functions and their overloads: their signatures, and the choice of the overload for the given values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from podium.cel.errors import no_such_overload
from podium.cel.types import Type, read_type
from podium.cel.values import UInt, size_of, type_of

Implementation: TypeAlias = Callable[..., Any]
Matcher: TypeAlias = Callable[[Any], bool] | None
"""Tells whether a value has a type; None if every value has it."""
CallCost: TypeAlias = Callable[[tuple[Any, ...], Any], int]
"""The cost of a call, given its arguments and its result."""

_CLASSES = {"bool": bool, "int": int, "uint": UInt, "double": float, "string": str, "bytes": bytes}
_ANY_LIST = read_type("list(dyn)")
_SIGNATURE = re.compile(r"(?:(?P<target>[\w(), ]+?)\.)?(?P<name>[^\s(]+)\((?P<arguments>.*)\) -> (?P<result>.+)")


def unit_cost(_arguments: tuple[Any, ...], _result: Any) -> int:
    """Return the cost of a call that takes constant time."""
    return 1


class Overload:
    """One signature of a function.

    Args:
        id: upstream's name of the overload.
        signature: `target.name(argument, argument) -> result`, or without a target. `a::b` is the function `a.b`.
        run: the implementation; takes the target and the arguments, and raises EvaluationError.
        cost: the cost of a call.
        postpaid: the cost depends on the result. Other calls are charged before they run, so that no call
            beyond the limit runs.
        loose: at run time, any list is accepted for a typed list of the signature.
    """

    __slots__ = ("arguments", "cost", "id", "is_member", "matchers", "name", "postpaid", "result", "run")

    def __init__(
        self,
        id: str,  # noqa: A002
        signature: str,
        run: Implementation,
        cost: CallCost = unit_cost,
        *,
        postpaid: bool = False,
        loose: bool = False,
    ) -> None:
        match = _SIGNATURE.fullmatch(signature)
        assert match is not None, signature
        self.id = id
        self.name = match["name"].replace("::", ".")
        self.is_member = match["target"] is not None
        texts = ([match["target"]] if self.is_member else []) + _split(match["arguments"])
        self.arguments: tuple[Type, ...] = tuple(map(read_type, texts))
        self.result = read_type(match["result"])
        self.run = run
        self.cost = cost
        self.postpaid = postpaid
        self.matchers = tuple(_matcher(_ANY_LIST if loose and kind.kind == "list" else kind) for kind in self.arguments)

    def accepts(self, values: tuple[Any, ...]) -> bool:
        """Tell whether the overload is defined for these values."""
        return len(values) == len(self.matchers) and all(
            match is None or match(value) for match, value in zip(self.matchers, values, strict=True)
        )


class Function:
    """All overloads of one name, in the order of selection."""

    __slots__ = ("by_id", "by_value", "name", "overloads")

    def __init__(self, name: str, overloads: Iterable[Overload]) -> None:
        self.name = name
        self.overloads = tuple(overloads)
        # Operators choose the overload by the values alone and ignore the checker's result.
        self.by_value = name[0] in "_@!-" or name == "size"
        self.by_id = {overload.id: overload for overload in self.overloads}

    def for_values(self, values: tuple[Any, ...]) -> Overload:
        """Return the first overload that is defined for these values.

        Raises: EvaluationError: no overload is defined for them.
        """
        for overload in self.overloads:
            if overload.accepts(values):
                return overload
        raise no_such_overload(self.name)


def table(overloads: Iterable[Overload]) -> dict[str, Function]:
    """Return the functions by name."""
    grouped: dict[str, list[Overload]] = {}
    for overload in overloads:
        grouped.setdefault(overload.name, []).append(overload)
    return {name: Function(name, members) for name, members in grouped.items()}


def _split(arguments: str) -> list[str]:
    """Split the arguments of a signature. Commas within parentheses belong to a type."""
    parts, depth, start = [], 0, 0
    for i, character in enumerate(arguments):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(arguments[start:i])
            start = i + 1
    return [part.strip() for part in [*parts, arguments[start:]] if part.strip()]


def _matcher(expected_type: Type) -> Matcher:
    """Return a function that tests values for a type; None if all match. Lists are tested by their first element."""
    if expected_type.kind in ("dyn", "parameter"):
        return None
    name = expected_type.name
    if name in _CLASSES:
        value_class = _CLASSES[name]
        return lambda value: type(value) is value_class
    if expected_type.kind == "struct":
        return lambda value: getattr(value, "TYPE", None) is expected_type
    if expected_type.kind == "list":
        element = _matcher(expected_type.parameters[0])
        if element is None:
            return lambda value: type(value) is list
        # As cel-go: the first element stands for all, since a whole list would cost a pass on each call.
        return lambda value: type(value) is list and (not value or element(value[0]))
    if expected_type.kind == "map":
        return lambda value: isinstance(value, dict)
    return lambda value: type_of(value).name == name


def per_size(factor: float, *indexes: int) -> CallCost:
    """Return the cost of a call that is linear in the size of some arguments.

    Args:
        factor: the cost of a character or an element.
        indexes: the indexes of these arguments.
    """
    (first, *tail) = indexes

    def cost(arguments: tuple[Any, ...], _result: Any) -> int:
        total = size_of(arguments[first]) + sum(size_of(arguments[index]) for index in tail)
        return ceiling(total * factor)

    return cost


def ceiling(number: float) -> int:
    """Return the number rounded up."""
    return -int(-number // 1)
