"""Formats exceptions: with their type, on one line, safe against exceptions whose `__str__` fails.

`str(KeyError("team"))` is `'team'`, and `str(AssertionError())` is empty: without the type the text is useless.
Exceptions whose text is a sentence for the reader derive from `UserFacingError`.
"""

from __future__ import annotations

from typing import Final

LENGTH_MAX: Final = 2000
_CUT: Final = " ..."


class UserFacingError(Exception):
    """An exception whose text is complete: its type would add nothing."""


def error_text(error: BaseException) -> str:
    """The exception as text: `KeyError: 'team'`, or the bare text of one that is `UserFacingError`. Never raises."""
    kind = type(error).__name__
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 - foreign code may raise anything, and a failure is being handled
        return f"{kind}, and its text cannot be read: {type(second).__name__}"
    if len(text) > LENGTH_MAX:
        text = text[: LENGTH_MAX - len(_CUT)] + _CUT
    if isinstance(error, UserFacingError) and text:
        return text
    return f"{kind}: {text}" if text else kind
