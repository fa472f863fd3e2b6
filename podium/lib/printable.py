"""Makes foreign text harmless where people read it: it cannot move the cursor, set colours or start a new line.

Owns the escaping of everything shown on a terminal, in a log, on a page or in a table. Names of pods, texts of events,
messages of servers and contents of files are foreign: a terminal obeys their control characters, a reader mistakes the
lines after their line breaks for podium's own, and bidirectional marks reorder the words on display.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def printable(text: str) -> str:
    """Return the text with unprintable characters escaped: control characters, line breaks, bidirectional marks."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def printable_lines(text: str) -> str:
    """Escape text like `printable`, but keep line breaks and indent further lines: entries start at the margin."""
    first, *further_lines = text.expandtabs(4).split("\n")
    return "\n".join([printable(first), *(f"    {printable(line)}" for line in further_lines)])


def printable_layout(text: str) -> str:
    """Escape text as `printable` does, but keep line breaks, for text that podium has laid out itself."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def printable_json(document: bytes) -> bytes:
    """Escape the unprintable characters of a JSON document, which keeps its meaning.

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
    """Make texts and keys of JSON values `printable`, for output that escapes nothing itself."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(str(key)): printable_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [printable_values(item) for item in value]
    return value


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
