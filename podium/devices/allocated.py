"""Which devices are allocated to claims, and how much of their capacity.

Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go, v1.36.2. As upstream, devices
are not counted: a device that two claims wrongly hold is free when the first claim goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from podium.devices.inventory import DeviceID
from podium.objects.claims import AllocationResult, DeviceRequestAllocationResult
from podium.objects.core import RawQuantity
from podium.objects.quantity import QuantityError, parse


class ConsumedCapacity:
    """How much of its capacities is taken of each shared device, in billionths.

    Args:
        base: what has been taken as well.

    Invariant: a device whose amounts have all become zero has no entry.
    """

    __slots__ = ("_amounts", "_base")

    def __init__(self, base: ConsumedCapacity | None = None) -> None:
        self._amounts: dict[DeviceID, dict[str, int]] = {}
        self._base = base

    def __contains__(self, device: DeviceID) -> bool:
        """Whether some of the device has been taken."""
        return device in self._amounts or (self._base is not None and device in self._base)

    def of(self, device: DeviceID) -> Mapping[str, int]:
        """What has been taken of a device, by capacity."""
        own = self._amounts.get(device, {})
        if self._base is None:
            return own
        total = dict(self._base.of(device))
        for name, amount in own.items():
            total[name] = total.get(name, 0) + amount
        return total

    def add(self, device: DeviceID, amounts: Mapping[str, int]) -> None:
        """Take some of a device. Without amounts it is only marked as taken."""
        own = self._amounts.setdefault(device, {})
        for name, amount in amounts.items():
            own[name] = own.get(name, 0) + amount

    def remove(self, device: DeviceID, amounts: Mapping[str, int]) -> None:
        """Give some of a device back."""
        own = self._amounts.get(device)
        if own is None:
            return
        for name, amount in amounts.items():
            own[name] = own.get(name, 0) - amount
        if not any(own.values()):
            del self._amounts[device]


class AllocatedDevices:
    """The devices that allocations of claims hold.

    Args:
        base: devices that are held as well; it may change.
    """

    __slots__ = ("_base", "_changes", "_dedicated", "_shares", "consumed")

    def __init__(self, base: AllocatedDevices | None = None) -> None:
        self._base = base
        self._changes: dict[tuple[str, str], int] = {} if base is None else base._changes
        self._dedicated: set[DeviceID] = set()
        self._shares: dict[DeviceID, set[str]] = {}
        self.consumed: ConsumedCapacity = ConsumedCapacity(None if base is None else base.consumed)

    def version(self, pools: Iterable[tuple[str, str]]) -> int:
        """How often devices of these pools, given by driver and name, were allocated or freed, the base's included."""
        count = 0
        for pool in pools:
            count += self._changes.get(pool, 0)
        return count

    def is_dedicated(self, device: DeviceID) -> bool:
        """Whether a claim has the device for itself."""
        return device in self._dedicated or (self._base is not None and self._base.is_dedicated(device))

    def is_allocated(self, device: DeviceID) -> bool:
        """Whether any claim has the device or a share of it."""
        if device in self._dedicated or device in self._shares or device in self.consumed:
            return True
        return self._base is not None and self._base.is_allocated(device)

    def add(self, allocation: AllocationResult) -> None:
        """A claim got these devices."""
        for device, result in _counted(allocation):
            self._note_change(device)
            if result.share_id is None:
                self._dedicated.add(device)
                continue
            self._shares.setdefault(device, set()).add(result.share_id)
            if result.consumed_capacity:
                self.consumed.add(device, _amounts(result.consumed_capacity))

    def remove(self, allocation: AllocationResult) -> None:
        """A claim no longer has these devices."""
        for device, result in _counted(allocation):
            self._note_change(device)
            if result.share_id is None:
                self._dedicated.discard(device)
                continue
            shares = self._shares.get(device, set())
            shares.discard(result.share_id)
            if not shares:
                self._shares.pop(device, None)
            if result.consumed_capacity:
                self.consumed.remove(device, _amounts(result.consumed_capacity))

    def _note_change(self, device: DeviceID) -> None:
        pool = (device.driver, device.pool)
        self._changes[pool] = self._changes.get(pool, 0) + 1


def _counted(allocation: AllocationResult) -> Iterator[tuple[DeviceID, DeviceRequestAllocationResult]]:
    """The results that keep a device from others: administrators' access does not."""
    for result in allocation.devices.results:
        if not result.admin_access:
            yield DeviceID(result.driver, result.pool, result.device), result


def _amounts(capacity: Mapping[str, RawQuantity]) -> dict[str, int]:
    """The amounts in billionths. One that cannot be parsed, which no API server admits, counts for nothing."""
    amounts = {}
    for name, raw in capacity.items():
        with suppress(QuantityError):
            amounts[name] = parse(raw).nano_value
    return amounts
