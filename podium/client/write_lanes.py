"""Lanes: the writes of one kind in one namespace, which wait for each other but not for other lanes.

Owns the state of a lane: writes in flight, waiting writes, how fast the API server answers, and whether it refuses.
Never
reads a clock and never waits: the dispatcher does.
"""

from __future__ import annotations

import asyncio
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

SLOW_S: Final = 0.5
"""An answer that takes longer is slow. A lane with writes in flight and no answer for this long is slow, too."""
SLOW_WAITING_MAX: Final = 1000
"""How many writes may wait for slow answers before they count as a backlog, which pauses scheduling."""
_FIRST_GAP_S: Final = 1.0
_EARLY_S: Final = 0.001
"""How much too early a timer may fire."""

_Waiter = asyncio.Future[None]


class Lane:
    """The writes of one kind in one namespace.

    Attributes:
        limit: how many may be in flight: 1 after a refusal until a write succeeds, 0 during the wait after a refusal.
        refused: the paths of writes that were refused since the last other answer.
        waiting: a heap of the writes that wait; `add` and `pop` know its order.
        was_slow: whether the last answer was slow.
        progress_s: when the last answer came, or the first write after a pause went out.
    """

    __slots__ = (
        "_closed_until_s",
        "_limit_max",
        "_numbers",
        "in_flight",
        "limit",
        "priority",
        "progress_s",
        "refused",
        "waiting",
        "was_slow",
    )

    def __init__(self, priority: int, limit_max: int) -> None:
        self.priority = priority
        self.in_flight = 0
        self.limit = self._limit_max = limit_max
        self.was_slow = False
        self.progress_s = 0.0
        self.refused: set[str] = set()
        self.waiting: list[tuple[int, int, _Waiter]] = []
        self._numbers = count()
        self._closed_until_s = 0.0

    # ------------------------------------------------------------ what waits

    def add(self, waiter: _Waiter, urgency: int) -> None:
        """Queue a write. The most urgent goes first, then the oldest."""
        heappush(self.waiting, (-urgency, next(self._numbers), waiter))

    def pop(self) -> _Waiter:
        """Return the write whose turn is next."""
        return heappop(self.waiting)[2]

    def is_next_wanted(self) -> bool:
        """Return whether the next write still waits, and was not cancelled just now."""
        return not self.waiting[0][2].done()

    def remove(self, waiter: _Waiter) -> bool:
        """Remove a write that waits no longer; return whether it was there."""
        length = len(self.waiting)
        self.waiting = [entry for entry in self.waiting if entry[2] is not waiter]
        heapify(self.waiting)
        return len(self.waiting) < length

    # ------------------------------------------------------------ what is known of the answers

    def is_slow(self, now_s: float) -> bool:
        """Return whether its writes wait for slow answers or after a refusal, rather than for a free slot."""
        if self.was_slow or self.limit < self._limit_max:
            return True
        return self.in_flight > 0 and now_s - self.progress_s >= SLOW_S

    def refuse(self, path: str, retry_after_s: float, now_s: float) -> float:
        """Hold writes back: one was refused with 429.

        One refusal may concern that one object only, so the next write of the lane is tried alone. Each refusal of
        another object makes the pause before the next try longer, up to the server's Retry-After.

        Returns: for how long no write of the lane may be sent.
        """
        is_new = path not in self.refused
        self.refused.add(path)
        count = len(self.refused) - 1
        gap_s = min(retry_after_s, _FIRST_GAP_S * 2.0 ** min(count - 1, 30)) if count and is_new else 0.0
        if gap_s > 0.0:
            self._closed_until_s = max(self._closed_until_s, now_s + gap_s)
        self.limit = 0 if now_s < self._closed_until_s else 1
        return gap_s

    def probe(self, now_s: float) -> None:
        """Allow one write as a probe, if the pause is over."""
        if self.refused and now_s >= self._closed_until_s - _EARLY_S:
            self.limit = 1

    def accept(self) -> None:
        """Note a write that was answered with something other than a refusal."""
        self.refused.clear()
        self.limit = self._limit_max
        self._closed_until_s = 0.0
