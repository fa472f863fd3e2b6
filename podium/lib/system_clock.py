"""The machine's clocks, for the code that assembles a scheduler. All other code is given a `lib.clock.Clock`."""

from __future__ import annotations

import time

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The machine's clocks."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


class SuspendAwareClock:
    """The machine's clocks; the monotonic one continues while the machine is suspended, if the system supports that."""

    now = staticmethod(time.time)

    def monotonic(self) -> float:
        """Return seconds since the machine was started, or since an unspecified moment."""
        return time.clock_gettime(_BOOT_CLOCK)
