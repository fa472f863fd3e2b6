"""Parse resource quantities, to refuse malformed ones and to compare requests with limits."""

from __future__ import annotations

import re
from fractions import Fraction

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,3}))?", re.ASCII)
_BINARY = {prefix + "i": 1024**power for power, prefix in enumerate("KMGTPE", start=1)}
_DECIMAL = {
    prefix: Fraction(10) ** (3 * power)
    for power, prefix in zip((-3, -2, -1, 1, 2, 3, 4, 5, 6), "numkMGTPE", strict=True)
}


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
