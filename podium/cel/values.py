"""CEL values and their equality.

bool, int, float, str, bytes, None, list and dict represent themselves. A dict stores bool keys as `BoolKey`. Values
are shared and must not be changed.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from podium.cel import types
from podium.cel.errors import EvaluationError
from podium.cel.types import Type

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1
NANOSECONDS = 10**9
SIZE_MAX = 1_000_000
"""The largest string or list that an expression may build."""
WALK_MAX = 30_000
"""The most elements of lists and maps that an evaluation may compare and write out, whatever their cost."""
_TEXT_LENGTH: Final = 256
"""A text of this length counts as one more element."""


class UInt(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


class BoolKey:
    """A bool as the key of a dict, since True and 1 would be the same key."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


TRUE_KEY, FALSE_KEY = BoolKey(True), BoolKey(False)


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A time in nanoseconds since 1970. The offset from UTC matters only for formatting."""

    ns: int
    offset_s: int = field(default=0, compare=False)
    TYPE: ClassVar[Type] = types.TIMESTAMP


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration in nanoseconds."""

    ns: int
    TYPE: ClassVar[Type] = types.DURATION


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, the result of `type(x)`."""

    type: Type
    TYPE: ClassVar[Type] = types.TYPE


class Optional:
    """A value that may be absent."""

    __slots__ = ("present", "value")
    TYPE: ClassVar[Type] = types.read_type("optional(dyn)")

    def __init__(self, value: Any, *, present: bool = True) -> None:
        self.value = value
        self.present = present


NONE = Optional(None, present=False)


class NativeMap(dict[Any, Any]):
    """A map of the device, not of the expression. Its keys are strings, and keys of other types are never found."""

    __slots__ = ()


class Opaque:
    """A value of one of Kubernetes' own types. Comparing it with another type on the right side is an error."""

    __slots__ = ()
    TYPE: ClassVar[Type]
    IS_HASHABLE: ClassVar[bool] = True
    """Upstream can use it as a map key."""
    IS_NATIVE: ClassVar[bool] = False
    """Upstream can read an optional value of this type from a variable."""

    def equals(self, value: Any) -> bool:
        """Tell whether a value of the same class is equal to this one."""
        return bool(self == value)


_TYPES: dict[type, Type] = {
    bool: types.BOOL, int: types.INT, UInt: types.UINT, float: types.DOUBLE, str: types.STRING,
    bytes: types.BYTES, type(None): types.NULL, list: types.read_type("list(dyn)"),
}  # fmt: skip
_MAP_TYPE = types.read_type("map(dyn, dyn)")


def type_of(value: Any) -> Type:
    """Return the type of a value. For lists, maps and optionals without the types of their content."""
    kind = _TYPES.get(type(value))
    if kind is not None:
        return kind
    return _MAP_TYPE if isinstance(value, dict) else value.TYPE


def type_name(value: Any) -> str:
    """Return the name of a value's type, for errors."""
    return type_of(value).name


def equals(lhs: Any, rhs: Any) -> bool | None:
    """Tell whether two values are equal; None if equality is undefined. Values of different types differ."""
    kind = type(lhs)
    # By exact type: in Python True == 1, in CEL they differ.
    if kind is str or kind is bool or kind is bytes or kind is Timestamp or kind is Duration:
        return type(rhs) is kind and bool(lhs == rhs)
    if lhs is None or rhs is None:
        return lhs is rhs
    if kind is int or kind is UInt or kind is float:
        return equal_numbers(lhs, rhs)
    if kind is list:
        return type(rhs) is list and _equal_lists(lhs, rhs)
    if isinstance(lhs, dict):
        return isinstance(rhs, dict) and _equal_maps(lhs, rhs)
    if kind is Optional:
        return _equal_optionals(lhs, rhs)
    if kind is TypeValue:
        return type(rhs) is TypeValue and lhs.type.name == rhs.type.name
    # cel-go refuses to compare its Kubernetes types with others, which makes the expression fail.
    if type(rhs) is not kind or getattr(rhs, "is_sum", False):
        return None
    return bool(lhs.equals(rhs))


def equal_numbers(lhs: float, rhs: Any) -> bool:
    """Tell whether a number equals a value. Integers and doubles are compared as doubles."""
    # As doubles, like cel-go; Python would compare exactly, and find 2**53 + 1 unequal to 2.0**53.
    if type(rhs) is float:
        return bool(rhs == lhs) if type(lhs) is float else float(lhs) == rhs
    if type(rhs) is int or type(rhs) is UInt:
        return bool(lhs == rhs) if type(lhs) is not float else lhs == float(rhs)
    return False


def _equal_lists(lhs: list[Any], rhs: list[Any]) -> bool:
    if len(lhs) != len(rhs):
        return False
    # Comparisons cost 1 upstream whatever their size, so they are limited apart from costs.
    walk(lhs)
    return all(equals(a, b) is not False for a, b in zip(lhs, rhs, strict=True))


