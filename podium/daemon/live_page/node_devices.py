"""Counts the devices that each node can reach, and those of them that claims have.

Never allocates, and never searches: a node is counted again only after a change of its slices or allocations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from podium.daemon.queue_page import sendable
from podium.devices.pools import NodePools, pools_of_node
from podium.framework.profile.runtime import Framework
from podium.objects.core import Node
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.plugins.shared.cluster_devices import ClusterDevices

DeviceCounts: TypeAlias = Mapping[str, tuple[int, int]]
"""By driver how many devices are allocated, wholly or in part, and how many there are."""

_NONE: Final[DeviceCounts] = {}


class NodeDevices:
    """Counts devices by node.

    Args:
        frameworks: the profiles by scheduler name, as they are now.
    """

    def __init__(self, frameworks: Callable[[], Mapping[str, Framework]]) -> None:
        self._frameworks = frameworks
        self._counts: dict[str, tuple[NodePools, int, DeviceCounts]] = {}

    def cluster_devices(self) -> ClusterDevices | None:
        """Return the devices of the cluster; None if no profile allocates any."""
        plugins = (framework.plugins.get(DynamicResources.name) for framework in self._frameworks().values())
        return next((plugin.devices for plugin in plugins if isinstance(plugin, DynamicResources)), None)

    def on_node(self, devices: ClusterDevices, node: Node) -> DeviceCounts:
        """Return by driver how many devices the node can reach, and how many of them are allocated."""
        pools = pools_of_node(devices.inventory(), node.name, node.metadata.labels)
        if not pools.pools:
            self._counts.pop(node.name, None)
            return _NONE
        holdings = devices.allocated_devices()
        version, former = holdings.version(pools.names), self._counts.get(node.name)
        if former is not None and former[0] is pools and former[1] == version:
            return former[2]
        counts: dict[str, tuple[int, int]] = {}
        for pool in pools.pools:
            driver = sendable(pool.driver)
            taken_count, total = counts.get(driver, (0, 0))
            taken_count += sum(holdings.is_allocated(device.id) for device in pool.devices)
            counts[driver] = taken_count, total + len(pool.devices)
        self._counts[node.name] = pools, version, counts
        return counts

    def forget_others(self, names: Mapping[str, object]) -> None:
        """Forget the nodes that are not among these."""
        for name in self._counts.keys() - names.keys():
            del self._counts[name]
