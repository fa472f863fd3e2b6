"""The functions on regular expressions, with RE2's syntax and in linear time."""

from __future__ import annotations

import functools
from typing import Any

from podium.cel.errors import EvaluationError
from podium.cel.functions import Overload, ceiling
from podium.cel.regex import Pattern, PatternError, compile_pattern
from podium.cel.values import size_of


@functools.lru_cache(maxsize=256)
def pattern(text: str) -> Pattern:
    """Compile a pattern. Raises: EvaluationError."""
    try:
        return compile_pattern(text)
    except PatternError as error:
        raise EvaluationError(f"error parsing regexp: {error}") from None


def _matches(text: str, expression: str) -> bool:
    return pattern(expression).search(text)


def _find(text: str, expression: str) -> str:
    span = pattern(expression).find(text)
    return "" if span is None else text[slice(*span)]


def _find_all(text: str, expression: str, limit: int = -1) -> list[str]:
    return [text[slice(*span)] for span in pattern(expression).find_all(text, limit)]


def _cost(arguments: tuple[Any, ...], _result: Any) -> int:
    return ceiling((1 + size_of(arguments[0])) * 0.1) * ceiling(size_of(arguments[1]) * 0.25)


PATTERN_ARGUMENT = frozenset({"matches", "find", "findAll"})
"""The functions whose second argument is a pattern. A constant pattern is checked at compile time."""

OVERLOADS = (
    Overload("matches", "matches(string, string) -> bool", _matches),
    Overload("matches_string", "string.matches(string) -> bool", _matches, _cost),
    Overload("string_find_string", "string.find(string) -> string", _find, _cost),
    Overload("string_find_all_string", "string.findAll(string) -> list(string)", _find_all, _cost),
    Overload("string_find_all_string_int", "string.findAll(string, int) -> list(string)", _find_all, _cost),
)

CHARGED = (Overload("matches", "matches(string, string) -> bool", _matches, _cost),)
