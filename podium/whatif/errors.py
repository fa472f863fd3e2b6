"""What can be wrong with a question."""

from __future__ import annotations


class WhatIfError(Exception):
    """The question cannot be answered; the text says why."""


class ManifestError(WhatIfError):
    """An object cannot be read; the text names it and its field."""
