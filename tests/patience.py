"""How long a test waits for what has to come."""

from __future__ import annotations

from typing import Final

PATIENCE_S: Final = 90.0
"""Where all is well it is never waited out, so it may be long: beside busy neighbours everything takes a multiple.

Shorter than the five minutes after which podium looks again at what it may have overlooked.
"""
