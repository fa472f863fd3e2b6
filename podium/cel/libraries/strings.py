"""Strings. Positions and lengths count code points.

Source: the strings extension of cel-go 0.26.0 and 0.29.2, version 2.
"""

from __future__ import annotations

from typing import Any

from podium.cel.errors import EvaluationError
from podium.cel.functions import Overload, ceiling, per_size
from podium.cel.libraries.string_format import format_string
from podium.cel.values import SIZE_MAX, check_size, size_of

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_UPPER = {i: i - 32 for i in range(ord("a"), ord("z") + 1)}
_LOWER = {i: i + 32 for i in range(ord("A"), ord("Z") + 1)}
_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return text.find(part, offset) if offset < len(text) else -1


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def _last_index_before(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


def _checked_index_of(text: str, part: str, offset: int) -> int:
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return _index_of(text, part, min(offset, len(text)))


def _checked_last_index_before(text: str, part: str, offset: int) -> int:
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return _last_index_before(text, part, min(offset, len(text)))


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    occurrences = len(text) + 1 if not old else text.count(old)
    if count >= 0:
        occurrences = min(occurrences, count)
    if len(text) + occurrences * len(new) > 2 * SIZE_MAX:
        raise EvaluationError("the result of replace() is too long")
    return check_size(text.replace(old, new, occurrences)) if occurrences else text


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if not separator:
        return list(text) if count < 0 or count >= len(text) else [*text[: count - 1], text[count - 1 :]]
    return text.split(separator) if count < 0 else text.split(separator, count - 1)


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    return text[start:]


def _substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise EvaluationError(f"index out of range: {index}")
    return text[start:end]


def _join(parts: list[Any], separator: str = "") -> str:
    for part in parts:
        if type(part) is not str:
            raise EvaluationError("join: invalid input")
    if sum(map(len, parts)) + len(parts) * len(separator) > 2 * SIZE_MAX:
        raise EvaluationError("the result of join() is too long")
    return str(check_size(separator.join(parts)))


def _quote(text: str) -> str:
    return str(check_size(f'"{text.translate(_QUOTED)}"'))


def _contains_cost(arguments: tuple[Any, ...], _result: Any) -> int:
    return ceiling(size_of(arguments[0]) * 0.1) * ceiling(size_of(arguments[1]) * 0.1)


def _join_cost(_arguments: tuple[Any, ...], result: Any) -> int:
    return ceiling(len(result) * 0.2)


def traversal_cost(value: Any) -> int:
    """Return the cost of traversing a value with everything it contains."""
    if isinstance(value, (str, bytes)):
        length = len(value.encode()) if isinstance(value, str) else len(value)
        return int(length * 0.1)
    if isinstance(value, list):
        return sum(map(traversal_cost, value))
    if isinstance(value, dict):
        return sum(traversal_cost(key) + traversal_cost(member) for key, member in value.items())
    return 1


def traversing(arguments: tuple[Any, ...], _result: Any) -> int:
    """Return the cost of a call that traverses its first argument."""
    return traversal_cost(arguments[0])


_ONCE, _TWICE = per_size(0.1, 0), per_size(0.2, 0)

OVERLOADS = (
    Overload("contains_string", "string.contains(string) -> bool", lambda text, part: part in text, _contains_cost),
    Overload("ends_with_string", "string.endsWith(string) -> bool", str.endswith, _ONCE),
    Overload("starts_with_string", "string.startsWith(string) -> bool", str.startswith, _ONCE),
    Overload("string_char_at_int", "string.charAt(int) -> string", _char_at),
    Overload("string_index_of_string", "string.indexOf(string) -> int", _index_of, traversing),
    Overload("string_index_of_string_int", "string.indexOf(string, int) -> int", _index_of, traversing),
    Overload("string_last_index_of_string", "string.lastIndexOf(string) -> int", _last_index_of, traversing),
    Overload(
        "string_last_index_of_string_int", "string.lastIndexOf(string, int) -> int", _last_index_before, traversing
    ),
    Overload("string_lower_ascii", "string.lowerAscii() -> string", lambda text: text.translate(_LOWER), _ONCE),
    Overload("string_upper_ascii", "string.upperAscii() -> string", lambda text: text.translate(_UPPER), _ONCE),
    Overload("string_replace_string_string", "string.replace(string, string) -> string", _replace, _TWICE),
    Overload("string_replace_string_string_int", "string.replace(string, string, int) -> string", _replace, _TWICE),
    Overload("string_split_string", "string.split(string) -> list(string)", _split, _TWICE),
    Overload("string_split_string_int", "string.split(string, int) -> list(string)", _split, _TWICE),
    Overload("string_substring_int", "string.substring(int) -> string", _substring, _ONCE),
    Overload("string_substring_int_int", "string.substring(int, int) -> string", _substring_range, _ONCE),
    Overload("string_trim", "string.trim() -> string", lambda text: text.strip(_SPACE), _ONCE),
    Overload("list_join", "list(string).join() -> string", _join, _join_cost, postpaid=True),
    Overload("list_join_string", "list(string).join(string) -> string", _join, _join_cost, postpaid=True),
    Overload("strings_quote", "strings::quote(string) -> string", _quote, _ONCE),
    Overload("string_format", "string.format(list(dyn)) -> string", format_string, _ONCE),
)

CHECKED = (
    Overload("string_index_of_string_int", "string.indexOf(string, int) -> int", _checked_index_of, traversing),
    Overload(
        "string_last_index_of_string_int",
        "string.lastIndexOf(string, int) -> int",
        _checked_last_index_before,
        traversing,
    ),
)
CHARGED = (
    Overload("ends_with_string", "string.endsWith(string) -> bool", str.endswith, per_size(0.1, 1)),
    Overload("starts_with_string", "string.startsWith(string) -> bool", str.startswith, per_size(0.1, 1)),
)
