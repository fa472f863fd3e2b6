"""What the daemon lends to plugins."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from podium.cluster import Cache, Snapshot
from podium.framework.interface import ApiClient
from podium.lib.clock import Clock


@dataclass(frozen=True, slots=True)
class PluginHandle:
    """Implements `podium.framework.interface.Handle`."""

    clock: Clock
    random: Random
    client: ApiClient
    cache: Cache

    def snapshot(self) -> Snapshot:
        """The snapshot that the current attempt decides on."""
        return self.cache.snapshot()
