"""Exceptions put to words: with their type, on one line, and whatever the exception does when it is asked.

`str(KeyError("team"))` is `'team'`, and `str(AssertionError())` is nothing at all: without the type nobody knows what
happened. Exceptions whose text is a sentence for the reader derive from `Worded`.
"""

from __future__ import annotations

from typing import Final

LENGTH_MAX: Final = 2000
_CUT: Final = " ..."


class Worded(Exception):  # noqa: N818 - a kind of exception, never raised as such
    """An exception whose text says all there is to say: its type would only be in the way."""


def words_of(error: BaseException) -> str:
    """What the exception says: `KeyError: 'team'`, or the bare text of one that is `Worded`. Never raises."""
    kind = type(error).__name__
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 - it is a stranger's code, and this is told while handling a failure
        return f"{kind}, and its text cannot be had: {type(second).__name__}"
    if len(text) > LENGTH_MAX:
        text = text[: LENGTH_MAX - len(_CUT)] + _CUT
    if isinstance(error, Worded) and text:
        return text
    return f"{kind}: {text}" if text else kind
