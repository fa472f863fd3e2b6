"""A time limit that counts looks at the clock, so that a search ends at the same step each time."""

from __future__ import annotations

from podium.lib.clock import ManualClock
from podium.lib.time_limit import TimeLimit


class _LookedAt(ManualClock):
    def monotonic(self) -> float:
        self.advance(1.0)
        return super().monotonic()


def after_looks(count: int) -> TimeLimit:
    """A limit that is over with the look after so many."""
    return TimeLimit(_LookedAt(), count + 1)
