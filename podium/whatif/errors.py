"""What can be wrong with a question."""

from __future__ import annotations

from podium.lib.error_words import Worded


class WhatIfError(Worded):
    """The question cannot be answered; the text says why."""


class ManifestError(WhatIfError):
    """An object cannot be read; the text names it and its field."""
