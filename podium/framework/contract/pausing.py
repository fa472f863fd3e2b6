"""Filter plugins that may take long: they can be interrupted, so that other tasks run.

Owns how long such a plugin runs before it is interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from podium.framework.contract.filter import TableFilterPlugin
from podium.lib.clock import Clock

_TURN_S_MAX: Final = 0.005
_WITH_GAP_S_MAX: Final = 0.02
"""How long a turn may be if nearly all of it is one gap in which the process may have had no core."""


class FilterInterrupted(Exception):  # noqa: N818 - nothing has failed
    """Raised by `filter_rows` to be called again with the same rows, after other tasks have run.

    Args:
        work: what would hold them up. It may be done before that in a thread; otherwise the plugin does it itself.
    """

    def __init__(self, work: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.work = work


class Turn:
    """In the state of an attempt that may be interrupted while it filters.

    Dry runs share it. They are never interrupted, because it is open only while the attempt itself filters.
    """

    __slots__ = ("_clock", "_longest_gap_s", "_looked_s", "_opened_s")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._opened_s: float | None = None
        self._looked_s = self._longest_gap_s = 0.0

    def open(self) -> None:
        """Filter plugins may raise FilterInterrupted from now on, once the turn is over."""
        self._opened_s = self._looked_s = self._clock.monotonic()
        self._longest_gap_s = 0.0

    def close(self) -> None:
        """Filter plugins must not raise FilterInterrupted any more."""
        self._opened_s = None

    @property
    def is_open(self) -> bool:
        """A filter plugin may let other tasks run."""
        return self._opened_s is not None

    @property
    def is_over(self) -> bool:
        """A filter plugin should let other tasks run now.

        The longest time between two questions does not count, up to a limit: where other processes had the core then, a
        short search would be interrupted in vain, and wait for all tasks that have become ready meanwhile.
        """
        if self._opened_s is None:
            return False
        now_s = self._clock.monotonic()
        self._longest_gap_s, self._looked_s = max(self._longest_gap_s, now_s - self._looked_s), now_s
        seconds = now_s - self._opened_s
        return seconds - self._longest_gap_s >= _TURN_S_MAX or seconds >= _WITH_GAP_S_MAX


class LongFilterPlugin(TableFilterPlugin):
    """A filter plugin whose `filter_rows` raises FilterInterrupted if the attempt's `Turn` is over.

    It has to go on where it was when it is called again.
    """
