"""What can be wrong with objects, and with what is asked about them."""

from __future__ import annotations

from podium.lib.error_words import Worded


class ClusterError(Worded):
    """What was asked of the cluster makes no sense there; the text says why."""


class ManifestError(ClusterError):
    """An object cannot be read; the text names it and its field."""
