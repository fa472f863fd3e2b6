"""Which devices are allocated to claims, and how much of their capacity.

Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go, v1.36.2. As upstream, devices
are not counted: a device that two claims wrongly hold is free when the first claim goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from podium.devices.inventory import DeviceID
from podium.objects.claims import AllocationResult, DeviceRequestAllocationResult, ResourceClaim
from podium.objects.core import RawQuantity
from podium.objects.quantity import parse


class ConsumedCapacity:
    """How much of its capacities is taken of each shared device, in billionths.

    Invariant: a device whose amounts have all become zero has no entry.
    """

    __slots__ = ("_amounts",)

    def __init__(self) -> None:
        self._amounts: dict[DeviceID, dict[str, int]] = {}

    def __contains__(self, device: DeviceID) -> bool:
        """Whether some of the device has been taken."""
        return device in self._amounts

    def of(self, device: DeviceID) -> Mapping[str, int]:
        """What has been taken of a device, by capacity."""
        return self._amounts.get(device, {})

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
    """The devices that allocations of claims hold."""

    __slots__ = ("_dedicated", "_shares", "consumed")

    def __init__(self) -> None:
        self._dedicated: set[DeviceID] = set()
        self._shares: dict[DeviceID, set[str]] = {}
        self.consumed = ConsumedCapacity()

    @classmethod
    def of(cls, claims: Iterable[ResourceClaim]) -> AllocatedDevices:
        """What these claims hold."""
        allocated = cls()
        for claim in claims:
            if claim.status.allocation is not None:
                allocated.add(claim.status.allocation)
        return allocated

    def is_dedicated(self, device: DeviceID) -> bool:
        """Whether a claim has the device for itself."""
        return device in self._dedicated

    def is_allocated(self, device: DeviceID) -> bool:
        """Whether any claim has the device or a share of it."""
        return device in self._dedicated or device in self._shares or device in self.consumed

    def add(self, allocation: AllocationResult) -> None:
        """A claim got these devices."""
        for device, result in _counted(allocation):
            if result.share_id is None:
                self._dedicated.add(device)
                continue
            self._shares.setdefault(device, set()).add(result.share_id)
            if result.consumed_capacity:
                self.consumed.add(device, _amounts(result.consumed_capacity))

    def remove(self, allocation: AllocationResult) -> None:
        """A claim no longer has these devices."""
        for device, result in _counted(allocation):
            if result.share_id is None:
                self._dedicated.discard(device)
                continue
            shares = self._shares.get(device, set())
            shares.discard(result.share_id)
            if not shares:
                self._shares.pop(device, None)
            if result.consumed_capacity:
                self.consumed.remove(device, _amounts(result.consumed_capacity))


def _counted(allocation: AllocationResult) -> Iterator[tuple[DeviceID, DeviceRequestAllocationResult]]:
    """The results that keep a device from others: administrators' access does not."""
    for result in allocation.devices.results:
        if not result.admin_access:
            yield DeviceID(result.driver, result.pool, result.device), result


def _amounts(capacity: Mapping[str, RawQuantity]) -> dict[str, int]:
    return {name: parse(raw).nano_value for name, raw in capacity.items()}
