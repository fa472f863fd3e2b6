"""Fields, keys and indexes: `a.b`, `a[b]`, `a.?b`, `a[?b]` and `has(a.b)`.

Once a value is optional, so is everything selected from it, and a missing field is absent instead of an error.
"""

from __future__ import annotations

from typing import Any

from podium.cel.errors import EvaluationError
from podium.cel.values import NONE, NativeMap, Opaque, Optional, UInt, has_key, key_of, type_name


class DomainMap(NativeMap):
    """The attributes or capacities of a device by domain. An unknown domain is an empty map, not an error."""

    __slots__ = ()

    def __missing__(self, key: str) -> dict[str, Any]:
        return {}


def select(held: Any, key: Any) -> Any:
    """The value under a key, wrapped if `held` is optional.

    Raises: EvaluationError: the key is missing, or `held` is not a map or list.
    """
    if type(held) is Optional:
        return select_optional(held, key)
    value, found = _look_up(held, key)
    if not found:
        raise EvaluationError(f"{'index out of bounds' if type(held) is list else 'no such key'}: {key}")
    return value


def select_optional(held: Any, key: Any) -> Optional:
    """The value under a key as an optional value, absent if the key is missing.

    Raises: EvaluationError: the type of the key is not valid for a list.
    """
    if type(held) is Optional:
        if not held.present:
            return NONE
        held = held.value
    value, found = _look_up(held, key)
    return Optional(value) if found else NONE


def is_present(held: Any, key: str) -> bool:
    """Whether a map has the key, or an optional contains such a map."""
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
    """The form of an optional quantity, version, address or URL that upstream has read from a variable.

    It is present, but every use of it is an error: upstream converts such values there to a form that it cannot
    convert back.
    """

    __slots__ = ()


_UNREADABLE = Optional(Unreadable())


def as_read(value: Any) -> Any:
    """The value in the form that it has after being read from a variable or a conditional."""
    if type(value) is not Optional or not value.present:
        return value
    held = value.value
    if isinstance(held, Opaque) and not held.IS_NATIVE:
        return _UNREADABLE
    if type(held) is DomainMap:
        return Optional(NativeMap(held))
    return held if type(held) is Optional else value


def read_value(held: Optional) -> Any:
    """The value of a present optional.

    Raises: EvaluationError: it was read from a variable, and upstream cannot convert it back.
    """
    if type(held.value) is Unreadable:
        raise EvaluationError("unsupported conversion of an optional value")
    return held.value
