"""The answers to one question about devices that are still valid, by row of a cluster's nodes.

Owns which of them a change concerns: allocations and releases those of the nodes that reach the pool, a changed slice
all of them. The pools of a node keep every answer with the version that it was found at (`devices.pools`); checking it
there costs several look-ups, and hundreds of nodes are asked for each pod.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import compress, count
from operator import is_not
from typing import Any

from podium.devices.allocated import ANY_POOL, AllocatedDevices
from podium.devices.inventory import Inventory
from podium.devices.pools import NodePools
from podium.objects.core import Node


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
        self._answers: list[Any] = []
        self._rows_of_pool: dict[tuple[str, str], set[int]] = {}
        self._seen = self._version = -1

    def is_about(self, inventory: Inventory, devices_in_use: AllocatedDevices) -> bool:
        """Return whether these answers are of that inventory and of those devices in use."""
        return self._inventory is inventory and self._devices_in_use is devices_in_use

    def of_rows(self, rows: Sequence[int], nodes: Sequence[Node | None]) -> list[Any]:
        """Return the answer of each of the rows; None where a search has to find it.

        Args:
            nodes: the node of each row of the cluster.
        """
        self._drop_outdated(len(nodes))
        former_nodes, answers = self._nodes, self._answers
        row_answers = [*map(answers.__getitem__, rows)]
        # No step of Python is taken for a valid answer: there are hundreds of them for each pod.
        are_others = map(is_not, map(nodes.__getitem__, rows), map(former_nodes.__getitem__, rows))
        for position in [*compress(count(), are_others)]:
            row_answers[position] = self._from_pools(rows[position], nodes[rows[position]])
        return row_answers

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
        self._nodes[row], self._answers[row] = node, cache[1]
        for pool in pools.names:
            self._rows_of_pool.setdefault(pool, set()).add(row)
        return cache[1]

    def _drop_outdated(self, row_count: int) -> None:
        changes, nodes = self._devices_in_use.changes, self._nodes
        pools = None if self._inventory.version != self._version else changes.since(self._seen)
        if pools is None or ANY_POOL in pools:
            nodes.clear()
            self._answers.clear()
            self._rows_of_pool.clear()
        else:
            for pool in pools:
                for row in self._rows_of_pool.pop(pool, ()):
                    nodes[row] = None
        missing = row_count - len(nodes)
        if missing > 0:
            nodes += [None] * missing
            self._answers += [None] * missing
        self._seen, self._version = changes.end, self._inventory.version
