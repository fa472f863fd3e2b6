"""The deadlines of many things under way, with one timer for all of them.

Owns when something is given up. A timer of its own would cost each request about 3 us, and hardly any is ever due.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Deadlines(Generic[T]):
    """What is under way on the running loop, and when each is given up.

    Args:
        give_up: called once for each whose deadline is over; it has ended then.
    """

    def __init__(self, give_up: Callable[[T], None]) -> None:
        self._give_up = give_up
        self._ends_s: dict[T, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_s = math.inf

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._ends_s))

    def __len__(self) -> int:
        return len(self._ends_s)

    def start(self, item: T, ends_s: float) -> None:
        """Note what has begun, and its deadline on the loop's clock."""
        self._ends_s[item] = ends_s
        if ends_s < self._wakes_s:
            self._set_timer(ends_s)

    def end(self, item: T) -> None:
        """Forget what has ended, if it is still noted."""
        self._ends_s.pop(item, None)

    def _set_timer(self, at_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_s = at_s
        self._timer = asyncio.get_running_loop().call_at(at_s, self._look)

    def _look(self) -> None:
        """Give up what is due, and set the timer for the next deadline."""
        now_s, self._timer = max(asyncio.get_running_loop().time(), self._wakes_s), None
        self._wakes_s = math.inf
        for item in [item for item, ends_s in self._ends_s.items() if ends_s <= now_s]:
            self.end(item)
            self._give_up(item)
        if self._ends_s:
            self._set_timer(min(self._ends_s.values()))
