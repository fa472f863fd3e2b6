"""Numbers by node that are computed from listed objects, as columns of the snapshot.

Owns the rule for computing a number again: its node, or an object that names the node, has changed. Never knows what
the numbers mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, runtime_checkable

import numpy as np

from podium.cluster import IntArray, Snapshot
from podium.framework import contract as fwk
from podium.lib.change_log import ChangeLog
from podium.objects.resource_types import ObjectT


@runtime_checkable
class Logging(Protocol[ObjectT]):
    """A lister with a change log, as informers have."""

    def change_log(self) -> ChangeLog[ObjectT]:
        """Return the log of every object state that was added or removed since the log was first requested."""


def change_log_of(lister: fwk.Lister[ObjectT]) -> ChangeLog[ObjectT] | None:
    """Return the lister's change log; None if it has none, so that anything may have changed."""
    return lister.change_log() if isinstance(lister, Logging) else None


class NodeColumn(Generic[ObjectT]):
    """One number for each node.

    Args:
        log: the changes of the objects that the numbers are computed from: `change_log_of` their lister.
        node_of: the node that an object names.
        number_of: node name → number. It must depend on these objects only.

    Cost: a call of `number_of` for each node at first, then for each that has changed.
    """

    def __init__(
        self, log: ChangeLog[ObjectT] | None, node_of: Callable[[ObjectT], str], number_of: Callable[[str], int]
    ) -> None:
        self._log = log
        self._node_of = node_of
        self._number_of = number_of
        self._column: IntArray = np.zeros(0, np.int64)
        self._nodes: ChangeLog[int] | None = None
        self._nodes_seen = self._objects_seen = 0

    def over(self, snapshot: Snapshot) -> IntArray:
        """Return the numbers of all rows, 0 for rows without a node. It is read-only, and valid until the next change.

        Shape: one entry per row of the snapshot.
        """
        rows = self._rows_to_compute(snapshot)
        nodes = snapshot.nodes
        if rows is None or len(self._column) != len(nodes):
            numbers = (0 if node is None else self._number_of(node.name) for node in nodes)
            self._column = np.fromiter(numbers, np.int64, len(nodes))
        else:
            for row in rows:
                node = nodes[row]
                self._column[row] = 0 if node is None else self._number_of(node.name)
        return self._column

    def _rows_to_compute(self, snapshot: Snapshot) -> set[int] | None:
        """Return the rows to compute again; None for all. Forks share the node log of the original."""
        log, previous_nodes = self._log, self._nodes
        if log is None:
            return None
        nodes, objects = snapshot.node_changes.since(self._nodes_seen), log.since(self._objects_seen)
        self._nodes = snapshot.node_changes
        self._nodes_seen, self._objects_seen = self._nodes.end, log.end
        if previous_nodes is not self._nodes or nodes is None or objects is None:
            return None
        names = {self._node_of(item) for item in objects}
        return {*nodes, *(row for name in names if (row := snapshot.row_of.get(name)) is not None)}
