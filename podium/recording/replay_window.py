"""The part of a recording that is replayed, and its speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplayWindow:
    """The end of a replay: by attempts, by time since the start, or by the wall clock. None sets no limit.

    Units: `wall_s` is in seconds since the epoch.
    """

    attempts: int | None = None
    seconds: float | None = None
    wall_s: float | None = None

    @property
    def is_set(self) -> bool:
        """The window has an end."""
        return self != ReplayWindow()

    def is_over(self, since_start_s: float, wall_s: float | None) -> bool:
        """Tell whether the recorded time is past the end of the window.

        Args:
            wall_s: the recorded wall clock; None before its first reading.
        """
        if self.seconds is not None:
            return since_start_s > self.seconds
        return self.wall_s is not None and wall_s is not None and wall_s > self.wall_s


class Pace:
    """Slows a replay down to a multiple of the recorded speed.

    Args:
        speed: recorded seconds per second; None for no limit.
        monotonic, sleep: the machine's own.
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

    def wait_until(self, recorded_s: float) -> None:
        """Sleep until that recorded time is due."""
        if self._speed is None:
            return
        if self._recorded_start_s is None:
            self._started_s, self._recorded_start_s = self._monotonic(), recorded_s
        due_s = self._started_s + (recorded_s - self._recorded_start_s) / self._speed
        if (left_s := due_s - self._monotonic()) > 0.0:
            self._sleep(left_s)
