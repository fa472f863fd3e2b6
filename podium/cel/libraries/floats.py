"""Format and parse doubles as Go does."""

from __future__ import annotations

import math
import re

from podium.cel.errors import EvaluationError

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_SPECIAL = re.compile(r"[+-]?(?:inf|infinity)|nan", re.IGNORECASE)
_UNDERSCORE = re.compile(r"(?<=[0-9])_(?=[0-9])")
_LENGTH_MAX = 4096


def parse_double(text: str) -> float:
    """Parse a double. Raises: EvaluationError."""
    number = math.nan
    text = _UNDERSCORE.sub("", text)
    if len(text) > _LENGTH_MAX:
        raise EvaluationError("type conversion error from 'string' to 'double'")
    if _SPECIAL.fullmatch(text):
        return float(text)
    if _DECIMAL.fullmatch(text):
        number = float(text)
    elif _HEXADECIMAL.fullmatch(text):
        try:
            number = float.fromhex(text)
        except OverflowError:
            number = math.inf
    if not math.isfinite(number):
        raise EvaluationError("type conversion error from 'string' to 'double'")
    return number


def format_double(number: float) -> str:
    """Return the shortest text of a double, with an exponent below 10^-4 and from 10^6 on."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
    sign, digits, exponent = _shortest(number)
    if exponent < -4 or exponent >= 6:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + _plain(digits, exponent)


def format_plain(number: float) -> str:
    """Return the shortest text of a finite double, never with an exponent."""
    sign, digits, exponent = _shortest(number)
    return sign + _plain(digits, exponent)


def _shortest(number: float) -> tuple[str, str, int]:
    """Return the sign, the digits, and the exponent of the first digit."""
    mantissa, _, exponent = f"{abs(number)!r}".partition("e")
    integer, _, fraction = mantissa.partition(".")
    digits = integer + fraction.removesuffix("0" if fraction == "0" else "")
    significant = digits.lstrip("0")
    sign = "-" if math.copysign(1, number) < 0 else ""
    if not significant:
        return sign, "0", 0
    first = len(integer) - 1 - (len(digits) - len(significant)) + int(exponent or 0)
    return sign, significant.rstrip("0") or "0", first


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    integer = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{integer}.{digits[exponent + 1 :]}" if len(digits) > exponent + 1 else integer
