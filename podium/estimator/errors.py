"""The error of an estimate."""

from __future__ import annotations

from podium.lib.error_text import UserFacingError


class EstimateError(UserFacingError):
    """The estimate failed. The text says why, in upstream's words if upstream has the error."""
