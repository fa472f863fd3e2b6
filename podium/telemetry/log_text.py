"""Makes foreign text harmless in a log: it cannot move the cursor, set colours or start a new line.

Names of pods, paths of requests and messages of servers come from outside. A terminal interprets their control
characters, and a reader would take their line breaks for new log entries.
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
    """The text with users and passwords removed from its URLs."""
    return _USER_INFO.sub(_WITHOUT_USER_INFO, text) if "://" in text and "@" in text else text


def printable(text: str) -> str:
    """The text with unprintable characters escaped: control characters, line breaks, bidirectional marks."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def printable_lines(text: str) -> str:
    """Like `printable`, but keeps line breaks; further lines are indented, since entries start at the margin."""
    first, *others = text.expandtabs(4).split("\n")
    return "\n".join([printable(first), *(f"    {printable(line)}" for line in others)])


def printable_value(value: Any) -> Any:
    """Like `printable`, for any value in a log entry."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        return printable(value)
    shown = repr(value)
    return value if shown.isprintable() else printable(shown)


def without_middle(text: str, length_max: int) -> str:
    """The text, without its middle if it is too long: a traceback names the cause first and the exception last."""
    left_out = len(text) - length_max
    if left_out <= 0:
        return text
    half = length_max // 2
    return f"{text[:half]}\n... {left_out} characters left out ...\n{text[-half:]}"


def printable_json(document: bytes) -> bytes:
    """A JSON document with unprintable characters escaped; the encoder has already escaped those in ASCII."""
    if document.isascii() or (text := document.decode()).isprintable():
        return document
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text).encode()


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
