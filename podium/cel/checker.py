"""Determine the type of every subexpression, and the overloads that its calls may run.

Source: the type checker of cel-go 0.26.0 and 0.29.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from podium.cel import types
from podium.cel.environment import TYPE_NAMES, VARIABLES, fields_with
from podium.cel.errors import CompileError
from podium.cel.functions import Function
from podium.cel.lexer import place
from podium.cel.rules import SelectorRules
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
from podium.cel.types import Type
from podium.cel.unification import Substitutions, is_dynamic, is_plain, most_general, unwrap
from podium.cel.values import TypeValue, type_of

Scope: TypeAlias = Mapping[str, Type]
_LOGICAL = frozenset({"_&&_", "_||_"})


class Checker:
    """Checks one expression, in place.

    Args:
        text: the expression, for the positions of errors.
        functions: the functions of the environment, by name.
    """

    def __init__(self, text: str, functions: Mapping[str, Function], rules: SelectorRules) -> None:
        self._text = text
        self._has_leading_dots = rules.resolves_leading_dots
        self._fields = fields_with(rules)
        self._functions = functions
        self._types = Substitutions()
        self._resolved_calls: dict[tuple[str, bool, tuple[Type, ...]], tuple[list[str], Type, int]] = {}
        """The overloads, the result and the new type variables of calls whose types are plain: they bind no other."""

    def check(self, root: Expr) -> Type:
        """Determine the type of the expression. Raises: CompileError: the first type error."""
        self._check(root, VARIABLES)
        return root.type

    def resolve(self, node: Expr) -> Type:
        """Return the final type of a subexpression. Unbound type variables become dyn."""
        return self._types.resolve(node.type, unbound=types.DYN)

    def _fail(self, node: Expr, problem: str) -> CompileError:
        return CompileError(f"{place(self._text, node.position)}: {problem}")

    def _mismatch(self, node: Expr, expected_type: Type, actual: Type) -> CompileError:
        return self._fail(
            node, f"expected type '{expected_type}' but found '{self._types.resolve(actual, unbound=types.DYN)}'"
        )

    def _check(self, node: Expr, scope: Scope) -> None:
        node.type = _RULES[type(node)](self, node, scope)  # type: ignore[operator]

    def _check_literal(self, node: Literal, _scope: Scope) -> Type:
        return type_of(node.value)

    def _check_ident(self, node: Ident, scope: Scope) -> Type:
        name = node.name.removeprefix(".")
        is_global = name != node.name and self._has_leading_dots
        if not is_global:
            node.name = name
        variable_type = (VARIABLES if is_global else scope).get(name)
        if variable_type is not None:
            return variable_type
        named_type = TYPE_NAMES.get(name)
        if named_type is None or (is_global and name in scope):
            raise self._fail(node, f"undeclared reference to '{node.name}'")
        # A name of a type is a value as well: `type(x) == int`.
        node.constant = TypeValue(named_type)
        return types.type_of(named_type)

    def _check_select(self, node: Select, scope: Scope) -> Type:
        qualified = None if node.test_only else qualified_name(node)
        named_type = TYPE_NAMES.get(qualified.removeprefix(".")) if qualified else None
        if named_type is not None and qualified is not None and not self._is_hidden(qualified, scope):
            node.constant = TypeValue(named_type)
            return types.type_of(named_type)
        self._check(node.operand, scope)
        result = self._field_type(node, node.operand, node.name, optional=False)
        return types.BOOL if node.test_only else self._types.resolve(result)

    def _is_hidden(self, qualified: str, scope: Scope) -> bool:
        """Tell whether a variable hides the type of that name: its name is that of the first part."""
        return self._has_leading_dots and qualified.removeprefix(".").partition(".")[0] in scope

    def _field_type(self, node: Expr, operand: Expr, field: str, *, optional: bool) -> Type:
        target, was_optional = unwrap(self._types.resolve(operand.type))
        result = types.DYN
        if target.kind == "map":
            result = target.parameters[1]
        elif target.kind == "struct":
            fields = self._fields.get(target, {})
            if field not in fields:
                raise self._fail(node, f"undefined field '{field}'")
            result = fields[field]
        elif target.kind == "parameter":
            # A selection proves nothing about a variable's type but that it has fields.
            self._types.assignable(types.DYN, target)
        elif not is_dynamic(target):
            raise self._fail(node, f"type '{target}' does not support field selection")
        return types.optional_of(result) if optional or was_optional else result

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
        """Return the called function. `a.b(c)` calls the function `a.b` if it exists, else the member function `b`."""
        if node.target is None:
            return self._functions.get(node.function.removeprefix("."))
        prefix = qualified_name(node.target)
        # As cel-go: a qualified function is looked for first, as in `lists.range`.
        if prefix is not None:
            function = self._functions.get(f"{prefix}.{node.function}".removeprefix("."))
            if function is not None:
                node.target = None
                return function
        self._check(node.target, scope)
        return self._functions.get(node.function)

    def _resolve_overload(self, node: Call, function: Function) -> Type:
        if function.name in _LOGICAL:
            for argument in node.arguments:
                if not self._types.assignable(argument.type, types.BOOL):
                    raise self._mismatch(argument, types.BOOL, argument.type)
            return types.BOOL
        operands = [] if node.target is None else [node.target]
        arguments = tuple(argument.type for argument in operands + node.arguments)
        key = function.name, node.target is not None, arguments
        # A long sum is one call again and again, and trying every overload of it each time takes most of the work.
        if key in self._resolved_calls:
            overloads, result, variables = self._resolved_calls[key]
            node.overloads.extend(overloads)
            # Errors name variables by their numbers, which are upstream's.
            self._types.variables += variables
            return result
        variables_before = self._types.variables
        result = self._result_of(node, function, arguments)
        if all(map(is_plain, (*arguments, result))):
            self._resolved_calls[key] = list(node.overloads), result, self._types.variables - variables_before
        return result

    def _result_of(self, node: Call, function: Function, arguments: tuple[Type, ...]) -> Type:
        """Note the overloads that may apply to the arguments, and return the type of the result."""
        result: Type | None = None
        for overload in function.overloads:
            if overload.is_member != (node.target is not None):
                continue
            candidate, *expected_type = self._types.instantiate((overload.result, *overload.arguments))
            if not self._types.all_assignable(arguments, tuple(expected_type)):
                continue
            # All overloads that may apply stay: which of them runs is decided by the values.
            node.overloads.append(overload.id)
            candidate = self._types.resolve(candidate)
            if result is None:
                result = candidate
            # Several overloads with different results leave the type open until run time.
            elif not is_dynamic(result) and candidate != result:
                result = types.DYN
        if result is None:
            text = ", ".join(str(self._types.resolve(argument, unbound=types.DYN)) for argument in arguments)
            raise self._fail(node, f"found no matching overload for '{function.name}' applied to '({text})'")
        return result

    def _check_list(self, node: ListLiteral, scope: Scope) -> Type:
        element_type_of_all: Type | None = None
        for i, element in enumerate(node.elements):
            self._check(element, scope)
            element_type = self._unwrapped_element(element, optional=i in node.optional)
            element_type_of_all = self._join(element_type_of_all, element_type)
        return types.list_of(element_type_of_all or self._types.fresh())

    def _check_map(self, node: MapLiteral, scope: Scope) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            self._check(entry.key, scope)
            keys = self._join(keys, entry.key.type)
            self._check(entry.value, scope)
            values = self._join(values, self._unwrapped_element(entry.value, optional=entry.optional))
        if keys is None or values is None:
            return types.map_of(self._types.fresh(), self._types.fresh())
        return types.map_of(keys, values)

    def _unwrapped_element(self, element: Expr, *, optional: bool) -> Type:
        if not optional:
            return element.type
        value_type, was_optional = unwrap(element.type)
        if not was_optional and not is_dynamic(value_type):
            raise self._mismatch(element, types.optional_of(value_type), value_type)
        return value_type

    def _join(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        # Elements of different types are allowed, and make a list of dyn.
        return most_general(previous, current) if self._types.assignable(previous, current) else types.DYN

    def _check_message(self, node: MessageLiteral, _scope: Scope) -> Type:
        raise self._fail(node, f"messages such as '{node.name}{{}}' are not supported in device selectors")

    def _check_comprehension(self, node: Comprehension, scope: Scope) -> Type:
        self._check(node.iterated, scope)
        self._check(node.initial, scope)
        # The result sees the accumulator, but no longer the iteration variables.
        outer = {**scope, node.accumulator: node.initial.type}
        inner = {**outer, **self._iteration_types(node)}
        self._check(node.condition, inner)
        self._assert_type(node.condition, types.BOOL)
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
                    first, second = types.INT, first
            case "map":
                first, second = iterated.parameters
            case "dyn" | "parameter":
                self._types.assignable(types.DYN, iterated)
                first = second = types.DYN
            case _:
                problem = f"expression of type '{iterated}' cannot be range of a comprehension"
                raise self._fail(node.iterated, problem)
        variable_types = {node.variable: first}
        if node.second_variable is not None:
            variable_types[node.second_variable] = second
        return variable_types

    def _assert_type(self, node: Expr, expected_type: Type) -> None:
        if not self._types.assignable(expected_type, node.type):
            raise self._mismatch(node, expected_type, node.type)


def qualified_name(node: Expr) -> str | None:
    """Return `a.b.c` as a name; None for any other expression."""
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
