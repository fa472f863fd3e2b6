"""The lowest priority on each node, by which preemption passes over nodes that have no victims.

Owns what of earlier attempts still holds. Never decides which pods are protected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import compress, count
from operator import is_not
from typing import Final

import numpy as np

from podium.cluster import IntArray, Snapshot
from podium.objects.core import Pod

_NO_PODS: Final = np.iinfo(np.int64).max


class LowestPriorities:
    """The lowest priority among the pods of each row, which is only looked for where pods have changed.

    Cost: about 50 ns for each pod on a row that has changed; and 20 ns for each row of another snapshot than before.
    """

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._seen = 0
        self._pods: list[Mapping[str, Pod] | None] = []
        self._lowest: IntArray = np.empty(0, np.int64)

    def of(self, snapshot: Snapshot) -> IntArray:
        """Return the lowest priority by row. Rows without pods have a higher one than any pod.

        Shape: one entry per row of the snapshot.
        """
        missing = len(snapshot.pods) - len(self._pods)
        if missing > 0:
            self._pods += [None] * missing
            self._lowest = np.append(self._lowest, np.full(missing, _NO_PODS))
        for row in self._changed_rows(snapshot):
            pods = self._pods[row] = snapshot.pods[row]
            self._lowest[row] = min([pod.spec.priority or 0 for pod in pods.values()], default=_NO_PODS)
        return self._lowest[: len(snapshot.pods)]

    def _changed_rows(self, snapshot: Snapshot) -> Iterable[int]:
        """Return the rows whose pods may have changed."""
        log = snapshot.pod_counts.changes
        changes = log.since(self._seen) if snapshot is self._snapshot else None
        self._snapshot, self._seen = snapshot, log.end
        if changes is None:
            return [*compress(count(), map(is_not, snapshot.pods, self._pods))]
        return {change.row for change in changes}
