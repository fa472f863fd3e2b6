"""The counters that devices of a pool share.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, v0.36.2 and
v0.37.2.
Differs: older minors keep counters by the pool's name alone. Pools of two drivers that have the same name, as those of
one node usually do, then pay with each other's counters.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from podium.devices.allocated import AllocatedDevices
from podium.devices.interruptible import Interruptible, run_uninterrupted
from podium.devices.inventory import Counters, SliceDevice
from podium.devices.pools import Pool

_DEVICES_PER_TURN: Final = 128


class AvailableCounters:
    """The counters that allocated devices leave in each pool, computed when a search first needs them."""

    __slots__ = ("_allocated", "_by_pool")

    def __init__(self, devices_in_use: AllocatedDevices) -> None:
        self._allocated = devices_in_use
        self._by_pool: dict[tuple[str, str], Counters] = {}

    def of(self, pool: Pool) -> Counters:
        """Return the counters of the pool."""
        run_uninterrupted(self.read(pool))
        return self._by_pool[pool.id]

    def read(self, pool: Pool) -> Interruptible[None]:
        """Compute what `of` returns. Yields where it can be interrupted."""
        if pool.id in self._by_pool:
            return
        counters_left = {name: dict(counters) for name, counters in pool.counters.items()}
        for number, device in enumerate(chain(pool.devices, pool.unreachable_devices), 1):
            if not number % _DEVICES_PER_TURN:
                yield None
            if device.consumes and self._allocated.is_allocated(device.id):
                for counter_set, counter, amount in device.consumes:
                    counters_left[counter_set][counter] -= amount
        self._by_pool[pool.id] = counters_left


class ConsumedCounters:
    """The counters that the chosen devices of one search consume."""

    __slots__ = ("_by_pool", "available")

    def __init__(self, available: AvailableCounters) -> None:
        self.available = available
        self._by_pool: dict[tuple[str, str], dict[tuple[str, str], int]] = {}

    def charge(self, device: SliceDevice, pool: Pool) -> bool:
        """Consume what the device needs. If a counter of the pool does not suffice, charge nothing and return False."""
        usage = self._by_pool.setdefault(pool.id, {})
        self._add(usage, device, 1)
        for counter_set, counters in self.available.of(pool).items():
            for counter, available in counters.items():
                if available < usage.get((counter_set, counter), 0):
                    self._add(usage, device, -1)
                    return False
        return True

    def give_back(self, device: SliceDevice, pool: Pool) -> None:
        """Undo a charge."""
        self._add(self._by_pool.setdefault(pool.id, {}), device, -1)

    @staticmethod
    def _add(usage: dict[tuple[str, str], int], device: SliceDevice, factor: int) -> None:
        for counter_set, counter, amount in device.consumes:
            key = counter_set, counter
            usage[key] = usage.get(key, 0) + factor * amount
