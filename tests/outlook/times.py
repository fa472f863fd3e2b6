"""The times of random clusters, in seconds from the question on."""

from __future__ import annotations

from typing import Final

from podium.objects.times import format_time
from tests.virtual_time import START_S

START_DELAY_S: Final = 5
"""How long pods take to start: the stand-in kubelets need as long."""
GRACES_S: Final = range(3, 30)
"""How long pods take to end."""
LAST_END_S: Final = 90
"""When the last pod whose time is known has ended."""


def time_text(seconds: float) -> str:
    """The time that many seconds after the question."""
    return format_time(START_S + seconds)
