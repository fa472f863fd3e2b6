"""Resolves unquoted YAML scalars as Kubernetes' own YAML library does.

That library knows YAML 1.1 booleans, octal, binary, hexadecimal and underscored integers; no sexagesimals and no dates.

Source: goyaml.v2 resolve.go, by way of sigs.k8s.io/yaml.
Differs: a number of more than 1,000 digits is text; upstream reads such numbers below 1e308 as floats.
"""

from __future__ import annotations

import math
import re
from typing import Final, TypeAlias

Scalar: TypeAlias = bool | int | float | str | None

DIGITS_MAX: Final = 1000
"""Python refuses to print longer integers, and no field accepts one."""

_CONSTANTS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_FIRST_OF_NUMBERS: Final = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def resolve_plain(text: str) -> Scalar:
    """Return null, a boolean, an integer, a float, or the text itself; infinity and not-a-number stay text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _FIRST_OF_NUMBERS or len(text) > DIGITS_MAX:
        return text
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits):
        return _integer(digits)
    if _FLOAT.fullmatch(digits) and math.isfinite(number := float(digits)):
        return _json_number(number)
    return text


def is_not_finite(text: str) -> bool:
    """Return whether an unquoted scalar is YAML's infinity or not-a-number, which JSON does not have."""
    return _NOT_FINITE.fullmatch(text) is not None


def _integer(digits: str) -> int:
    sign, digits = (-1, digits[1:]) if digits[0] == "-" else (1, digits.lstrip("+"))
    if len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567":
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def _json_number(value: float) -> int | float:
    """Return a whole float as an integer, as JSON does: ``16.0`` and ``1e3`` are accepted for an int32."""
    return int(value) if value.is_integer() and abs(value) < 1e21 else value
