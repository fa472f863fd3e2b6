"""What can be wrong with a question."""

from __future__ import annotations

from podium.lib.error_words import Worded


class EstimateError(Worded):
    """There is no estimate; the text says why, in upstream's words where it has some."""
