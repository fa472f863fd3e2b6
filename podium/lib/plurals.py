"""Counts of things, in words that people read."""

from __future__ import annotations


def count_of(count: int, noun: str) -> str:
    """Return the count and its noun, such as "1 pod" or "2,000 pods"; the noun's plural ends with an s."""
    return f"{count:,} {noun if count == 1 else f'{noun}s'}"
