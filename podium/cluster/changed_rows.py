"""Which rows of a snapshot have changed since a reader asked last, for values that are derived row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress, count
from operator import is_not

from podium.cluster.snapshot import Snapshot
from podium.objects.core import Node, Pod


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


class ReplacedRows:
    """One reader's view of the node of each row, and of the states of the pods there.

    Cost: as `ChangedRows`, for each of the two.
    """

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self._seen: Sequence[int] = ()
        self._nodes: list[Node | None] = []
        self._pods: list[Mapping[str, Pod] | None] = []

    def take(self, snapshot: Snapshot) -> Sequence[int]:
        """Return the rows where the node or a pod may have been replaced since the last call, at first all of them."""
        missing = len(snapshot.nodes) - len(self._nodes)
        if missing > 0:
            self._nodes += [None] * missing
            self._pods += [None] * missing
        logs = snapshot.node_changes, snapshot.usage_changes, snapshot.pod_updates
        is_same = snapshot is self.snapshot
        changes = [log.since(end) for log, end in zip(logs, self._seen, strict=True)] if is_same else None
        self.snapshot, self._seen = snapshot, [log.end for log in logs]
        if changes is None or None in changes:
            nodes = compress(count(), map(is_not, snapshot.nodes, self._nodes))
            pods = compress(count(), map(is_not, snapshot.pods, self._pods))
            rows = [*{*nodes, *pods}]
        else:
            rows = [*{row for log in changes if log is not None for row in log}]
        for row in rows:
            self._nodes[row], self._pods[row] = snapshot.nodes[row], snapshot.pods[row]
        return rows
