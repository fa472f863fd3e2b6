"""How long a test waits for what has to come."""

from __future__ import annotations

import time
from typing import Final

PATIENCE_S: Final = 90.0
"""Where all is well it is never waited out, so it may be long: beside busy neighbours everything takes a multiple.

Shorter than the five minutes after which podium looks again at what it may have overlooked.
"""

_PAUSE_S: Final = 0.05
_PAUSE_S_MAX: Final = 2.0
_ASKING_MAX: Final = 0.1
"""The share of the time that may be spent with asking.

On a busy machine whoever is waited for takes longer, and so does each question. Without a limit, questions take from
those who are to be waited for what they need, so that the suite takes much more than the multiple of its time.
"""


def pause_s(asked_at_s: float, least_s: float = _PAUSE_S) -> float:
    """Return the pause after a question that was begun at that time of the monotonic clock."""
    asking_s = time.monotonic() - asked_at_s
    return min(max(least_s, asking_s * (1.0 - _ASKING_MAX) / _ASKING_MAX), _PAUSE_S_MAX)
