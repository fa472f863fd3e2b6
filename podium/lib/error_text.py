"""Formats exceptions: with their type, on one line, safe against exceptions whose `__str__` fails.

`str(KeyError("team"))` is `'team'`, and `str(AssertionError())` is empty: without the type the text is useless.
Exceptions whose text is a sentence for the reader derive from `UserFacingError`.
"""

from __future__ import annotations

from typing import Final

LENGTH_MAX: Final = 2000
_CUT: Final = " ..."
_NAME: Final = type.__dict__["__name__"].__get__


class UserFacingError(Exception):
    """An exception whose text is complete: its type would add nothing."""


def error_text(error: BaseException) -> str:
    """Return `KeyError: 'team'`, or the bare text of a `UserFacingError`. Never raises."""
    kind = type_name(error)
    try:
        # `__str__` may return a subclass of str, whose methods could do anything.
        text = str.__str__(str(error))
    except BaseException as second:  # noqa: BLE001 - foreign code may raise anything, and a failure is being handled
        return f"{kind}, and its text cannot be read: {type_name(second)}"
    text = cut(text)
    if isinstance(error, UserFacingError) and text:
        return text
    return f"{kind}: {text}" if text else kind


def cut(text: str) -> str:
    """Shorten the text to what fits in a message."""
    return text if len(text) <= LENGTH_MAX else text[: LENGTH_MAX - len(_CUT)] + _CUT


def type_name(value: object) -> str:
    """Return the name of the value's type, even if its metaclass overrides `__name__`."""
    name: str = _NAME(type(value))
    return name
