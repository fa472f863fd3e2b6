"""Sums over the pods on each node of amounts that the snapshot does not count.

Owns when a sum is computed again: the pods on its node have changed. Never knows what is summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.lib.change_log import ChangeLog
from podium.objects.core import Pod


class PodSums:
    """The sums by row.

    Args:
        count: how many amounts of each pod are summed up.
        amounts_of: the amounts of a pod. They must depend on its requests and limits alone.

    Cost: one step for each pod on the nodes that have changed; in a fork, for each pod on the rows that are asked for.
    """

    def __init__(self, count: int, amounts_of: Callable[[Pod], Sequence[int]]) -> None:
        self._count = count
        self._amounts_of = amounts_of
        self._sums: IntArray = np.zeros((count, 0), np.int64)
        self._usage: ChangeLog[int] | None = None
        self._usage_end = self._nodes_end = -1

    def over(self, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the sums of the rows. Shape: one row for each amount, one column for each of `rows`."""
        if snapshot.is_fork:
            columns = [self._sum(snapshot, row) for row in rows.tolist()]
            return np.array(columns, np.int64).reshape(len(columns), self._count).T
        usage, nodes = snapshot.usage_changes, snapshot.node_changes
        changes, node_changes = usage.since(self._usage_end), nodes.since(self._nodes_end)
        is_new = usage is not self._usage or self._sums.shape[1] != len(snapshot.nodes)
        if is_new or changes is None or node_changes is None:
            self._sums = np.zeros((self._count, len(snapshot.nodes)), np.int64)
            changed_rows = set(range(len(snapshot.nodes)))
        else:
            changed_rows = {*changes, *node_changes}
        for row in changed_rows:
            self._sums[:, row] = self._sum(snapshot, row)
        self._usage, self._usage_end, self._nodes_end = usage, usage.end, nodes.end
        return self._sums[:, rows]

    def _sum(self, snapshot: Snapshot, row: int) -> Sequence[int]:
        amounts = [self._amounts_of(pod) for pod in snapshot.pods[row].values()]
        return [sum(column) for column in zip(*amounts, strict=True)] if amounts else [0] * self._count
