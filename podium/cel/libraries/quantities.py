"""Kubernetes quantities.

Source: k8s.io/apiserver/pkg/cel v0.36.2. As upstream, `==` with a sum of quantities on its right side is an
error.
"""

from __future__ import annotations

from typing import ClassVar

from podium.cel.errors import EvaluationError
from podium.cel.functions import Overload, per_size
from podium.cel.types import QUANTITY, Type
from podium.cel.values import INT_MIN, Opaque
from podium.objects import quantity


class Quantity(Opaque):
    """The CEL value of a quantity."""

    __slots__ = ("amount", "is_sum")
    TYPE: ClassVar[Type] = QUANTITY

    def __init__(self, amount: quantity.Quantity, *, is_sum: bool = False) -> None:
        self.amount = amount
        self.is_sum = is_sum

    def equals(self, other: Quantity) -> bool:
        """Whether both have the same numeric value."""
        return _compare(self, other) == 0


def parse(text: str) -> Quantity:
    """Parse a quantity.

    Raises: EvaluationError.
    """
    try:
        return Quantity(quantity.parse(text))
    except quantity.QuantityError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except quantity.QuantityError:
        return False
    return True


def _compare(left: Quantity, right: Quantity) -> int:
    one, other = left.amount, right.amount
    if one.exponent == other.exponent:
        return (one.unscaled > other.unscaled) - (one.unscaled < other.unscaled)
    return (one > other) - (other > one)


def _sum(left: Quantity, right: Quantity) -> Quantity:
    return Quantity(left.amount + right.amount, is_sum=True)


def _difference(left: Quantity, right: Quantity) -> Quantity:
    amount = right.amount
    # Upstream negates an int64, so the negative of the smallest int64 is that number itself.
    unscaled = amount.unscaled if amount.unscaled == INT_MIN and not amount.wide else -amount.unscaled
    negative = quantity.Quantity(unscaled, amount.exponent, amount.wide)
    return Quantity(left.amount + negative, is_sum=True)


def _of(number: int) -> Quantity:
    return Quantity(quantity.Quantity(number, 0, wide=False))


def _as_integer(held: Quantity) -> int:
    number = held.amount.int64_as_written
    if number is None:
        raise EvaluationError("cannot convert value to integer")
    return number


def _as_float(held: Quantity) -> float:
    try:
        return float(held.amount.unscaled) * 10.0**held.amount.exponent
    except OverflowError:
        return float("inf") if held.amount.unscaled > 0 else float("-inf")


_PARSING = per_size(0.1, 0)

OVERLOADS = (
    Overload("string_to_quantity", "quantity(string) -> Quantity", parse, _PARSING),
    Overload("is_quantity_string", "isQuantity(string) -> bool", _is_quantity, _PARSING),
    Overload("quantity_sign", "sign(Quantity) -> int", lambda held: _compare(held, _of(0))),
    Overload("quantity_is_greater_than", "Quantity.isGreaterThan(Quantity) -> bool", lambda a, b: _compare(a, b) > 0),
    Overload("quantity_is_less_than", "Quantity.isLessThan(Quantity) -> bool", lambda a, b: _compare(a, b) < 0),
    Overload("quantity_compare_to", "Quantity.compareTo(Quantity) -> int", _compare),
    Overload("quantity_get_float", "Quantity.asApproximateFloat() -> double", _as_float),
    Overload("quantity_get_int", "Quantity.asInteger() -> int", _as_integer),
    Overload(
        "quantity_is_integer", "Quantity.isInteger() -> bool", lambda held: held.amount.int64_as_written is not None
    ),
    Overload("quantity_add", "Quantity.add(Quantity) -> Quantity", _sum),
    Overload("quantity_add_int", "Quantity.add(int) -> Quantity", lambda held, number: _sum(held, _of(number))),
    Overload("quantity_sub", "Quantity.sub(Quantity) -> Quantity", _difference),
    Overload("quantity_sub_int", "Quantity.sub(int) -> Quantity", lambda held, number: _difference(held, _of(number))),
)
