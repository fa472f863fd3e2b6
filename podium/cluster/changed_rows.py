"""Which rows of a snapshot have other pods than when a reader asked last, for values that are derived row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress, count
from operator import is_not

from podium.cluster.snapshot import Snapshot
from podium.objects.core import Pod


class ChangedRows:
    """One reader's view of the pods of each row.

    Cost: constant for each change; 20 ns for each row of another snapshot than before.
    """

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._seen = 0
        self._pods: list[Mapping[str, Pod] | None] = []

    def take(self, snapshot: Snapshot) -> Sequence[int]:
        """Return the rows whose pods may have changed since the last call, at first all of them."""
        self._pods += [None] * (len(snapshot.pods) - len(self._pods))
        log = snapshot.pod_counts.changes
        changes = log.since(self._seen) if snapshot is self._snapshot else None
        self._snapshot, self._seen = snapshot, log.end
        if changes is None:
            rows = [*compress(count(), map(is_not, snapshot.pods, self._pods))]
        else:
            rows = [*{change.row for change in changes}]
        for row in rows:
            self._pods[row] = snapshot.pods[row]
        return rows
