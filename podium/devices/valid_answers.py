"""The answers to one question about devices that still hold, by node.

Owns which of them a change concerns: allocations and releases those of the nodes that reach the pool, a changed slice
all of them. The pools of a node keep every answer with the version that it was found at (`devices.pools`); checking it
costs several look-ups, and hundreds of nodes are asked for each pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from podium.devices.allocated import ANY_POOL, AllocatedDevices
from podium.devices.inventory import Inventory
from podium.devices.pools import NodePools

LookUp: TypeAlias = Callable[[str, Mapping[str, str]], Any]
"""Returns the cached answer of a node, by its name and labels; None if there is none that is still valid."""


class ValidAnswers:
    """The valid answers to one question in one inventory.

    Args:
        devices_in_use: the devices in use, on which the answers depend.
    """

    def __init__(self, inventory: Inventory, devices_in_use: AllocatedDevices) -> None:
        self._inventory = inventory
        self._devices_in_use = devices_in_use
        self._by_node: dict[str, tuple[Mapping[str, str], Any]] = {}
        self._nodes_of_pool: dict[tuple[str, str], set[str]] = {}
        self._seen = self._version = -1

    def is_about(self, inventory: Inventory, devices_in_use: AllocatedDevices) -> bool:
        """Return whether these answers are of that inventory and of those devices in use."""
        return self._inventory is inventory and self._devices_in_use is devices_in_use

    def look_up(self, question: object) -> LookUp:
        """Return the look-up of the answers to the question, which is always the same one."""
        inventory, changes, by_node = self._inventory, self._devices_in_use.changes, self._by_node

        def look_up(node_name: str, labels: Mapping[str, str]) -> Any:
            # An attempt that was interrupted goes on with what has changed meanwhile.
            if changes.end != self._seen or inventory.version != self._version:
                self._drop_outdated()
            entry = by_node.get(node_name)
            if entry is not None and entry[0] is labels:
                return entry[1]
            return self._from_pools(question, node_name, labels)

        return look_up

    def _from_pools(self, question: object, node_name: str, labels: Mapping[str, str]) -> Any:
        entry = self._inventory.derived.get(node_name)
        if entry is None or entry[0] is not labels:
            return None
        pools: NodePools = entry[1]
        cache = pools.answers.get(question)
        if cache is None or cache[0] != self._devices_in_use.version(pools.names):
            return None
        self._by_node[node_name] = labels, cache[1]
        for pool in pools.names:
            self._nodes_of_pool.setdefault(pool, set()).add(node_name)
        return cache[1]

    def _drop_outdated(self) -> None:
        changes = self._devices_in_use.changes
        pools = None if self._inventory.version != self._version else changes.since(self._seen)
        if pools is None or ANY_POOL in pools:
            self._by_node.clear()
            self._nodes_of_pool.clear()
        else:
            for pool in pools:
                for node_name in self._nodes_of_pool.pop(pool, ()):
                    self._by_node.pop(node_name, None)
        self._seen, self._version = changes.end, self._inventory.version
