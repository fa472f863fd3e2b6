"""Decisions, and blocks with entries, that a test makes up."""

from __future__ import annotations

from typing import Any

from podium.recording.columns import ColumnWriter, EntryBuffer
from podium.recording.entries import DECIDED, Decision
from podium.recording.hashed_names import NameHasher


def decision_entry(uid: str = "u", node: str = "", *, name: str = "web", victims: tuple[str, ...] = ()) -> Any:
    """A `DECIDED` for the pod, which fits nowhere without a node."""
    kind = "Suggested" if node else "DoesNotFit"
    return (DECIDED, *Decision(uid, f"default/{name}", kind, node, 3, 2, 170, None, victims))


def content_of(*entries: tuple[int, Any], hasher: NameHasher | None = None) -> bytes:
    """Encode these kinds and values as a recorder does."""
    buffer = EntryBuffer()
    for kind, value in entries:
        buffer.note(kind, value)
    (content,) = ColumnWriter(hasher).contents(*buffer.take(len(entries)))
    return content
