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


def select(container: Any, key: Any) -> Any:
    """Return the value under a key, wrapped if the container is optional.

    Raises: EvaluationError: the key is missing, or the container is not a map or list.
    """
    if type(container) is Optional:
        return select_optional(container, key)
    value, present = _look_up(container, key)
    if not present:
        raise EvaluationError(f"{'index out of bounds' if type(container) is list else 'no such key'}: {key}")
    return value


def select_optional(container: Any, key: Any) -> Optional:
    """Return the value under a key as an optional value, absent if the key is missing.

    Raises: EvaluationError: the type of the key is not valid for a list.
    """
    if type(container) is Optional:
        if not container.present:
            return NONE
        container = container.value
    value, present = _look_up(container, key)
    return Optional(value) if present else NONE


def is_present(container: Any, key: str) -> bool:
    """Tell whether a map has the key, or an optional contains such a map."""
    if type(container) is Optional:
        return bool(container.present) and is_present(container.value, key)
    if type(container) is list:
        return bool(_look_up(container, key)[1])
    # Every domain is present in upstream's map of a device.
    return type(container) is DomainMap or (isinstance(container, dict) and key in container)


def _look_up(container: Any, key: Any) -> tuple[Any, bool]:
    if isinstance(container, dict):
        if type(container) is DomainMap:
            return container[key] if type(key) is str else {}, True
        return (container[key_of(key)], True) if has_key(container, key) else (None, False)
    if type(container) is list:
        index = _index(key)
        return (container[index], True) if 0 <= index < len(container) else (None, False)
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
    """Return the value in the form that it has after being read from a variable or a conditional."""
    if type(value) is not Optional or not value.present:
        return value
    content = value.value
    if isinstance(content, Opaque) and not content.IS_NATIVE:
        return _UNREADABLE
    if type(content) is DomainMap:
        return Optional(NativeMap(content))
    return content if type(content) is Optional else value


def read_value(optional: Optional) -> Any:
    """Return the value of a present optional.

    Raises: EvaluationError: it was read from a variable, and upstream cannot convert it back.
    """
    if type(optional.value) is Unreadable:
        raise EvaluationError("unsupported conversion of an optional value")
    return optional.value
