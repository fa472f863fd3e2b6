"""The machine's clocks, for those who compose a scheduler. Everything else is given a `lib.clock.Clock`."""

from __future__ import annotations

import time

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


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
