"""Text from outside, made harmless for a log: it moves no cursor, colours nothing and begins no line of its own.

Names of pods, paths of requests and words of servers are written by others. A terminal obeys their control characters,
and a reader believes their line breaks.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

REDACTED: Final = "[redacted]"

_USER_INFO = re.compile(r"://[^\s/@]*(?::[^\s@]*)?@")
_WITHOUT_USER_INFO: Final = f"://{REDACTED}@"
_PLAIN = frozenset({int, float, bool, type(None)})


def without_user_info(text: str) -> str:
    """The text without the users and passwords of the URLs in it."""
    return _USER_INFO.sub(_WITHOUT_USER_INFO, text) if "://" in text and "@" in text else text


def printable(text: str) -> str:
    """The text with what is not printable escaped: control characters, line breaks, marks that turn the direction."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def printable_lines(text: str) -> str:
    """As `printable`, but for line breaks; no line but the first begins at the margin, where entries begin."""
    first, *others = text.expandtabs(4).split("\n")
    return "\n".join([printable(first), *(f"    {printable(line)}" for line in others)])


def printable_value(value: Any) -> Any:
    """As `printable`, for whatever may stand in an entry."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        return printable(value)
    shown = repr(value)
    return value if shown.isprintable() else printable(shown)


def printable_json(document: bytes) -> bytes:
    """A JSON document with what is not printable escaped; the encoder has left only what is beyond ASCII."""
    if document.isascii() or (text := document.decode()).isprintable():
        return document
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text).encode()


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
