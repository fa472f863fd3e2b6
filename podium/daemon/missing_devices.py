"""Explains which devices a pod lacks on a few nodes, as they are now.

Never holds up scheduling: allocations are gathered in turns, and the rest ends or is given up in some milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from anyio.lowlevel import checkpoint

from podium.cluster import Cache
from podium.engine.device_refusals import DeviceGroup, group_by_devices
from podium.framework.profile.runtime import Framework
from podium.objects.core import Node, Pod
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.plugins.shared.cluster_devices import Holders


class Nodes(Protocol):
    """The nodes as the API server has sent them."""

    def get(self, key: str) -> Node | None:
        """Return the node of that name."""


class MissingDevices:
    """Explains why nodes have no devices for a pod.

    Args:
        frameworks: the profiles by scheduler name, as they are now.
    """

    def __init__(self, frameworks: Callable[[], Mapping[str, Framework]], nodes: Nodes) -> None:
        self._frameworks = frameworks
        self._nodes = nodes

    async def on_nodes(self, pod: Pod, names: Sequence[str]) -> tuple[DeviceGroup, ...]:
        """Return the nodes by what the pod's claims lack there."""
        framework = self._frameworks().get(pod.spec.scheduler_name)
        plugin = None if framework is None else framework.plugins.get(DynamicResources.name)
        if not isinstance(plugin, DynamicResources):
            return ()
        holders = await _gather(plugin)
        cache = Cache(lambda *_: None)
        for node in filter(None, map(self._nodes.get, names)):
            cache.put_node(node)
        snapshot = cache.snapshot()
        refusals = plugin.explain_nodes(pod, snapshot, snapshot.order, holders)
        return group_by_devices({snapshot.name(row): refusal for row, refusal in refusals.items()})


async def _gather(plugin: DynamicResources) -> Holders:
    steps = plugin.holders()
    try:
        while True:
            next(steps)
            await checkpoint()
    except StopIteration as end:
        holders: Holders = end.value
        return holders
