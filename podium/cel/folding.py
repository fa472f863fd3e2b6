"""Evaluate the constant parts of an expression at compile time: list and map literals, type names, and conversions
such as `duration("1h")`. If a conversion fails, the whole expression fails, even if it would never run that part.
"""

from __future__ import annotations

from podium.cel.environment import FUNCTIONS
from podium.cel.errors import CompileError, EvaluationError
from podium.cel.libraries.conversions import FUNCTIONS as CONVERSIONS
from podium.cel.syntax import Call, Comprehension, Expr, Ident, ListLiteral, Literal, MapLiteral, Select
from podium.cel.types import Type
from podium.cel.values import key_of

_INDEXING = frozenset({"_[_]", "_[?_]"})


def fold(node: Expr) -> Expr:
    """Return the expression with its constant parts replaced by literals. Raises: CompileError."""
    match node:
        case Ident() | Select() if node.constant is not None:
            return _literal(node.position, node.constant, node.type)
        case Select():
            node.operand = fold(node.operand)
        case Call():
            return _fold_call(node)
        case ListLiteral():
            node.elements = [fold(element) for element in node.elements]
            if not node.optional and all(isinstance(element, Literal) for element in node.elements):
                values = [element.value for element in node.elements if isinstance(element, Literal)]
                return _literal(node.position, values, node.type)
        case MapLiteral():
            return _fold_map(node)
        case Comprehension():
            node.iterated, node.initial = fold(node.iterated), fold(node.initial)
            node.step, node.result = fold(node.step), fold(node.result)
    return node


def _literal(position: int, value: object, of_type: Type) -> Literal:
    literal = Literal(position, value)
    literal.type = of_type
    return literal


def _fold_call(node: Call) -> Expr:
    if node.target is not None:
        node.target = fold(node.target)
    node.arguments = [fold(argument) for argument in node.arguments]
    if node.function == "@in" and node.overloads == ["in_list"] and _is_empty(node.arguments[1]):
        return _literal(node.position, False, node.type)
    if node.function in _INDEXING and not _may_index(node.arguments[1]):
        raise CompileError(f"program instantiation failed: invalid qualifier type: {node.arguments[1].type}")
    if node.target is not None or node.function not in CONVERSIONS or len(node.arguments) != 1:
        return node
    (argument,) = node.arguments
    if not isinstance(argument, Literal):
        return node
    try:
        overload = FUNCTIONS[node.function].for_values((argument.value,))
        return _literal(node.position, overload.run(argument.value), node.type)
    except EvaluationError as error:
        raise CompileError(f"program instantiation failed: {error}") from error


def _may_index(key: Expr) -> bool:
    return not isinstance(key, Literal) or isinstance(key.value, (str, int, float))


def _is_empty(node: Expr) -> bool:
    return isinstance(node, Literal) and node.value == []


def _fold_map(node: MapLiteral) -> Expr:
    for entry in node.entries:
        entry.key, entry.value = fold(entry.key), fold(entry.value)
    values = {}
    for entry in node.entries:
        key = key_of(entry.key.value) if isinstance(entry.key, Literal) else None
        if entry.optional or key is None or not isinstance(entry.value, Literal):
            return node
        values[key] = entry.value.value
    return _literal(node.position, values, node.type)
