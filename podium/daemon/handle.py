"""What the daemon lends to plugins."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from podium.cluster import Cache, Snapshot
from podium.framework.interface import ApiClient, Lister, Preemptions
from podium.kube.informer import InformerSet
from podium.kube.resource_types import ObjectT, ResourceType
from podium.lib.clock import Clock


@dataclass(frozen=True, slots=True)
class PluginHandle:
    """Implements `podium.framework.interface.Handle`."""

    clock: Clock
    random: Random
    client: ApiClient
    preemptions: Preemptions
    cache: Cache
    informers: InformerSet

    def snapshot(self) -> Snapshot:
        """The snapshot that the current attempt decides on."""
        return self.cache.snapshot()

    def lister(self, resource: ResourceType[ObjectT]) -> Lister[ObjectT]:
        """The informer of that kind, which is watched from the start if a plugin has asked for it."""
        return self.informers.informer(resource)
