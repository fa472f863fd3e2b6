"""Tracks the devices that are allocated to claims, and their consumed capacity.

Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go, v1.36.2.
Differs: a device that two claims hold is free when both have gone, upstream's when the first has: a watch may show that
a claim had the device, and has gone, after another claim has got it. What cannot be read of an allocation counts as
much as it may stand for: an empty driver, pool or device for any, and a share of unknown size for the whole device.
Upstream does not see such a claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from podium.devices.inventory import DeviceID
from podium.lib.change_log import ChangeLog
from podium.objects.claims import AllocationResult, DeviceRequestAllocationResult
from podium.objects.quantity import QuantityError, parse

ANY_POOL: Final = ("", "")
"""Stands for all pools, where a change may be of any."""
_CHANGES_KEPT: Final = 4096


class ConsumedCapacity:
    """The consumed capacities of each shared device, in billionths.

    Args:
        base: what has been taken as well.

    Invariant: a device whose amounts have all become zero has no entry.
    """

    __slots__ = ("_amounts", "_base")

    def __init__(self, base: ConsumedCapacity | None = None) -> None:
        self._amounts: dict[DeviceID, dict[str, int]] = {}
        self._base = base

    def __contains__(self, device: DeviceID) -> bool:
        """Return True if part of the device is taken."""
        return device in self._amounts or (self._base is not None and device in self._base)

    def of(self, device: DeviceID) -> Mapping[str, int]:
        """Return the consumed amounts of a device, by capacity."""
        device_amounts = self._amounts.get(device, {})
        if self._base is None:
            return device_amounts
        total = dict(self._base.of(device))
        for name, amount in device_amounts.items():
            total[name] = total.get(name, 0) + amount
        return total

    def add(self, device: DeviceID, amounts: Mapping[str, int]) -> None:
        """Take some of a device. Without amounts it is only marked as taken."""
        device_amounts = self._amounts.setdefault(device, {})
        for name, amount in amounts.items():
            device_amounts[name] = device_amounts.get(name, 0) + amount

    def remove(self, device: DeviceID, amounts: Mapping[str, int]) -> None:
        """Give some of a device back."""
        device_amounts = self._amounts.get(device)
        if device_amounts is None:
            return
        for name, amount in amounts.items():
            device_amounts[name] = device_amounts.get(name, 0) - amount
        # As upstream: an entry whose sums are all zero is dropped.
        if not any(device_amounts.values()):
            del self._amounts[device]


class AllocatedDevices:
    """The devices that allocations of claims hold.

    Args:
        base: devices that are held as well; it may change.

    Attributes:
        changes: the pools, by driver and name, in which devices were allocated or released, the base's included.
            A device that one allocation releases while another one holds it is not released.
    """

    __slots__ = ("_base", "_changes", "_dedicated", "_holders", "_shares", "_unclear", "changes", "consumed")

    def __init__(self, base: AllocatedDevices | None = None) -> None:
        self._base = base
        self._changes: dict[tuple[str, str], int] = {} if base is None else base._changes
        self.changes: ChangeLog[tuple[str, str]] = ChangeLog(_CHANGES_KEPT) if base is None else base.changes
        # By how many exclusive allocations a device is held, the base's and those above it included: while its claim
        # is written, an allocation is counted in one place after the other.
        self._holders: Counter[DeviceID] = Counter() if base is None else base._holders
        self._dedicated: Counter[DeviceID] = Counter()
        self._unclear: Counter[DeviceID] = Counter()
        """Devices of claims whose allocation is partly unreadable, without the unreadable parts."""
        self._shares: dict[DeviceID, set[str]] = {}
        self.consumed: ConsumedCapacity = ConsumedCapacity(None if base is None else base.consumed)

    def version(self, pools: Iterable[tuple[str, str]]) -> int:
        """Count the allocations and releases in these pools, given by driver and name, the base's included."""
        count_of = self._changes.get
        count = count_of(ANY_POOL, 0)
        for pool in pools:
            count += count_of(pool, 0)
        return count

    def is_dedicated(self, device: DeviceID) -> bool:
        """Return True if a claim holds the device exclusively."""
        layer: AllocatedDevices | None = self
        while layer is not None:
            if device in layer._dedicated or (layer._unclear and layer._may_be_held(device)):
                return True
            layer = layer._base
        return False

    def is_allocated(self, device: DeviceID) -> bool:
        """Return True if any claim holds the device or a share of it."""
        if device in self._dedicated or device in self._shares or device in self.consumed:
            return True
        if self._unclear and self._may_be_held(device):
            return True
        return self._base is not None and self._base.is_allocated(device)

    def has_shares(self, device: DeviceID) -> bool:
        """Return True if any claim holds a share of the device."""
        return device in self._shares or (self._base is not None and self._base.has_shares(device))

    def add(self, allocation: AllocationResult) -> None:
        """Note that a claim got these devices."""
        for device, result in _exclusive_results(allocation):
            # A name is missing: the allocation may hold any device with the names that it has.
            if not all(device):
                self._note_change(device)
                self._unclear[device] += 1
                continue
            amounts = _amounts(result)
            # Without a readable amount nothing can be known to be left, so the device counts as taken.
            if result.share_id is None or amounts is None:
                self._dedicated[device] += 1
                self._holders[device] += 1
                if self._holders[device] == 1:
                    self._note_change(device)
                continue
            self._note_change(device)
            self._shares.setdefault(device, set()).add(result.share_id)
            if amounts:
                self.consumed.add(device, amounts)

    def remove(self, allocation: AllocationResult) -> None:
        """Note that a claim no longer has these devices."""
        for device, result in _exclusive_results(allocation):
            if not all(device):
                self._note_change(device)
                self._unclear[device] -= 1
                # Drops counts of zero, or devices would remain held.
                self._unclear = +self._unclear
                continue
            amounts = _amounts(result)
            if result.share_id is None or amounts is None:
                _take_one(self._dedicated, device)
                _take_one(self._holders, device)
                if device not in self._holders:
                    self._note_change(device)
                continue
            self._note_change(device)
            shares = self._shares.get(device, set())
            shares.discard(result.share_id)
            if not shares:
                self._shares.pop(device, None)
            if amounts:
                self.consumed.remove(device, amounts)

    def _may_be_held(self, device: DeviceID) -> bool:
        """Return True if it may be one of the devices that an unreadable allocation holds."""
        return any(
            all(part in ("", name) for part, name in zip(pattern, device, strict=True)) for pattern in self._unclear
        )

    def _note_change(self, device: DeviceID) -> None:
        pool = (device.driver, device.pool) if device.driver and device.pool else ANY_POOL
        self._changes[pool] = self._changes.get(pool, 0) + 1
        self.changes.append(pool)


def _take_one(counts: Counter[DeviceID], device: DeviceID) -> None:
    """Count one less, and keep no count below one."""
    counts[device] -= 1
    if counts[device] <= 0:
        del counts[device]


def _exclusive_results(allocation: AllocationResult) -> Iterator[tuple[DeviceID, DeviceRequestAllocationResult]]:
    """Yield the results that keep a device from others: administrators' access does not."""
    for result in allocation.devices.results:
        if not result.admin_access:
            yield DeviceID(result.driver, result.pool, result.device), result


def _amounts(result: DeviceRequestAllocationResult) -> dict[str, int] | None:
    """Return the amounts in billionths; None if one cannot be parsed, so that the remaining amount is unknown."""
    try:
        return {name: parse(raw).nano_value for name, raw in result.consumed_capacity.items()}
    except QuantityError:
        return None
