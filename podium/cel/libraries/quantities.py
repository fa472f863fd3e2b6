"""Kubernetes quantities, over the numbers of the caller's own parser.

Source: k8s.io/apiserver/pkg/cel v0.36.2. As upstream, `==` with a sum of quantities on its right side is an
error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol, Self, TypeAlias

from podium.cel.errors import EvaluationError
from podium.cel.functions import Overload, per_size
from podium.cel.types import QUANTITY, Type
from podium.cel.values import INT_MAX, INT_MIN, Opaque


class Number(Protocol):
    """The exact number of a quantity, `unscaled * 10**exponent`."""

    def __init__(self, unscaled: int, exponent: int, wide: bool) -> None: ...

    @property
    def unscaled(self) -> int:
        """The number without its power of ten."""

    @property
    def exponent(self) -> int:
        """The power of ten."""

    @property
    def wide(self) -> bool:
        """Upstream holds the number as a big decimal."""

    @property
    def int64_as_written(self) -> int | None:
        """The integer if the text denotes one directly: `1k` does, `1.0` and `0.1Ki` do not."""

    def __add__(self, addend: Self, /) -> Self: ...

    def __gt__(self, operand: Self, /) -> bool: ...


ParseQuantity: TypeAlias = Callable[[str], Number]
"""Parses the text of a quantity. Raises: ValueError."""


class Quantity(Opaque):
    """The CEL value of a quantity."""

    __slots__ = ("amount", "is_sum")
    TYPE: ClassVar[Type] = QUANTITY

    def __init__(self, amount: Number, *, is_sum: bool = False) -> None:
        self.amount = amount
        self.is_sum = is_sum

    def equals(self, value: Quantity) -> bool:
        """Tell whether both have the same numeric value."""
        return _compare(self, value) == 0


def _compare(lhs: Quantity, rhs: Quantity) -> int:
    a, b = lhs.amount, rhs.amount
    # Most quantities of a kind are written alike, and then integers are compared.
    if a.exponent == b.exponent:
        return (a.unscaled > b.unscaled) - (a.unscaled < b.unscaled)
    return (a > b) - (b > a)


def _sum(lhs: Quantity, rhs: Quantity) -> Quantity:
    return Quantity(lhs.amount + rhs.amount, is_sum=True)


def _difference(lhs: Quantity, rhs: Quantity) -> Quantity:
    minuend, subtrahend = lhs.amount, rhs.amount
    is_smallest = subtrahend.unscaled == INT_MIN and not subtrahend.wide
    # Upstream negates an int64, so the negative of the smallest int64 is that number itself; not so with big decimals.
    if is_smallest and _adds_int64(minuend, subtrahend):
        return Quantity(minuend + subtrahend, is_sum=True)
    negative = type(subtrahend)(-subtrahend.unscaled, subtrahend.exponent, subtrahend.wide or is_smallest)
    return Quantity(minuend + negative, is_sum=True)


def _adds_int64(lhs: Number, rhs: Number) -> bool:
    """Return whether upstream adds the two as int64, `rhs` being the smallest of them."""
    if lhs.wide or not lhs.unscaled or lhs.exponent < rhs.exponent:
        return not (lhs.wide or lhs.unscaled)
    return 0 <= lhs.unscaled * int(10 ** (lhs.exponent - rhs.exponent)) <= INT_MAX


def _from_int(number: int, sample: Quantity) -> Quantity:
    """Convert an integer to a quantity of the same kind of number as the sample's."""
    return Quantity(type(sample.amount)(number, 0, wide=False))


def _as_integer(value: Quantity) -> int:
    number = value.amount.int64_as_written
    if number is None:
        raise EvaluationError("cannot convert value to integer")
    return number


def _as_float(value: Quantity) -> float:
    try:
        return float(value.amount.unscaled) * 10.0**value.amount.exponent
    except OverflowError:
        return float("inf") if value.amount.unscaled > 0 else float("-inf")


_PARSING = per_size(0.1, 0)


def parsing_overloads(parse: ParseQuantity) -> tuple[Overload, ...]:
    """Return the overloads that read the text of a quantity."""

    def convert(text: str) -> Quantity:
        try:
            return Quantity(parse(text))
        except ValueError as error:
            raise EvaluationError(str(error)) from None

    def is_quantity(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return (
        Overload("string_to_quantity", "quantity(string) -> Quantity", convert, _PARSING),
        Overload("is_quantity_string", "isQuantity(string) -> bool", is_quantity, _PARSING),
    )


OVERLOADS = (
    Overload(
        "quantity_sign",
        "sign(Quantity) -> int",
        lambda value: (value.amount.unscaled > 0) - (value.amount.unscaled < 0),
    ),
    Overload("quantity_is_greater_than", "Quantity.isGreaterThan(Quantity) -> bool", lambda a, b: _compare(a, b) > 0),
    Overload("quantity_is_less_than", "Quantity.isLessThan(Quantity) -> bool", lambda a, b: _compare(a, b) < 0),
    Overload("quantity_compare_to", "Quantity.compareTo(Quantity) -> int", _compare),
    Overload("quantity_get_float", "Quantity.asApproximateFloat() -> double", _as_float),
    Overload("quantity_get_int", "Quantity.asInteger() -> int", _as_integer),
    Overload(
        "quantity_is_integer", "Quantity.isInteger() -> bool", lambda value: value.amount.int64_as_written is not None
    ),
    Overload("quantity_add", "Quantity.add(Quantity) -> Quantity", _sum),
    Overload(
        "quantity_add_int", "Quantity.add(int) -> Quantity", lambda value, number: _sum(value, _from_int(number, value))
    ),
    Overload("quantity_sub", "Quantity.sub(Quantity) -> Quantity", _difference),
    Overload(
        "quantity_sub_int",
        "Quantity.sub(int) -> Quantity",
        lambda value, number: _difference(value, _from_int(number, value)),
    ),
)
