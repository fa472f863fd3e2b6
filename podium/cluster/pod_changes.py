"""Pods that came and went, so that who looks at an earlier state can reckon back to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from podium.lib.change_log import ChangeLog
from podium.objects.core import Pod


class PodChange(NamedTuple):
    """A pod that came to a row (+1) or went from it (-1)."""

    row: int
    pod: Pod
    sign: int


PodChanges: TypeAlias = ChangeLog[PodChange]


def undone(changes: Sequence[PodChange]) -> Iterable[PodChange]:
    """What takes the changes back."""
    return (PodChange(row, pod, -sign) for row, pod, sign in reversed(changes))
