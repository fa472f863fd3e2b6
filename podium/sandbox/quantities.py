"""Parses resource quantities into exact fractions, adds them, and writes them in canonical form.

Source: apimachinery pkg/api/resource/quantity.go (v0.36).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum, auto
from fractions import Fraction

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,3}))?", re.ASCII)
_BINARY = {prefix + "i": 1024**power for power, prefix in enumerate("KMGTPE", start=1)}
_DECIMAL = {
    prefix: Fraction(10) ** (3 * power)
    for power, prefix in zip((-3, -2, -1, 1, 2, 3, 4, 5, 6), "numkMGTPE", strict=True)
}
_EXPONENTS = dict(zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True))
_NANO = _DECIMAL["n"]


def parse_quantity(value: object) -> Fraction:
    """Parse a quantity such as `100m`, `1.5`, `1Ki` or `1E3`.

    Raises:
        ValueError: the value is not a quantity.
    """
    is_number_like = isinstance(value, str | int | float) and not isinstance(value, bool)
    match = _QUANTITY.fullmatch(str(value)) if is_number_like else None
    if match is None:
        raise ValueError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    number, binary, decimal, exponent = match.groups()
    scale = Fraction(1)
    if binary:
        scale = Fraction(_BINARY[binary])
    elif decimal:
        scale = _DECIMAL[decimal]
    elif exponent:
        scale = Fraction(10) ** int(exponent)
    return Fraction(number) * scale


def canonical_text(value: object) -> str:
    """Return a quantity as the API server writes it.

    Raises:
        ValueError: the value is not a quantity.
    """
    return _text(parse_quantity(value), _form_of(value))


def sum_text(values: Iterable[object]) -> str:
    """Return the sum of quantities, in the form of the first that is not zero.

    Raises:
        ValueError: one of the values is not a quantity.
    """
    total, form = Fraction(0), _Form.DECIMAL
    for value in values:
        if not total:
            form = _form_of(value)
        total += parse_quantity(value)
    return _text(total, form)


class _Form(Enum):
    """The form in which a quantity is written: with a suffix of 1000 or 1024, or with an exponent."""

    DECIMAL = auto()
    BINARY = auto()
    EXPONENT = auto()


def _form_of(value: object) -> _Form:
    text = str(value)
    if text.endswith("i"):
        return _Form.BINARY
    return _Form.EXPONENT if re.search(r"[eE][+-]?\d", text) else _Form.DECIMAL


def _text(amount: Fraction, form: _Form) -> str:
    """Return an amount with the largest suffix that leaves a whole number. Binary suffixes start at 1024."""
    if form is _Form.BINARY and abs(amount) >= 1024 and amount.denominator == 1:
        scales = {"": Fraction(1)} | {prefix: Fraction(scale) for prefix, scale in _BINARY.items()}
    else:
        scales = {"": Fraction(1)} | _DECIMAL
        amount = -(-amount // _NANO) * _NANO  # Fractions of a nano-unit are rounded up.
    if not amount:
        return "0"
    exact_scales = [(scale, prefix) for prefix, scale in scales.items() if (amount / scale).denominator == 1]
    scale, prefix = max(exact_scales)
    if form is _Form.EXPONENT and prefix:
        prefix = f"e{_EXPONENTS[prefix]}"
    return f"{amount / scale}{prefix}"
