"""Determine the type of every subexpression, and the overloads that its calls may run.

Source: the type checker of cel-go 0.26.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from podium.cel.environment import FIELDS, FUNCTIONS, TYPE_NAMES, VARIABLES
from podium.cel.errors import CompileError
from podium.cel.functions import Function
from podium.cel.lexer import place
from podium.cel.syntax import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Select,
)  # fmt: skip
from podium.cel.types import (
    BOOL,
    DYN,
    INT,
    Type,
    list_of,
    map_of,
    optional_of,
)  # fmt: skip
from podium.cel.types import (
    type_of as type_of_type,
)
from podium.cel.unification import Substitutions, is_dynamic, most_general, unwrapped
from podium.cel.values import TypeValue, type_of

Scope: TypeAlias = Mapping[str, Type]
_LOGICAL = frozenset({"_&&_", "_||_"})


class Checker:
    """Checks one expression, in place.

    Args:
        text: the expression, for the positions of errors.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._types = Substitutions()

    def check(self, root: Expr) -> Type:
        """Determine the type of the expression.

        Raises: CompileError: the first type error.
        """
        self._check(root, VARIABLES)
        return root.type

    def resolved(self, node: Expr) -> Type:
        """The final type of a subexpression. Unbound type variables become dyn."""
        return self._types.resolve(node.type, unbound=DYN)

    def _fail(self, node: Expr, problem: str) -> CompileError:
        return CompileError(f"{place(self._text, node.position)}: {problem}")

    def _mismatch(self, node: Expr, expected: Type, found: Type) -> CompileError:
        return self._fail(node, f"expected type '{expected}' but found '{self._types.resolve(found, unbound=DYN)}'")

    def _check(self, node: Expr, scope: Scope) -> None:
        node.type = _RULES[type(node)](self, node, scope)  # type: ignore[operator]

    def _check_literal(self, node: Literal, _scope: Scope) -> Type:
        return type_of(node.value)

    def _check_ident(self, node: Ident, scope: Scope) -> Type:
        name = node.name.removeprefix(".")
        found = (VARIABLES if node.name.startswith(".") else scope).get(name)
        if found is not None:
            return found
        named = TYPE_NAMES.get(name)
        if named is None:
            raise self._fail(node, f"undeclared reference to '{node.name}'")
        node.constant = TypeValue(named)
        return type_of_type(named)

    def _check_select(self, node: Select, scope: Scope) -> Type:
        qualified = None if node.test_only else qualified_name(node)
        named = TYPE_NAMES.get(qualified.removeprefix(".")) if qualified else None
        if named is not None:
            node.constant = TypeValue(named)
            return type_of_type(named)
        self._check(node.operand, scope)
        result = self._field_type(node, node.operand, node.name, optional=False)
        return BOOL if node.test_only else self._types.resolve(result)

    def _field_type(self, node: Expr, operand: Expr, field: str, *, optional: bool) -> Type:
        target, was_optional = unwrapped(self._types.resolve(operand.type))
        result = DYN
        if target.kind == "map":
            result = target.parameters[1]
        elif target.kind == "struct":
            fields = FIELDS.get(target, {})
            if field not in fields:
                raise self._fail(node, f"undefined field '{field}'")
            result = fields[field]
        elif target.kind == "parameter":
            self._types.assignable(DYN, target)
        elif not is_dynamic(target):
            raise self._fail(node, f"type '{target}' does not support field selection")
        return optional_of(result) if optional or was_optional else result

    def _check_call(self, node: Call, scope: Scope) -> Type:
        for argument in node.arguments:
            self._check(argument, scope)
        if node.function == "_?._":
            return self._check_optional_select(node)
        function = self._function_of(node, scope)
        if function is None:
            raise self._fail(node, f"undeclared reference to '{node.function}'")
        node.function = function.name
        return self._resolve_overload(node, function)

    def _check_optional_select(self, node: Call) -> Type:
        operand, field = node.arguments
        if not isinstance(field, Literal) or not isinstance(field.value, str):
            raise self._fail(node, "unsupported optional field selection")
        node.overloads = ["select_optional_field"]
        return self._types.resolve(self._field_type(node, operand, field.value, optional=True))

    def _function_of(self, node: Call, scope: Scope) -> Function | None:
        """The called function. For `a.b(c)` it is the function `a.b` if that exists, else the member function `b`."""
        if node.target is None:
            return FUNCTIONS.get(node.function.removeprefix("."))
        prefix = qualified_name(node.target)
        if prefix is not None:
            function = FUNCTIONS.get(f"{prefix}.{node.function}".removeprefix("."))
            if function is not None:
                node.target = None
                return function
        self._check(node.target, scope)
        return FUNCTIONS.get(node.function)

    def _resolve_overload(self, node: Call, function: Function) -> Type:
        if function.name in _LOGICAL:
            for argument in node.arguments:
                if not self._types.assignable(argument.type, BOOL):
                    raise self._mismatch(argument, BOOL, argument.type)
            return BOOL
        given = [] if node.target is None else [node.target]
        arguments = tuple(each.type for each in given + node.arguments)
        result: Type | None = None
        for overload in function.overloads:
            if overload.is_member != (node.target is not None):
                continue
            candidate, *expected = self._types.instantiated((overload.result, *overload.arguments))
            if not self._types.all_assignable(arguments, tuple(expected)):
                continue
            node.overloads.append(overload.id)
            candidate = self._types.resolve(candidate)
            if result is None:
                result = candidate
            elif not is_dynamic(result) and candidate != result:
                result = DYN
        if result is None:
            shown = ", ".join(str(self._types.resolve(each, unbound=DYN)) for each in arguments)
            raise self._fail(node, f"found no matching overload for '{function.name}' applied to '({shown})'")
        return result

    def _check_list(self, node: ListLiteral, scope: Scope) -> Type:
        joined: Type | None = None
        for i, element in enumerate(node.elements):
            self._check(element, scope)
            found = self._unwrapped_element(element, optional=i in node.optional)
            joined = self._join(joined, found)
        return list_of(joined or self._types.fresh())

    def _check_map(self, node: MapLiteral, scope: Scope) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            self._check(entry.key, scope)
            keys = self._join(keys, entry.key.type)
            self._check(entry.value, scope)
            values = self._join(values, self._unwrapped_element(entry.value, optional=entry.optional))
        if keys is None or values is None:
            return map_of(self._types.fresh(), self._types.fresh())
        return map_of(keys, values)

    def _unwrapped_element(self, element: Expr, *, optional: bool) -> Type:
        if not optional:
            return element.type
        found, was_optional = unwrapped(element.type)
        if not was_optional and not is_dynamic(found):
            raise self._mismatch(element, optional_of(found), found)
        return found

    def _join(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        return most_general(previous, current) if self._types.assignable(previous, current) else DYN

    def _check_message(self, node: MessageLiteral, _scope: Scope) -> Type:
        raise self._fail(node, f"messages such as '{node.name}{{}}' are not supported in device selectors")

    def _check_comprehension(self, node: Comprehension, scope: Scope) -> Type:
        self._check(node.iterated, scope)
        self._check(node.initial, scope)
        outer = {**scope, node.accumulator: node.initial.type}
        inner = {**outer, **self._iteration_types(node)}
        self._check(node.condition, inner)
        self._assert_type(node.condition, BOOL)
        self._check(node.step, inner)
        self._assert_type(node.step, node.initial.type)
        self._check(node.result, outer)
        return self._types.resolve(node.result.type)

    def _iteration_types(self, node: Comprehension) -> dict[str, Type]:
        iterated = self._types.resolve(node.iterated.type)
        second: Type
        match iterated.kind:
            case "list":
                (first,) = iterated.parameters
                if node.second_variable is not None:
                    first, second = INT, first
            case "map":
                first, second = iterated.parameters
            case "dyn" | "parameter":
                self._types.assignable(DYN, iterated)
                first = second = DYN
            case _:
                problem = f"expression of type '{iterated}' cannot be range of a comprehension"
                raise self._fail(node.iterated, problem)
        found = {node.variable: first}
        if node.second_variable is not None:
            found[node.second_variable] = second
        return found

    def _assert_type(self, node: Expr, expected: Type) -> None:
        if not self._types.assignable(expected, node.type):
            raise self._mismatch(node, expected, node.type)


def qualified_name(node: Expr) -> str | None:
    """`a.b.c` as a name; None for any other expression."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        parts.append(node.name)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, Ident) else None


_RULES = {
    Literal: Checker._check_literal,
    Ident: Checker._check_ident,
    Select: Checker._check_select,
    Call: Checker._check_call,
    ListLiteral: Checker._check_list,
    MapLiteral: Checker._check_map,
    MessageLiteral: Checker._check_message,
    Comprehension: Checker._check_comprehension,
}
