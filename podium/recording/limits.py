"""How far a replay goes, and how fast."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Until:
    """Where a replay ends: by attempts, by the time since the start, or by the wall clock. None sets no limit.

    Units: `wall_s` is in seconds since the epoch.
    """

    attempts: int | None = None
    seconds: float | None = None
    wall_s: float | None = None

    @property
    def is_set(self) -> bool:
        """Whether there is a limit."""
        return self != Until()

    def is_time_up(self, since_start_s: float, wall_s: float | None) -> bool:
        """Whether the recorded time has come at which the replay ends.

        Args:
            wall_s: what the wall clock showed; None if it is not known.
        """
        if self.seconds is not None:
            return since_start_s > self.seconds
        return self.wall_s is not None and wall_s is not None and wall_s > self.wall_s


class Pace:
    """Holds a replay back, so that it takes a fixed part of the time that it took when it was recorded.

    Args:
        speed: so many recorded seconds pass in one; None for as fast as it can.
        monotonic, sleep: the machine's.
    """

    def __init__(
        self,
        speed: float | None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._speed = speed
        self._monotonic, self._sleep = monotonic, sleep
        self._started_s = 0.0
        self._recorded_start_s: float | None = None

    def reach(self, recorded_s: float) -> None:
        """Wait for that recorded time."""
        if self._speed is None:
            return
        if self._recorded_start_s is None:
            self._started_s, self._recorded_start_s = self._monotonic(), recorded_s
        due_s = self._started_s + (recorded_s - self._recorded_start_s) / self._speed
        if (left_s := due_s - self._monotonic()) > 0.0:
            self._sleep(left_s)
