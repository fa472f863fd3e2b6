"""Clocks: every reading of time goes through one, so that a recorded run can be replayed and tests need not wait.

The machine's own are in `lib.system_clock`: the engine reads only those that it is given.
"""

from __future__ import annotations

from typing import Final, Protocol

_NOTICED_S: Final = 1e-3
"""Less than that is the time between two readings, not a wall clock that was set."""


class Clock(Protocol):
    """Reads the time; never waits."""

    def now(self) -> float:
        """Wall-clock time in seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything."""


class SteadyClock:
    """Wall-clock time as it was when the clock was made, carried on by the monotonic clock.

    For waiting: setting the machine's clock moves no deadline. `wall_s` turns such a time into one to show.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_s = clock.now() - clock.monotonic()
        self.monotonic = clock.monotonic

    def now(self) -> float:
        """Seconds since the epoch, by the wall clock of the start."""
        return self._offset_s + self.monotonic()

    def wall_s(self, at_s: float) -> float:
        """What the machine's wall clock, as it is set now, says (or will say) at that time of this clock."""
        moved_s = self._clock.now() - self.now()
        return at_s + moved_s if abs(moved_s) >= _NOTICED_S else at_s


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

    def set_wall(self, now_s: float) -> None:
        """Set the wall clock, forward or back, as an operator or NTP does; the monotonic one is not affected."""
        self._origin_s += now_s - self._now_s
        self._now_s = now_s

    def advance(self, seconds: float) -> None:
        """Let that much time pass at once."""
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds}")
        self._now_s += seconds
