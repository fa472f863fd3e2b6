"""Timers for the queue's two periodic flushes."""

from __future__ import annotations

import math

from podium.lib.clock import Clock

LEFTOVER_PERIOD_S = 30.0


class BackoffTimer:
    """Fires once in every second of the queue's clock, in step with the rounding of backoffs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second = math.floor(clock.now())

    def delay_s(self) -> float:
        """Seconds until the timer fires."""
        now_s = self._clock.now()
        second = math.floor(now_s)
        return second + 1 - now_s if second == self._second else 0.0

    def take(self) -> bool:
        """Whether the timer has fired; if so, it is set for the next second."""
        second = math.floor(self._clock.now())
        is_due = second != self._second
        self._second = second
        return is_due


class LeftoverTimer:
    """Fires every 30 seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_s = clock.monotonic() + LEFTOVER_PERIOD_S

    def delay_s(self) -> float:
        """Seconds until the timer fires."""
        return max(0.0, self._due_s - self._clock.monotonic())

    def take(self) -> bool:
        """Whether the timer has fired; if so, it is set for one period later."""
        now_s = self._clock.monotonic()
        if now_s < self._due_s:
            return False
        self._due_s = now_s + LEFTOVER_PERIOD_S
        return True
