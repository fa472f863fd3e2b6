"""When the queue's two periodic flushes are due."""

from __future__ import annotations

import math

from podium.lib.clock import Clock

LEFTOVER_PERIOD_S = 30.0


class BackoffTimer:
    """Due once in every second of the queue's clock, so that it agrees with how backoffs are rounded."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second = math.floor(clock.now())

    def delay_s(self) -> float:
        """Seconds until it is due."""
        now_s = self._clock.now()
        second = math.floor(now_s)
        return second + 1 - now_s if second == self._second else 0.0

    def take(self) -> bool:
        """Whether it is due; then it is due again in the next second."""
        second = math.floor(self._clock.now())
        is_due = second != self._second
        self._second = second
        return is_due


class LeftoverTimer:
    """Due every 30 seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_s = clock.monotonic() + LEFTOVER_PERIOD_S

    def delay_s(self) -> float:
        """Seconds until it is due."""
        return max(0.0, self._due_s - self._clock.monotonic())

    def take(self) -> bool:
        """Whether it is due; then it is due again a period later."""
        now_s = self._clock.monotonic()
        if now_s < self._due_s:
            return False
        self._due_s = now_s + LEFTOVER_PERIOD_S
        return True
