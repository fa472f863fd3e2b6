"""Fields, keys and indexes: `a.b`, `a[b]`, `a.?b`, `a[?b]` and `has(a.b)`.

Once a value is optional, so is everything below it, and what is missing is absent instead of an error.
"""

from __future__ import annotations

from typing import Any

from podium.cel.errors import EvaluationError
from podium.cel.values import NONE, NativeMap, Opaque, Optional, UInt, has_key, key_of, type_name


class DomainMap(NativeMap):
    """The attributes or capacities of a device by domain. Any domain may be asked for; unknown ones are empty."""

    __slots__ = ()

    def __missing__(self, key: str) -> dict[str, Any]:
        return {}


def select(held: Any, key: Any) -> Any:
    """The value under a key, wrapped if `held` is optional.

    Raises: EvaluationError: there is none, or `held` has no values under keys.
    """
    if type(held) is Optional:
        return select_optional(held, key)
    value, found = _look_up(held, key)
    if not found:
        raise EvaluationError(f"{'index out of bounds' if type(held) is list else 'no such key'}: {key}")
    return value


def select_optional(held: Any, key: Any) -> Optional:
    """The value under a key as an optional value, absent if there is none.

    Raises: EvaluationError: the key is of a type that the list cannot have.
    """
    if type(held) is Optional:
        if not held.present:
            return NONE
        held = held.value
    value, found = _look_up(held, key)
    return Optional(value) if found else NONE


def is_present(held: Any, key: str) -> bool:
    """Whether there is a value under a key."""
    if type(held) is Optional:
        return bool(held.present) and is_present(held.value, key)
    if type(held) is list:
        return bool(_look_up(held, key)[1])
    return type(held) is DomainMap or (isinstance(held, dict) and key in held)


def _look_up(held: Any, key: Any) -> tuple[Any, bool]:
    if isinstance(held, dict):
        if type(held) is DomainMap:
            return held[key] if type(key) is str else {}, True
        return (held[key_of(key)], True) if has_key(held, key) else (None, False)
    if type(held) is list:
        index = _index(key)
        return (held[index], True) if 0 <= index < len(held) else (None, False)
    return None, False


def _index(key: Any) -> int:
    if type(key) is int or type(key) is UInt:
        return int(key)
    if type(key) is float and key.is_integer():
        return int(key)
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")


class Unreadable(Opaque):
    """What upstream makes of an optional quantity, version, address or URL that is read from a variable.

    It is present, but every use of it is an error: upstream takes such values apart there and cannot put them
    together again.
    """

    __slots__ = ()


_UNREADABLE = Optional(Unreadable())


def as_read(value: Any) -> Any:
    """A value as it comes out of a variable or a choice."""
    if type(value) is not Optional or not value.present:
        return value
    held = value.value
    if isinstance(held, Opaque) and not held.IS_NATIVE:
        return _UNREADABLE
    if type(held) is DomainMap:
        return Optional(NativeMap(held))
    return held if type(held) is Optional else value


def read_value(held: Optional) -> Any:
    """The value of an optional that is present.

    Raises: EvaluationError: it has been read from a variable that cannot hold it.
    """
    if type(held.value) is Unreadable:
        raise EvaluationError("unsupported conversion of an optional value")
    return held.value
