"""Check an expression beyond its types: literals of mixed types, and constants that cannot be parsed.

Source: the validators that Kubernetes' environments use, and those of the strings extension of cel-go 0.26.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from podium.cel.checker import Checker
from podium.cel.errors import CompileError, EvaluationError
from podium.cel.lexer import place
from podium.cel.libraries import regexes, times
from podium.cel.libraries.string_format import clauses, takes
from podium.cel.syntax import Call, Expr, ListLiteral, Literal, MapLiteral, children
from podium.cel.types import Type, is_optional

_READERS: dict[str, Callable[[str], object]] = {"duration": times.parse_duration, "timestamp": times.parse_timestamp}


def check_literals(root: Expr, checker: Checker, text: str) -> None:
    """Check a whole expression after type checking. Raises: CompileError."""
    pending = [(root, False)]
    while pending:
        node, in_format = pending.pop()
        try:
            _check(node, checker, in_format=in_format)
        except EvaluationError as error:
            raise CompileError(f"{place(text, node.position)}: {error}") from error
        in_format = in_format or _is_format(node)
        pending.extend((child, in_format) for child in children(node))


def _check(node: Expr, checker: Checker, *, in_format: bool) -> None:
    match node:
        case ListLiteral() if not in_format:
            _check_alike(
                _element_type(checker, element, optional=i in node.optional) for i, element in enumerate(node.elements)
            )
        case MapLiteral() if not in_format:
            _check_alike(checker.resolve(entry.key) for entry in node.entries)
            _check_alike(_element_type(checker, entry.value, optional=entry.optional) for entry in node.entries)
        case Call():
            _check_call(node, checker)


def _check_call(node: Call, checker: Checker) -> None:
    values = ([] if node.target is None else [node.target]) + node.arguments
    constants = [argument.value if isinstance(argument, Literal) else None for argument in values]
    if node.function in _READERS and len(values) == 1 and isinstance(constants[0], str):
        _READERS[node.function](constants[0])
    elif node.function == "matches" and node.target is None and isinstance(constants[0], str):
        # Here upstream checks the first argument, the text, as if it were the pattern. The pattern is checked later.
        regexes.pattern(constants[0])
    if node.function in regexes.PATTERN_ARGUMENT and len(values) > 1 and isinstance(constants[1], str):
        regexes.pattern(constants[1])
    elif _is_format(node) and isinstance(constants[0], str) and isinstance(node.arguments[0], ListLiteral):
        _check_format(constants[0], node.arguments[0].elements, checker)


def _is_format(node: Expr) -> bool:
    return isinstance(node, Call) and node.function == "format" and node.target is not None and len(node.arguments) == 1


def _element_type(checker: Checker, element: Expr, *, optional: bool) -> Type:
    element_type = checker.resolve(element)
    return element_type.parameters[0] if optional and is_optional(element_type) else element_type


def _check_alike(types: Iterable[Type]) -> None:
    first: Type | None = None
    for element_type in types:
        first = first or element_type
        if element_type != first:
            raise EvaluationError(f"expected type '{first}' but found '{element_type}'")


def _check_format(template: str, arguments: list[Expr], checker: Checker) -> None:
    verbs = [clause.verb for clause in clauses(template) if clause.verb]
    for verb, argument in zip(verbs, arguments, strict=False):
        mismatch = _mismatch(verb, argument, checker)
        if mismatch is not None:
            raise EvaluationError(f"error during formatting: %{verb} does not take {mismatch}")
    if len(verbs) != len(arguments):
        raise EvaluationError(f"string.format takes {len(verbs)} arguments here, got {len(arguments)}")


def _mismatch(verb: str, argument: Expr, checker: Checker) -> Type | None:
    """Return the argument's type if the verb refuses it, else None. `%s` also checks the elements of literals."""
    argument_type = checker.resolve(argument)
    if not takes(verb, argument_type):
        return argument_type
    if verb == "s" and isinstance(argument, (ListLiteral, MapLiteral)):
        for child in children(argument):
            mismatch = _mismatch(verb, child, checker)
            if mismatch is not None:
                return mismatch
    return None
