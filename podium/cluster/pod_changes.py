"""Added and removed pods, so that counts of an earlier state can be reconstructed by undoing the changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from podium.lib.change_log import ChangeLog
from podium.objects.core import Pod

LINE_MAX: Final = 32
"""How many forks, each of the one before it, are counted by what has changed in between. The next one is counted anew:
otherwise a cluster that is forked before each of its changes would keep all its states alive, and ask them all."""


class PodChange(NamedTuple):
    """A pod that was added to a row (+1) or removed from it (-1)."""

    row: int
    pod: Pod
    sign: int


PodChanges: TypeAlias = ChangeLog[PodChange]


def undone(changes: Sequence[PodChange]) -> Iterable[PodChange]:
    """Return the changes that undo these, the latest first."""
    return (PodChange(row, pod, -sign) for row, pod, sign in reversed(changes))


def looks_the_same(former_pod: Pod, pod: Pod) -> bool:
    """Return True if nothing has changed that an index depends on: labels, terms, volumes, termination."""
    return (
        former_pod.spec is pod.spec
        and former_pod.metadata.labels == pod.metadata.labels
        and former_pod.is_terminating == pod.is_terminating
    )
