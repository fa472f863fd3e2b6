"""Resource quantities: `100m`, `1.5`, `2Gi`, `1e3`.

Owns parsing a quantity to its exact value, rounding it to an integer, and its canonical text. Never depends on the
resource that a quantity is for.

Most callers use `value` and `milli_value`. `parse` gives the exact number, for sums that must be rounded only once, at
the end. `canonical_text` writes a quantity as upstream does.

Source: k8s.io/apimachinery/pkg/api/resource v0.36.2.
Differs: texts longer than 1024 characters and decimal exponents beyond ±4096 are refused; upstream computes with
them at any cost, or lets the exponent wrap around.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from typing import Final

from podium.lib.error_text import UserFacingError
from podium.objects.meta import RawQuantity

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

TEXT_LENGTH_MAX: Final = 1024
EXPONENT_MAX: Final = 4096
NANO: Final = -9
"""The finest power of ten that is kept."""

DIGITS_IN_INT64: Final = 18
"""Decimal numbers of at most this many digits are held as a scaled int64 upstream, longer ones as big decimals."""

WRAPPING_SHIFTS: Final = frozenset({1, 2, 3, 6, 9})
"""Powers of ten by which upstream multiplies in one step, where an overflow wraps; with others it gives 0."""

_TEXT = re.compile(
    r"(?P<sign>[+-]?)0*+(?P<whole>[0-9]*+)(?P<dot>\.(?P<fraction>[0-9]*+))?+(?P<suffix>[a-zA-Z]*+[+-]?[0-9]*+)"
)
_DIGIT = re.compile(r"[0-9]")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,9})")
_DECIMAL_EXPONENTS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_EXPONENTS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class QuantityError(UserFacingError, ValueError):
    """The text is not a quantity."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """`unscaled * 10**exponent`, exactly.

    `wide` is true if upstream holds the number as a big decimal. The two forms only differ in rounding negative
    numbers and in overflow.
    """

    unscaled: int
    exponent: int
    wide: bool

    @property
    def value(self) -> int:
        """The number rounded up to an integer, as an int64."""
        return self._int64_at(0)

    @property
    def milli_value(self) -> int:
        """The number in thousandths rounded up to an integer, as an int64."""
        return self._int64_at(-3)

    @property
    def nano_value(self) -> int:
        """The exact number in billionths, however large."""
        return self._unscaled_at(NANO) if self.unscaled else 0

    @property
    def approximate(self) -> float:
        """The number as a float, infinite if it is too large for one."""
        try:
            if self.exponent < 0:
                return self.unscaled / int(10**-self.exponent)
            return float(self._unscaled_at(0))
        except OverflowError:
            return math.copysign(math.inf, self.unscaled)

    @property
    def int64_as_written(self) -> int | None:
        """The integer if the text denotes one directly: `1k` does, `1.0` and `0.1Ki` do not."""
        if self.wide or not 0 <= self.exponent <= DIGITS_IN_INT64:
            return None
        number = self._unscaled_at(0)
        return number if INT64_MIN <= number <= INT64_MAX else None

    def __add__(self, other: Quantity) -> Quantity:
        """Return the exact sum."""
        if not self.wide and not other.wide:
            if not other.unscaled:
                return self
            if not self.unscaled:
                return other
        exponent = min(self.exponent, other.exponent)
        unscaled = self._unscaled_at(exponent) + other._unscaled_at(exponent)
        return Quantity(unscaled, exponent, self.wide or other.wide or not INT64_MIN <= unscaled <= INT64_MAX)

    def __gt__(self, other: Quantity) -> bool:
        """Return True if this number is greater, regardless of how the two are written."""
        exponent = min(self.exponent, other.exponent)
        return self._unscaled_at(exponent) > other._unscaled_at(exponent)

    def _unscaled_at(self, exponent: int) -> int:
        """Return the quantity in units of `10**exponent`, which must not be above its own exponent."""
        return self.unscaled * int(10 ** (self.exponent - exponent))

    def _int64_at(self, exponent: int) -> int:
        shift = exponent - self.exponent
        if self.wide:
            return _scale_wide(self.unscaled, shift)
        if shift <= 0:
            result = self._unscaled_at(exponent)
            if INT64_MIN <= result <= INT64_MAX:
                return result
            return _wrap(result) if -shift in WRAPPING_SHIFTS else 0
        magnitude = -(-abs(self.unscaled) // int(10**shift))
        return magnitude if self.unscaled >= 0 else -magnitude


def _scale_wide(unscaled: int, shift: int) -> int:
    """Divide a big decimal by `10**shift`, with upstream's rounding and wrap-around."""
    if shift <= 0:
        power = 10**-shift
        return _wrap(_wrap(unscaled) * (power if power <= INT64_MAX else INT64_MIN))
    divisor = int(10**shift)
    if unscaled < INT64_MAX and divisor <= INT64_MAX:
        narrow = _wrap(unscaled)
        quotient, remainder = divmod(abs(narrow), divisor)
        return (quotient if narrow >= 0 else -quotient) + (remainder != 0)
    return _wrap(-(-unscaled // divisor))


def _wrap(number: int) -> int:
    """Return the number's low 64 bits as an int64."""
    return (number - INT64_MIN) % 2**64 + INT64_MIN


@functools.lru_cache(maxsize=65536)
def parse(raw: RawQuantity) -> Quantity:
    """Parse a quantity to its exact value.

    Raises:
        QuantityError: `raw` is not a quantity.
    """
    text = raw if isinstance(raw, str) else repr(raw)
    if len(text) > TEXT_LENGTH_MAX:
        raise QuantityError(f"a quantity of {len(text)} characters is too long")
    match = _TEXT.fullmatch(text) if text else None
    if match is None:
        raise QuantityError(f'"{text}" is not a quantity such as 500m, 1.5, 2Gi or 1e3')
    sign = -1 if match["sign"] == "-" else 1
    # A zero stands in for missing digits, and counts as a digit.
    integer_part, fraction, suffix = match["whole"] or "0", match["fraction"] or "", match["suffix"]
    if suffix in _BINARY_EXPONENTS:
        quantity = _binary_quantity(sign, integer_part, fraction, _BINARY_EXPONENTS[suffix])
    else:
        quantity = _decimal_quantity(sign, integer_part, fraction, _decimal_exponent(text, suffix))
    if quantity.wide and not _DIGIT.search(text, 0, match.start("suffix")):
        raise QuantityError(f'"{text}" has no digits before its suffix')
    return quantity


def _decimal_exponent(text: str, suffix: str) -> int:
    exponent = _DECIMAL_EXPONENTS.get(suffix)
    if exponent is not None:
        return exponent
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise QuantityError(f'"{text}" has the unknown suffix "{suffix}"')
    exponent = int(match[1])
    if abs(exponent) > EXPONENT_MAX:
        raise QuantityError(f'"{text}" has an exponent beyond {EXPONENT_MAX}')
    return exponent


def _decimal_quantity(sign: int, integer_part: str, fraction: str, exponent: int) -> Quantity:
    unscaled = sign * int(integer_part + fraction)
    exponent -= len(fraction)
    if len(integer_part) + len(fraction) <= DIGITS_IN_INT64 and exponent >= NANO:
        return Quantity(unscaled, exponent, wide=False)
    return _to_nano(unscaled, exponent)


def _binary_quantity(sign: int, integer_part: str, fraction: str, exponent: int) -> Quantity:
    unscaled = sign * int(integer_part + fraction) << exponent
    # Upstream keeps it as an int64 if its digits and those of its power of two, about 3 for each 10 bits, are together
    # at most 14.
    if not fraction and len(integer_part) <= 14 - exponent * 3 // 10:
        return Quantity(unscaled, 0, wide=False)
    quantity = _to_nano(unscaled, -len(fraction))
    # Upstream caps larger ones.
    if abs(quantity.unscaled) > INT64_MAX * 10**9:
        return Quantity(sign * INT64_MAX, 0, wide=True)
    return quantity


def _to_nano(unscaled: int, exponent: int) -> Quantity:
    """Build a big decimal with nano precision, rounded away from zero."""
    if not unscaled:
        return Quantity(0, exponent, wide=True)
    if exponent >= NANO:
        return Quantity(unscaled * int(10 ** (exponent - NANO)), NANO, wide=True)
    magnitude = -(-abs(unscaled) // int(10 ** (NANO - exponent)))
    return Quantity(magnitude if unscaled > 0 else -magnitude, NANO, wide=True)


@functools.lru_cache(maxsize=65536)
def value(raw: RawQuantity) -> int:
    """Return a quantity rounded up to an integer: bytes of memory, number of pods, devices.

    Cost: one cached dictionary look-up for a text seen before.

    Raises:
        QuantityError: `raw` is not a quantity.
    """
    return parse(raw).value


@functools.lru_cache(maxsize=65536)
def milli_value(raw: RawQuantity) -> int:
    """Return a quantity in thousandths, rounded up: CPU time.

    Cost: one cached dictionary look-up for a text seen before.

    Raises:
        QuantityError: `raw` is not a quantity.
    """
    return parse(raw).milli_value


# ---------------------------------------------------------------- formatting


def quantity_format(raw: RawQuantity) -> str:
    """Return the format of a quantity's text: BinarySI, DecimalExponent or DecimalSI."""
    text = str(raw)
    if text.endswith("i"):
        return "BinarySI"
    return "DecimalExponent" if any(letter in text[:-1] for letter in "eE") else "DecimalSI"


def canonical_text(raw: RawQuantity) -> str:
    """Return the quantity as upstream writes it: `1` for `1000m`, `4Gi` for `4096Mi`, `500m` for `0.5`.

    Raises:
        QuantityError: `raw` is not a quantity.
    """
    return text_of(parse(raw), quantity_format(raw))


def text_of(quantity: Quantity, form: str) -> str:
    """Write a number as upstream does, in the format BinarySI, DecimalExponent or DecimalSI."""
    unscaled, exponent = quantity.unscaled, quantity.exponent
    if not unscaled:
        return "0"
    while unscaled % 10 == 0:
        unscaled, exponent = unscaled // 10, exponent + 1
    if form == "BinarySI" and exponent >= 0 and abs(number := unscaled * int(10**exponent)) >= 1024:
        units = iter(("", *_BINARY_EXPONENTS))
        unit = next(units)
        while number % 1024 == 0 and unit != "Ei":
            number, unit = number // 1024, next(units)
        return f"{number}{unit}"
    unscaled, exponent = unscaled * int(10 ** (exponent % 3)), exponent - exponent % 3
    suffix = _DECIMAL_SUFFIXES.get(exponent) if form != "DecimalExponent" else None
    if suffix is None:
        suffix = f"e{exponent}" if exponent else ""
    return f"{unscaled}{suffix}"
