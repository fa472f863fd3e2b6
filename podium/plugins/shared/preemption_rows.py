"""The rows on which a plugin that preempts tries evictions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.framework import contract as fwk

_UNSCHEDULABLE: Final = int(fwk.Code.UNSCHEDULABLE)


def rows_to_try(nodes: fwk.FilteredNodes, snapshot: Snapshot, loops_on: Collection[str]) -> tuple[Rows, Rows]:
    """Return the rows where evictions may help, and those of them that are held back to break a loop.

    Where a rejection cannot be resolved, evictions do not help.

    Args:
        loops_on: the names of the nodes to hold back.

    Shape: parts of the snapshot's rows, in its order.
    """
    rows = snapshot.order[nodes.codes().take(snapshot.order) == _UNSCHEDULABLE]
    if not loops_on:
        return rows, rows[:0]
    is_held_back = np.isin(rows, [row for name in loops_on if (row := snapshot.row_of.get(name)) is not None])
    return rows[~is_held_back], rows[is_held_back]
