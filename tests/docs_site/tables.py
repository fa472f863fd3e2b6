"""Tables of the pages that are made from the code."""

from __future__ import annotations

from collections.abc import Iterable


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """The lines of a table; none without rows."""
    lines = [" | ".join(_cell(cell) for cell in row) for row in rows]
    if not lines:
        return []
    return ["\n", f"| {' | '.join(head)} |\n", f"|{'---|' * len(head)}\n", *(f"| {line} |\n" for line in lines)]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
