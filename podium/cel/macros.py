"""Macros: calls that the parser replaces by other expressions.

Source: the macros of cel-go 0.26.0 and of its extensions for bindings, lists and two-variable comprehensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from podium.cel.syntax import (
    ACCUMULATOR,
    TARGET,
    UNUSED,
    Call,
    Comprehension,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
)  # fmt: skip

_SORTED = "@sorted"
_OLD_ACCUMULATOR = "__result__"


class MacroError(Exception):
    """The arguments of a macro have the wrong form."""

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(problem)
        self.position = position


Macro: TypeAlias = Callable[[Call], Expr | None]


def expand(call: Call) -> Expr:
    """Return the expansion of a call. A call that is not a macro is returned unchanged. Raises: MacroError."""
    # A function of that name with other arguments is no macro, and may be a real function.
    macro = _MACROS.get((call.function, len(call.arguments), call.target is not None))
    expansion = macro(call) if macro is not None else None
    return call if expansion is None else expansion


def _name(argument: Expr) -> str:
    if not isinstance(argument, Ident):
        raise MacroError(argument.position, "argument must be a simple name")
    return argument.name


def _variables(call: Call, body: int) -> tuple[str, str | None]:
    """Return the one or two iteration variables before the `body` last arguments."""
    names = [_name(argument) for argument in call.arguments[:-body]]
    for name in names:
        # The name of older versions of cel-go is still refused.
        if name in (ACCUMULATOR, _OLD_ACCUMULATOR):
            raise MacroError(call.position, "iteration variable overwrites accumulator variable")
    if len(names) == 2 and names[0] == names[1]:
        raise MacroError(call.arguments[1].position, f"duplicate variable name: {names[1]}")
    return names[0], names[1] if len(names) == 2 else None


def _accumulator(call: Call) -> Ident:
    return Ident(call.position, ACCUMULATOR)


def _operator(call: Call, name: str, *arguments: Expr) -> Call:
    return Call(call.position, name, None, list(arguments))


def _loop(
    call: Call, variables: tuple[str, str | None], initial: Expr, condition: Expr, step: Expr, result: Expr
) -> Comprehension:
    assert call.target is not None
    return Comprehension(call.position, call.target, *variables, ACCUMULATOR, initial, condition, step, result)


def _has(call: Call) -> Expr:
    (argument,) = call.arguments
    if not isinstance(argument, Select) or argument.test_only:
        raise MacroError(argument.position, "invalid argument to has() macro")
    return Select(argument.position, argument.operand, argument.name, test_only=True)


def _all(call: Call) -> Expr:
    condition = _operator(call, "@not_strictly_false", _accumulator(call))
    step = _operator(call, "_&&_", _accumulator(call), call.arguments[-1])
    return _loop(call, _variables(call, 1), Literal(call.position, True), condition, step, _accumulator(call))


def _exists(call: Call) -> Expr:
    condition = _operator(call, "@not_strictly_false", _operator(call, "!_", _accumulator(call)))
    step = _operator(call, "_||_", _accumulator(call), call.arguments[-1])
    return _loop(call, _variables(call, 1), Literal(call.position, False), condition, step, _accumulator(call))


def _exists_one(call: Call) -> Expr:
    increment = _operator(call, "_+_", _accumulator(call), Literal(call.position, 1))
    step = _operator(call, "_?_:_", call.arguments[-1], increment, _accumulator(call))
    result = _operator(call, "_==_", _accumulator(call), Literal(call.position, 1))
    return _collecting(call, _variables(call, 1), Literal(call.position, 0), step, result)


def _collecting(
    call: Call, variables: tuple[str, str | None], initial: Expr, step: Expr, result: Expr | None = None
) -> Expr:
    return _loop(call, variables, initial, Literal(call.position, True), step, result or _accumulator(call))


def _when(call: Call, predicate: Expr, step: Expr) -> Expr:
    return _operator(call, "_?_:_", predicate, step, _accumulator(call))


def _appending(call: Call, element: Expr) -> Expr:
    return _operator(call, "_+_", _accumulator(call), ListLiteral(call.position, [element], frozenset()))


def _map(call: Call) -> Expr:
    # Its name only: `map` has no form with two variables.
    variables = (_variables(Call(call.position, "", None, call.arguments[:2]), 1)[0], None)
    step = _appending(call, call.arguments[-1])
    if len(call.arguments) == 3:
        step = _when(call, call.arguments[1], step)
    return _collecting(call, variables, ListLiteral(call.position, [], frozenset()), step)


def _filter(call: Call) -> Expr:
    variables = _variables(call, 1)
    step = _when(call, call.arguments[1], _appending(call, Ident(call.position, variables[0])))
    return _collecting(call, variables, ListLiteral(call.position, [], frozenset()), step)


def _transform(call: Call, initial: Expr, step: Expr) -> Expr:
    has_filter = len(call.arguments) == 4
    if has_filter:
        step = _when(call, call.arguments[2], step)
    return _collecting(call, _variables(call, 2 if has_filter else 1), initial, step)


def _transform_list(call: Call) -> Expr:
    return _transform(call, ListLiteral(call.position, [], frozenset()), _appending(call, call.arguments[-1]))


def _transform_map(call: Call) -> Expr:
    key = Ident(call.position, _name(call.arguments[0]))
    step = _operator(call, "cel.@mapInsert", _accumulator(call), key, call.arguments[-1])
    return _transform(call, MapLiteral(call.position, []), step)


def _transform_map_entry(call: Call) -> Expr:
    step = _operator(call, "cel.@mapInsert", _accumulator(call), call.arguments[-1])
    return _transform(call, MapLiteral(call.position, []), step)


def _binding(call: Call, name: str, value: Expr, result: Expr) -> Comprehension:
    """Return a loop over an empty list whose accumulator is the bound name."""
    nothing = ListLiteral(call.position, [], frozenset())
    false = Literal(call.position, False)
    return Comprehension(call.position, nothing, UNUSED, None, name, value, false, Ident(call.position, name), result)


def _bind(call: Call) -> Expr | None:
    # Any other target is a value with a member function `bind`.
    if not isinstance(call.target, Ident) or call.target.name != "cel":
        return None
    name, value, result = call.arguments
    if not isinstance(name, Ident):
        raise MacroError(name.position, "cel.bind() variable names must be simple identifiers")
    return _binding(call, name.name, value, result)


def _optional_map(call: Call) -> Expr:
    return _on_value(call, lambda binding: _operator(call, "optional.of", binding))


def _optional_flat_map(call: Call) -> Expr:
    return _on_value(call, lambda binding: binding)


def _on_value(call: Call, wrap: Callable[[Expr], Expr]) -> Expr:
    """Bind the target to a name. Upstream repeats the target, so that a chain of n calls gives 2^n expressions."""
    name, body = call.arguments
    if not isinstance(name, Ident):
        raise MacroError(name.position, f"{call.function}() variable name must be a simple identifier")
    assert call.target is not None
    target = Ident(call.position, TARGET)
    present = Call(call.position, "hasValue", target, [])
    value = Call(call.position, "value", Ident(call.position, TARGET), [])
    binding = _binding(call, name.name, value, body)
    result = _operator(call, "_?_:_", present, wrap(binding), _operator(call, "optional.none"))
    return _binding(call, TARGET, call.target, result)


def _sort_by(call: Call) -> Expr:
    target = call.target
    # cel-go accepts only what may be a list.
    if not isinstance(target, (ListLiteral, Select, Ident, Comprehension, Call)):
        raise MacroError(call.position, "sortBy can only be applied to a list, identifier, call or select expression")
    keys = _map(Call(call.position, "map", Ident(call.position, _SORTED), call.arguments))
    sort = Call(call.position, "@sortByAssociatedKeys", Ident(call.position, _SORTED), [keys])
    return _binding(call, _SORTED, target, sort)


_MACROS: dict[tuple[str, int, bool], Macro] = {
    ("has", 1, False): _has,
    ("all", 2, True): _all,
    ("all", 3, True): _all,
    ("exists", 2, True): _exists,
    ("exists", 3, True): _exists,
    ("exists_one", 2, True): _exists_one,
    ("exists_one", 3, True): _exists_one,
    ("existsOne", 3, True): _exists_one,
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
    ("bind", 3, True): _bind,
    ("optMap", 2, True): _optional_map,
    ("optFlatMap", 2, True): _optional_flat_map,
    ("sortBy", 2, True): _sort_by,
}
"""The macros by name, number of arguments, and whether the call has a target."""