def _equal_maps(lhs: dict[Any, Any], rhs: dict[Any, Any]) -> bool:
    if len(lhs) != len(rhs):
        return False
    walk(lhs.values())
    return all(key in rhs and equals(value, rhs[key]) is not False for key, value in lhs.items())


def _equal_optionals(lhs: Optional, rhs: Any) -> bool | None:
    if type(rhs) is not Optional or lhs.present != rhs.present:
        return False
    return not lhs.present or equals(lhs.value, rhs.value)


_walk_left: ContextVar[int] = ContextVar("walk_left", default=WALK_MAX)


def start_walk() -> None:
    """Reset the count of elements that an evaluation visits."""
    _walk_left.set(WALK_MAX)


def walk(values: Collection[Any]) -> None:
    """Count elements that are about to be visited.

    The cost does not bound the visits: `[x, x]` has cost 2 and twice the content of x, and thirty nested ones have a
    billion elements.

    Raises: EvaluationError: the evaluation visits too many.
    """
    budget = _walk_left.get() - len(values)
    budget -= sum(len(value) for value in values if type(value) in _TEXTS) // _TEXT_LENGTH
    _walk_left.set(budget)
    if budget < 0:
        raise EvaluationError(f"nested values have more than {WALK_MAX} elements")


_TEXTS = frozenset({str, bytes})


def key_of(value: Any) -> Any:
    """Return the dict key for a value; None if it cannot be a key."""
    kind = type(value)
    if kind is str or kind is int or kind is UInt:
        return value
    if kind is bool:
        return TRUE_KEY if value else FALSE_KEY
    # cel-go finds 1 under the key 1.0.
    return int(value) if kind is float and value.is_integer() else None


def has_key(mapping: dict[Any, Any], value: Any) -> bool:
    """Tell whether a map has a key. Raises: EvaluationError: upstream cannot look up values of this type."""
    place = key_of(value)
    if place is not None:
        return place in mapping
    # The empty map is not searched upstream, so that no value is hashed.
    if mapping and not isinstance(mapping, NativeMap):
        assert_hashable(value)
    return False


def assert_hashable(value: Any) -> None:
    """Refuse a value that upstream cannot look up in a map or a set. Raises: EvaluationError."""
    if type(value) is bytes or (isinstance(value, Opaque) and not value.IS_HASHABLE):
        raise EvaluationError(f"hash of unhashable type {type_name(value)}")


def from_key(key: Any) -> Any:
    """Return the value for a dict key."""
    return key.value if type(key) is BoolKey else key


def is_zero(value: Any) -> bool:
    """Tell whether this is the zero value of its type, which `optional.ofNonZeroValue` makes absent."""
    kind = type(value)
    if kind is Timestamp:
        return bool(value.ns == YEAR_ONE_S * NANOSECONDS)
    if kind is Duration:
        return bool(value.ns == 0)
    if kind is Optional:
        return not value.present or is_zero(value.value)
    return value is None or (isinstance(value, (bool, int, float, str, bytes, list, dict)) and not value)


def size_of(value: Any) -> int:
    """Return the size of a value for the cost of functions: its length if it has one, else 1."""
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    if type(value) is Optional and value.present:
        return size_of(value.value)
    return int(getattr(value, "size", 1))


def int64(number: int) -> int:
    """Check that a number is in the range of int. Raises: EvaluationError."""
    if INT_MIN <= number <= INT_MAX:
        return number
    raise EvaluationError("integer overflow")


def uint64(number: int) -> UInt:
    """Convert a number to uint. Raises: EvaluationError."""
    if 0 <= number <= UINT_MAX:
        return UInt(number)
    raise EvaluationError("unsigned integer overflow")


YEAR_ONE_S, YEAR_9999_S = -62135596800, 253402300799


def timestamp(ns: int, offset_s: int = 0) -> Timestamp:
    """Create a timestamp of the years 1 to 9999. Raises: EvaluationError."""
    if YEAR_ONE_S <= ns // NANOSECONDS <= YEAR_9999_S:
        return Timestamp(ns, offset_s)
    raise EvaluationError("timestamp overflow")


def duration(ns: int) -> Duration:
    """Create a duration of at most 2^63 nanoseconds. Raises: EvaluationError."""
    if INT_MIN <= ns <= INT_MAX:
        return Duration(ns)
    raise EvaluationError("duration overflow")


def double_to_int(number: float) -> int:
    """Return the integer part of a double. Raises: EvaluationError."""
    # As cel-go: the bounds themselves are refused, since doubles near them are not exact.
    if not math.isfinite(number) or not float(INT_MIN) < number < float(INT_MAX):
        raise EvaluationError("integer overflow")
    return int(number)


def check_size(value: Any) -> Any:
    """Check the size of a string or list that an expression has built.

    Raises: EvaluationError: the value is larger than `SIZE_MAX`.
    """
    if len(value) > SIZE_MAX:
        raise EvaluationError(f"a value of size {len(value)} is larger than the limit of {SIZE_MAX}")
    return value
