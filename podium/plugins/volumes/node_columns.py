"""Numbers by node that are made of listed objects, as columns of the snapshot.

Owns when a number is made anew: where its node, or an object that names the node, has changed since. Never knows what
the numbers mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, runtime_checkable

import numpy as np

from podium.cluster import IntArray, Snapshot
from podium.framework.contract.interface import Lister
from podium.lib.change_log import ChangeLog
from podium.objects.resource_types import ObjectT


@runtime_checkable
class Logging(Protocol[ObjectT]):
    """A lister that can tell what has changed, as informers do."""

    def change_log(self) -> ChangeLog[ObjectT]:
        """Each state of an object that came or went since it was first asked for."""


def change_log_of(lister: Lister[ObjectT]) -> ChangeLog[ObjectT] | None:
    """The lister's changes; None where it does not tell, and anything may have changed since the last look."""
    return lister.change_log() if isinstance(lister, Logging) else None


class NodeColumn(Generic[ObjectT]):
    """One number for each node.

    Args:
        log: changes of the objects that the numbers are made of, `change_log_of` their lister.
        node_of: the node that an object names.
        number_of: the number of the node of that name; goes by such objects and nothing else.

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
        """The numbers of all rows, 0 where there is no node; to be read only, good until the next change."""
        rows = self._changed(snapshot)
        nodes = snapshot.nodes
        if rows is None or len(self._column) != len(nodes):
            numbers = (0 if node is None else self._number_of(node.name) for node in nodes)
            self._column = np.fromiter(numbers, np.int64, len(nodes))
        else:
            for row in rows:
                node = nodes[row]
                self._column[row] = 0 if node is None else self._number_of(node.name)
        return self._column

    def _changed(self, snapshot: Snapshot) -> set[int] | None:
        """The rows to look at again, None for all. Forks share their nodes, and so the log of them."""
        log, known = self._log, self._nodes
        if log is None:
            return None
        nodes, objects = snapshot.node_changes.since(self._nodes_seen), log.since(self._objects_seen)
        self._nodes = snapshot.node_changes
        self._nodes_seen, self._objects_seen = self._nodes.end, log.end
        if known is not self._nodes or nodes is None or objects is None:
            return None
        names = {self._node_of(each) for each in objects}
        return {*nodes, *(row for name in names if (row := snapshot.row_of.get(name)) is not None)}
