"""Clocks: all code reads time through them, so that a recorded run can be replayed and tests need not wait.

The machine's clocks are in `lib.system_clock`: the engine reads only the clocks that it is given.
"""

from __future__ import annotations

from typing import Final, Protocol

_NOTICED_S: Final = 1e-3
"""A smaller difference is the time between two readings, not a change of the wall clock."""


class Clock(Protocol):
    """Reads the time; never waits."""

    def now(self) -> float:
        """Return the wall-clock time in seconds since the epoch."""

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back; only differences are meaningful."""


class SteadyClock:
    """Starts at the wall-clock time of its creation and advances with the monotonic clock.

    Use it for deadlines: setting the machine's clock does not move them. `wall_s` converts such a time for display.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_s = clock.now() - clock.monotonic()
        self.monotonic = clock.monotonic

    def now(self) -> float:
        """Return seconds since the epoch, unaffected by later changes of the wall clock."""
        return self._offset_s + self.monotonic()

    def at(self, monotonic_s: float) -> float:
        """Return this clock's time at a moment of the monotonic clock."""
        return self._offset_s + monotonic_s

    def wall_s(self, at_s: float) -> float:
        """Convert a time of this clock to the machine's wall clock as it is set now."""
        moved_s = self._clock.now() - self.now()
        return at_s + moved_s if abs(moved_s) >= _NOTICED_S else at_s


class ManualClock:
    """A clock that advances only by `advance` and `set_wall`."""

    def __init__(self, start_s: float = 1_700_000_000.0) -> None:
        self._now_s = start_s
        self._origin_s = start_s

    def now(self) -> float:
        """Return the wall-clock time in seconds since the epoch."""
        return self._now_s

    def monotonic(self) -> float:
        """Return seconds since the clock was created."""
        return self._now_s - self._origin_s

    def set_wall(self, now_s: float) -> None:
        """Set the wall clock, forward or back, as an operator or NTP does; the monotonic clock is not affected."""
        self._origin_s += now_s - self._now_s
        self._now_s = now_s

    def advance(self, seconds: float) -> None:
        """Advance both clocks at once."""
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds}")
        self._now_s += seconds
