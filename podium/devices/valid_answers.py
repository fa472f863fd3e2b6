"""The answers to one question about devices that are still valid, by row of a cluster's nodes.

Owns which of them a change concerns: allocations and releases those of the nodes that reach the pool, a changed slice
all of them. The pools of a node keep every answer with the version that it was found at (`devices.pools`); checking it
there costs several look-ups, and hundreds of nodes are asked for each pod.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from podium.devices.allocated import ANY_POOL, AllocatedDevices
from podium.devices.inventory import Inventory
from podium.devices.pools import NodePools
from podium.lib.change_log import ChangeLog
from podium.objects.core import Node


class ClusterNodes(Protocol):
    """The nodes of a cluster by row; `podium.cluster.Snapshot` implements it."""

    @property
    def nodes(self) -> Sequence[Node | None]:
        """The node of each row."""

    @property
    def node_changes(self) -> ChangeLog[int]:
        """The rows whose node was replaced, in order."""


class RowAnswers(NamedTuple):
    """The valid answers of some rows.

    Attributes:
        answers: the answer of each row; None where a search has to find it.
        are_allocations: whether the answer is the allocations of the claims.
    """

    answers: NDArray[np.object_]
    are_allocations: NDArray[np.bool_]


class ValidAnswers:
    """The valid answers to one question in one inventory. An answer is of a node object: another one has none yet.

    Args:
        devices_in_use: the devices in use, on which the answers depend.
    """

    def __init__(self, question: Hashable, inventory: Inventory, devices_in_use: AllocatedDevices) -> None:
        self._question = question
        self._inventory = inventory
        self._devices_in_use = devices_in_use
        self._nodes: list[Node | None] = []
        self._answers: NDArray[np.object_] = np.empty(0, np.object_)
        # Whether the answer is valid for the node that the row has in the cluster asked about last.
        self._are_current: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._are_allocations: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._cluster: ClusterNodes | None = None
        self._nodes_seen = 0
        self._rows_of_pool: dict[tuple[str, str], set[int]] = {}
        self._seen = self._version = -1

    def is_about(self, inventory: Inventory, devices_in_use: AllocatedDevices) -> bool:
        """Return whether these answers are of that inventory and of those devices in use."""
        return self._inventory is inventory and self._devices_in_use is devices_in_use

    def of_rows(self, rows: NDArray[np.intp], cluster: ClusterNodes) -> RowAnswers:
        """Return the answers of these rows of a cluster."""
        self._drop_outdated(len(cluster.nodes))
        self._follow(cluster)
        # No step of Python is taken for a valid answer: there are hundreds of them for each pod.
        for row in rows[~self._are_current.take(rows)].tolist():
            self._look_up(row, cluster.nodes[row])
        return RowAnswers(self._answers.take(rows), self._are_allocations.take(rows))

    def _follow(self, cluster: ClusterNodes) -> None:
        """Have the rows whose node may have been replaced looked up again: of another cluster all of them."""
        changes = cluster.node_changes.since(self._nodes_seen) if cluster is self._cluster else None
        if changes is None:
            self._are_current[:] = False
        elif changes:
            self._are_current[[*changes]] = False
        self._cluster, self._nodes_seen = cluster, cluster.node_changes.end

    def _look_up(self, row: int, node: Node | None) -> None:
        if node is None or node is not self._nodes[row]:
            answer = self._from_pools(row, node)
            self._nodes[row], self._answers[row] = (None, None) if answer is None else (node, answer)
            self._are_allocations[row] = isinstance(answer, tuple)
        self._are_current[row] = self._nodes[row] is not None

    def _from_pools(self, row: int, node: Node | None) -> Any:
        if node is None:
            return None
        metadata = node.metadata
        entry = self._inventory.derived.get(metadata.name)
        # Labels are compared by identity here: with equal ones a search looks closer.
        if entry is None or entry[0] is not metadata.labels:
            return None
        pools: NodePools = entry[1]
        cache = pools.answers.get(self._question)
        if cache is None or cache[0] != self._devices_in_use.version(pools.names):
            return None
        for pool in pools.names:
            self._rows_of_pool.setdefault(pool, set()).add(row)
        return cache[1]

    def _drop_outdated(self, row_count: int) -> None:
        changes = self._devices_in_use.changes
        pools = None if self._inventory.version != self._version else changes.since(self._seen)
        if pools is None or ANY_POOL in pools:
            self._drop(range(len(self._nodes)))
            self._rows_of_pool.clear()
        else:
            for pool in pools:
                self._drop(self._rows_of_pool.pop(pool, ()))
        missing = row_count - len(self._nodes)
        if missing > 0:
            self._nodes += [None] * missing
            self._answers = np.append(self._answers, np.full(missing, None, np.object_))
            self._are_current = np.append(self._are_current, np.zeros(missing, np.bool_))
            self._are_allocations = np.append(self._are_allocations, np.zeros(missing, np.bool_))
        self._seen, self._version = changes.end, self._inventory.version

    def _drop(self, rows: Iterable[int]) -> None:
        for row in rows:
            self._nodes[row] = self._answers[row] = None
            self._are_current[row] = self._are_allocations[row] = False
