"""Clocks: every reading of time goes through one, so that a recorded run can be replayed and tests need not wait."""

from __future__ import annotations

import time
from typing import Protocol

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Reads the time; never waits."""

    def now(self) -> float:
        """Wall-clock time in seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything."""


class SystemClock:
    """The machine's own clocks."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


class SuspendAwareClock:
    """The machine's own clocks; the monotonic one goes on while the machine is suspended, where the system has such."""

    now = staticmethod(time.time)

    def monotonic(self) -> float:
        """Seconds since the machine was started, or since some moment."""
        return time.clock_gettime(_BOOT_CLOCK)


class ManualClock:
    """A clock that stands still until told to advance."""

    def __init__(self, start_s: float = 1_700_000_000.0) -> None:
        self._now_s = start_s
        self._origin_s = start_s

    def now(self) -> float:
        """Wall-clock time in seconds since the epoch."""
        return self._now_s

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._now_s - self._origin_s

    def advance(self, seconds: float) -> None:
        """Let that much time pass at once."""
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds}")
        self._now_s += seconds
