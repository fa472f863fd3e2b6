"""Parse resource quantities, to refuse malformed ones, to compare and add amounts, and write amounts canonically.

Source: apimachinery pkg/api/resource/quantity.go (v0.36).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,3}))?", re.ASCII)
_BINARY = {prefix + "i": 1024**power for power, prefix in enumerate("KMGTPE", start=1)}
_DECIMAL = {
    prefix: Fraction(10) ** (3 * power)
    for power, prefix in zip((-3, -2, -1, 1, 2, 3, 4, 5, 6), "numkMGTPE", strict=True)
}
_LEAST = _DECIMAL["n"]


def parse_quantity(value: object) -> Fraction:
    """Parse a quantity such as `100m`, `1.5`, `1Ki` or `1E3`.

    Raises:
        ValueError: the value is not a quantity.
    """
    number_like = isinstance(value, str | int | float) and not isinstance(value, bool)
    found = _QUANTITY.fullmatch(str(value)) if number_like else None
    if found is None:
        raise ValueError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    number, binary, decimal, exponent = found.groups()
    scale = Fraction(1)
    if binary:
        scale = Fraction(_BINARY[binary])
    elif decimal:
        scale = _DECIMAL[decimal]
    elif exponent:
        scale = Fraction(10) ** int(exponent)
    return Fraction(number) * scale


def canonical_text(value: object) -> str:
    """A quantity as the API server writes it.

    Raises:
        ValueError: the value is not a quantity.
    """
    return quantity_text(parse_quantity(value), is_binary=_is_binary(value))


def sum_text(values: Iterable[object]) -> str:
    """The sum of quantities, in the form of the first that is not zero.

    Raises:
        ValueError: one of the values is not a quantity.
    """
    total, is_binary = Fraction(0), False
    for value in values:
        if not total:
            is_binary = _is_binary(value)
        total += parse_quantity(value)
    return quantity_text(total, is_binary=is_binary)


def quantity_text(amount: Fraction, *, is_binary: bool) -> str:
    """An amount with the largest suffix that leaves a whole number; in powers of 1024 only from 1024 on."""
    if is_binary and abs(amount) >= 1024 and amount.denominator == 1:
        scales = [(name, Fraction(scale)) for name, scale in _BINARY.items()]
        scales.insert(0, ("", Fraction(1)))
    else:
        scales = [*((prefix, scale) for prefix, scale in _DECIMAL.items() if scale < 1), ("", Fraction(1))]
        scales += [(prefix, scale) for prefix, scale in _DECIMAL.items() if scale > 1]
        amount = -(-amount // _LEAST) * _LEAST  # Smaller parts are rounded up.
    if not amount:
        return "0"
    suffix, scale = next(pair for pair in reversed(scales) if (amount / pair[1]).denominator == 1)
    return f"{amount / scale}{suffix}"


def _is_binary(value: object) -> bool:
    return isinstance(value, str) and value.endswith("i")
