"""The content of a block with entries that a test makes up."""

from __future__ import annotations

from typing import Any

from podium.recording.columns import ColumnWriter, EntryBuffer


def content_of(*entries: tuple[int, Any]) -> bytes:
    """As a recorder writes it that has buffer these kinds and values."""
    buffer = EntryBuffer()
    for kind, value in entries:
        buffer.note(kind, value)
    (content,) = ColumnWriter().contents(*buffer.take(len(entries)))
    return content
