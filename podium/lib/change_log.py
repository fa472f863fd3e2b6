"""What happened, in order and numbered, so that who looks at an earlier state can catch up, or reckon back to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class ChangeLog(Generic[T]):
    """Changes in order, numbered from 0; at least the latest `kept` are remembered, all where it is None."""

    __slots__ = ("_changes", "_first", "_kept", "end")

    def __init__(self, kept: int | None = None) -> None:
        self._kept = kept
        self._first = 0
        self._changes: list[T] = []
        self.end = 0
        """The number that the next change will have; to be read only."""

    def append(self, change: T) -> None:
        """Note a change."""
        self._changes.append(change)
        self.end += 1
        if self._kept is not None and len(self._changes) > 2 * self._kept:
            dropped = len(self._changes) - self._kept
            del self._changes[:dropped]
            self._first += dropped

    def branch(self) -> ChangeLog[T]:
        """Another log that goes on from here, and remembers nothing from before."""
        twin: ChangeLog[T] = ChangeLog(self._kept)
        twin._first = twin.end = self.end
        return twin

    def since(self, number: int) -> Sequence[T] | None:
        """The changes from that number on, None if some of them are forgotten."""
        if number < self._first:
            return None
        return self._changes[number - self._first :] if number > self._first else self._changes
