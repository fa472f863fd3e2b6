"""What can be wrong with a question."""

from __future__ import annotations


class EstimateError(Exception):
    """There is no estimate; the text says why, in upstream's words where it has some."""
