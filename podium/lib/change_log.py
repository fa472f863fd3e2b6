"""A numbered log of changes, so that a reader of an earlier state can catch up, or compute that state backwards."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class ChangeLog(Generic[T]):
    """Changes in order, numbered from 0; keeps at least the latest `count_min` ones."""

    __slots__ = ("_changes", "_count_min", "_first", "_length_max", "end")

    def __init__(self, count_min: int = sys.maxsize) -> None:
        self._count_min = count_min
        # Twice as many: dropping one at a time would move all others each time.
        self._length_max = 2 * count_min
        self._first = 0
        self._changes: list[T] = []
        self.end = 0
        """The number of the next change; read-only for users."""

    def append(self, change: T) -> None:
        """Add a change."""
        self._changes.append(change)
        self.end += 1
        if len(self._changes) > self._length_max:
            excess = len(self._changes) - self._count_min
            del self._changes[:excess]
            self._first += excess

    def branch(self) -> ChangeLog[T]:
        """Return a new log that continues the numbering, without the earlier changes."""
        twin: ChangeLog[T] = ChangeLog(self._count_min)
        twin._first = twin.end = self.end
        return twin

    def since(self, number: int) -> Sequence[T] | None:
        """Return the changes from that number on; None if some of them are no longer kept."""
        if number < self._first:
            return None
        return self._changes[number - self._first :] if number > self._first else self._changes
