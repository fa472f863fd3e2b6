"""The content of a block with entries that a test makes up."""

from __future__ import annotations

from typing import Any

from podium.recording.columns import ColumnWriter, Noted


def content_of(*entries: tuple[int, Any]) -> bytes:
    """As a recorder writes it that has noted these kinds and values."""
    noted = Noted()
    for kind, value in entries:
        noted.note(kind, value)
    (content,) = ColumnWriter().contents(*noted.take(len(entries)))
    return content
