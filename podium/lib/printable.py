"""Makes foreign text harmless where people read it: it cannot move the cursor, set colours or start a new line.

Owns the one escaping of all that is shown: on a terminal, in a log, on a page, in a table. Names of pods, texts of
events, messages of servers and whatever stands in a file come from outside. A terminal obeys their control characters,
a reader takes their line breaks for new lines of podium's, and bidirectional marks show words in another order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def printable(text: str) -> str:
    """The text with unprintable characters escaped: control characters, line breaks, bidirectional marks."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def printable_lines(text: str) -> str:
    """Like `printable`, but keeps line breaks; further lines are indented, since entries start at the margin."""
    first, *others = text.expandtabs(4).split("\n")
    return "\n".join([printable(first), *(f"    {printable(line)}" for line in others)])


def printable_layout(text: str) -> str:
    """Like `printable`, but keeps line breaks: they are the layout of whoever has laid the text out."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def printable_json(document: bytes) -> bytes:
    """A JSON document with unprintable characters escaped; it means the same.

    The encoder has already escaped those of ASCII, except for DEL.
    """
    if document.isascii() and b"\x7f" not in document:
        return document
    if (text := document.decode()).isprintable():
        return document
    return "".join(
        character if character.isprintable() or character == "\n" else json.dumps(character)[1:-1]
        for character in text.replace("\x7f", "\\u007f")
    ).encode()


def printable_values(value: Any) -> Any:
    """JSON values with `printable` texts and keys, for what shows them without escaping anything."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(str(key)): printable_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [printable_values(item) for item in value]
    return value


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
