"""Pods that came and went, so that who looks at an earlier state can reckon back to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podium.kube.objects import Pod


class PodChange(NamedTuple):
    """A pod that came to a row (+1) or went from it (-1)."""

    row: int
    pod: Pod
    sign: int


class PodChanges:
    """Changes in order, numbered from 0; at least the latest `kept` are remembered, all where it is None."""

    __slots__ = ("_changes", "_first", "_kept")

    def __init__(self, kept: int | None = None) -> None:
        self._kept = kept
        self._first = 0
        self._changes: list[PodChange] = []

    @property
    def end(self) -> int:
        """The number that the next change will have."""
        return self._first + len(self._changes)

    def append(self, change: PodChange) -> None:
        """Note a change."""
        self._changes.append(change)
        if self._kept is not None and len(self._changes) > 2 * self._kept:
            dropped = len(self._changes) - self._kept
            del self._changes[:dropped]
            self._first += dropped

    def since(self, number: int) -> Sequence[PodChange] | None:
        """The changes from that number on, None if some of them are forgotten."""
        if number < self._first:
            return None
        return self._changes[number - self._first :] if number > self._first else self._changes


def undone(changes: Sequence[PodChange]) -> Iterable[PodChange]:
    """What takes the changes back."""
    return (PodChange(row, pod, -sign) for row, pod, sign in reversed(changes))
