"""The function `format` of strings.

Source: the first version of string.format in cel-go 0.26.0.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from podium.cel.errors import EvaluationError
from podium.cel.libraries.floats import format_double
from podium.cel.libraries.times import format_duration, format_timestamp
from podium.cel.types import Type
from podium.cel.values import Duration, Timestamp, TypeValue, UInt, check_size, from_key, type_name, walk

_CLAUSE = re.compile(r"%(?:(%)|(?:\.([0-9]+))?([sdfebxXo]))")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_PRECISION_DEFAULT, _PRECISION_MAX = 6, 1000
_STRING_KINDS = frozenset(
    {"list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"}
)
KINDS: dict[str, frozenset[str]] = {
    "s": _STRING_KINDS,
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "X": frozenset({"int", "uint", "string", "bytes"}),
    "o": frozenset({"int", "uint"}),
}
"""The kinds of types that each verb accepts."""


class Clause(NamedTuple):
    """A verb of a format string with the text before it. The last clause has no verb."""

    text: str
    verb: str
    precision: int


def clauses(template: str) -> Iterator[Clause]:
    """Split a format string into clauses. Raises: EvaluationError: the format string is not valid."""
    text, position = "", 0
    while (percent := template.find("%", position)) >= 0:
        text += template[position:percent]
        match = _CLAUSE.match(template, percent)
        if match is None:
            raise EvaluationError("could not parse formatting clause")
        position = match.end()
        if match[1]:
            text += "%"
            continue
        precision = match[2] or str(_PRECISION_DEFAULT)
        # Four digits at most, since int() of a text of any length takes long.
        if len(precision) > 4 or int(precision) > _PRECISION_MAX:
            raise EvaluationError(f"precision {precision} is larger than the limit of {_PRECISION_MAX}")
        yield Clause(text, match[3], int(precision))
        text = ""
    yield Clause(text + template[position:], "", 0)


def format_string(template: str, arguments: list[Any]) -> str:
    """Replace the verbs of a format string by the arguments.

    Raises: EvaluationError: there are too few arguments, or one has the wrong type.
    """
    parts = []
    values = iter(arguments)
    for clause in clauses(template):
        parts.append(clause.text)
        if clause.verb:
            try:
                argument = next(values)
            except StopIteration:
                raise EvaluationError(f"index {len(arguments)} out of range") from None
            parts.append(_VERBS[clause.verb](argument, clause.precision))
    # Checked as a whole: each verb may multiply the length of its argument.
    return str(check_size("".join(parts)))


def takes(verb: str, kind: Type) -> bool:
    """Tell whether a verb accepts values of this type, as far as the type checker knows."""
    return kind.kind == "dyn" or kind.kind in KINDS[verb]


def _mismatch_error(verb: str, value: Any) -> EvaluationError:
    return EvaluationError(f"error during formatting: %{verb} does not take {type_name(value)}")


def text_of(value: Any) -> str:
    """Format a value as %s does.

    Raises: EvaluationError: the value has one of Kubernetes' own types, or is an optional.
    """
    write = _WRITERS.get(dict if isinstance(value, dict) else type(value))
    if write is None:
        raise _mismatch_error("s", value)
    return write(value)


def decode(value: bytes) -> str:
    """Decode bytes to a string. Raises: EvaluationError: the bytes are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _list_text(values: list[Any]) -> str:
    walk(values)
    return f"[{', '.join(map(_nested_text, values))}]"


def _map_text(mapping: dict[Any, Any]) -> str:
    walk(mapping.values())
    # As upstream, sorted by key, so that the text does not depend on the order of insertion.
    pairs = sorted((_nested_text(from_key(key)), _nested_text(value)) for key, value in mapping.items())
    return "{" + ", ".join(f"{key}:{value}" for key, value in pairs) + "}"


_WRITERS: dict[type, Callable[[Any], str]] = {
    str: str,
    bool: lambda value: "true" if value else "false",
    int: str,
    UInt: int.__repr__,
    float: format_double,
    type(None): lambda _value: "null",
    bytes: decode,
    Timestamp: format_timestamp,
    Duration: format_duration,
    TypeValue: lambda value: value.type.name,
    list: _list_text,
    dict: _map_text,
}


def _nested_text(value: Any) -> str:
    """Format a value within a list or a map, as a literal."""
    match value:
        case str():
            return _quote(value)
        case bytes():
            return "b" + _quote(text_of(value))
        case bool():
            return text_of(value)
        case float():
            return _plain_decimal(value, _PRECISION_DEFAULT) if math.isfinite(value) else f'"{format_double(value)}"'
        case Timestamp():
            return f"timestamp({_quote(format_timestamp(value))})"
        case Duration():
            return f"duration({_quote(format_duration(value))})"
    return text_of(value)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _decimal(value: Any, _precision: int) -> str:
    if type(value) is int or type(value) is UInt:
        return str(int(value))
    raise _mismatch_error("d", value)


def _number(value: Any, verb: str) -> float:
    if type(value) is float:
        return value
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    raise _mismatch_error(verb, value)


def _special(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


def _plain_decimal(number: float, precision: int) -> str:
    # Through Decimal: Python's format of floats would be in scientific notation for large ones.
    return f"{Decimal(number):.{precision}f}"


def _fixed_point(value: Any, precision: int) -> str:
    number = _number(value, "f")
    return f"{number:,.{precision}f}" if math.isfinite(number) else _special(number)


def _scientific(value: Any, precision: int) -> str:
    number = _number(value, "e")
    if not math.isfinite(number):
        return _special(number)
    mantissa, _, exponent = f"{number:.{precision}e}".partition("e")
    # cel-go formats scientific notation for people, with narrow spaces and superscripts.
    return f"{mantissa}\u202f×\u202f10{exponent.translate(_SUPERSCRIPT)}"


_SUPERSCRIPT = str.maketrans("+-0123456789", "\u207a\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def _binary(value: Any, _precision: int) -> str:
    # Only %b accepts bools, for which Python's format as a number fits.
    if isinstance(value, int):
        return f"{int(value):b}"
    raise _mismatch_error("b", value)


def _octal(value: Any, _precision: int) -> str:
    if type(value) is int or type(value) is UInt:
        return f"{int(value):o}"
    raise _mismatch_error("o", value)


def _hexadecimal(value: Any, _precision: int) -> str:
    if isinstance(value, (str, bytes)):
        return (value.encode() if isinstance(value, str) else value).hex()
    if type(value) is int or type(value) is UInt:
        return f"{int(value):x}"
    raise _mismatch_error("x", value)


_VERBS: dict[str, Callable[[Any, int], str]] = {
    "s": lambda value, _precision: text_of(value),
    "d": _decimal,
    "f": _fixed_point,
    "e": _scientific,
    "b": _binary,
    "x": _hexadecimal,
    "X": lambda value, precision: _hexadecimal(value, precision).upper(),
    "o": _octal,
}
