"""The cluster's devices according to its claims, classes and slices; all profiles share them (`Handle.shared`).

Owns the claims as assumed, the allocations that are decided and not yet written, the devices in use, the inventory of
devices, and the classes that provide extended resources. Each is kept up to date change by change. Never writes.

Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go, v1.36.2 and v1.37.2.
Differs: what an attempt sees as allocated is not copied; it contains what the watch shows during the attempt. An
allocation in flight that is given up requeues pods as one that is cleared; upstream's wait for the next flush.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from podium.devices import AllocatedDevices, DeviceID, Inventory
from podium.devices.class_table import ClassTable
from podium.devices.interruptible import Interruptible
from podium.devices.questions import Questions
from podium.framework import contract as fwk
from podium.objects import resource_types
from podium.objects.api_errors import UNDER_WAY_S
from podium.objects.claims import AllocationResult, ResourceClaim
from podium.objects.core import Pod
from podium.objects.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from podium.objects.resource_versions import is_older
from podium.objects.unreadable import UnreadableClaim
from podium.plugins.shared.claim_cache import ClaimCache
from podium.plugins.shared.device_observer import DeviceObserver
from podium.plugins.shared.followed import Followed

_AGAIN_S: Final = 5.0
_CLAIMS_PER_TURN: Final = 1000

Holders: TypeAlias = Mapping[DeviceID, Sequence[tuple[str, tuple[str, ...]]]]
"""By device: the claims that have it, each with the names of the pods that use it."""


@dataclass(slots=True)
class _InFlight:
    """An allocation that is decided and being written, and how many pods have decided on it.

    `is_simulated`: it was made in the simulation of a pod group, and can be reused by the other pods of the group.
    `is_shown`: the claim is shown with an allocation, so that its devices count as allocated anyway.
    """

    allocation: AllocationResult
    is_simulated: bool
    sharers: int = 1
    is_shown: bool = False


@dataclass(slots=True)
class DoubtedAllocation:
    """An allocation of a claim that the API server may have written, and until when it may still do so."""

    claim: ResourceClaim
    allocation: AllocationResult
    until_s: float


class ClusterDevices:
    """The devices of the cluster, who has them, and who is about to get them.

    Attributes:
        observer: receives the reports of plugins about devices.
        questions: the recent searches for devices; equal claims share their answers.
        lost: called with a claim's states before and after an allocation in flight was given up. No watch shows that.
    """

    def __init__(self, handle: fwk.Handle) -> None:
        self._rules = handle.release.devices
        self.observer = DeviceObserver()
        self.questions = Questions()
        self.lost: Callable[[ResourceClaim, ResourceClaim], None] = lambda *_: None
        self.claims = ClaimCache(handle.lister(resource_types.RESOURCE_CLAIMS))
        self.claims.add_handler(self)
        self._classes = handle.lister(resource_types.DEVICE_CLASSES)
        self._class_table = ClassTable()
        self._followed_classes = Followed(self._classes, self._class_changed)
        self._inventory = Inventory(rules=self._rules)
        # A hundred thousand devices, read by the attempt that first needs them, would hold up all others.
        slices = handle.lister(resource_types.RESOURCE_SLICES)
        self._followed_slices = Followed(slices, self._slice_changed, at_once=True)
        self._followed_taint_rules: Followed[DeviceTaintRule] | None = None
        self._allocated = AllocatedDevices()
        self._doubted = AllocatedDevices(self._allocated)
        self._with_in_flight = AllocatedDevices(self._doubted)
        self._in_flight: dict[str, _InFlight] = {}
        self._clock = handle.clock
        self._doubts: dict[str, DoubtedAllocation] = {}
        self._doubts_of_taking_back: dict[str, str] = {}
        """The version of the claim, by its uid."""
        self._doubts_of_binding: dict[str, float] = {}
        """By uid of a pod, the time until which the API server may still bind it."""
        self._began_s: float | None = None

    # ------------------------------------------------------------ classes and slices

    def class_named(self, name: str) -> DeviceClass | None:
        """Return the device class of that name, or None."""
        return self._classes.get(name)

    def class_for(self, resource: str) -> DeviceClass | None:
        """Return the device class that provides an extended resource, or None."""
        self._followed_classes.read()
        return self._class_table.get(resource)

    def inventory(self) -> Inventory:
        """Return all slices, with the taints that rules add."""
        self._followed_slices.read()
        if self._followed_taint_rules is not None:
            self._followed_taint_rules.read()
        return self._inventory

    def follow_taint_rules(self, rules: fwk.Lister[DeviceTaintRule]) -> None:
        """Apply taint rules to devices from now on."""
        if self._followed_taint_rules is None:
            self._followed_taint_rules = Followed(rules, self._inventory.change_taint_rule)

    def allow_fractional_ranges(self) -> None:
        """Round amounts of capacity to steps in thousandths from now on."""
        self._inventory.rules = dataclasses.replace(self._inventory.rules, round_to_thousandths=True)

    def _class_changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        if new is not None:
            self._class_table.add(new, old)
        elif old is not None:
            self._class_table.remove(old)

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if new is not None:
            self._inventory.put(new, old)
            self._inventory.entry(new)
        elif old is not None:
            self._inventory.remove(old)

    # ------------------------------------------------------------ allocations

    def allocated_devices(self) -> AllocatedDevices:
        """Return the devices that claims hold, and those that they are about to get."""
        self.claims.read()
        return self._with_in_flight

    def holders(self) -> Interruptible[Holders]:
        """Return by device the claims that have it, each with the pods that use it. Cost: one pass over all claims.

        Yields where it can be interrupted.
        """
        self.claims.read()
        users_by_device: dict[DeviceID, list[tuple[str, tuple[str, ...]]]] = {}
        for number, claim in enumerate(tuple(self.claims.list()), 1):
            if not number % _CLAIMS_PER_TURN:
                yield None
            in_flight = self._in_flight.get(claim.metadata.uid)
            allocation = claim.status.allocation or (None if in_flight is None else in_flight.allocation)
            for result in () if allocation is None else allocation.devices.results:
                if not result.admin_access:
                    device = DeviceID(result.driver, result.pool, result.device)
                    users_by_device.setdefault(device, []).append(users_of(claim))
        return users_by_device

    def doubt(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """Keep the devices from other claims while the API server may still write this allocation of the claim.

        After that, too, until the claim has been read: the watch may be late.

        Args:
            claim: as it was when that was requested.
        """
        self._end_doubt(claim.metadata.uid)
        self._doubts[claim.metadata.uid] = DoubtedAllocation(claim, allocation, self._clock.monotonic() + UNDER_WAY_S)
        self._doubted.add(allocation)

    def doubt_left_s(self) -> float | None:
        """Return the seconds until the next of these claims is to be read; None if no claim is due later."""
        now_s = self._clock.monotonic() if self._doubts else 0.0
        return min((doubt.until_s - now_s for doubt in self._doubts.values() if doubt.until_s > now_s), default=None)

    def overdue_doubts(self) -> list[DoubtedAllocation]:
        """Return those whose claims are to be read now; if `settle` does not follow, they are due again after 5 s."""
        now_s = self._clock.monotonic() if self._doubts else 0.0
        overdue = [doubt for doubt in self._doubts.values() if doubt.until_s <= now_s]
        for doubt in overdue:
            doubt.until_s = now_s + _AGAIN_S
        return overdue

    def settle(self, doubt: DoubtedAllocation, claim: ResourceClaim | None) -> None:
        """Take the API server's state of the claim, None if it is gone, and free the devices that it does not have."""
        if claim is not None:
            self.claims.assume(claim)
        if self._doubts.get(doubt.claim.metadata.uid) is doubt:
            self._end_doubt(doubt.claim.metadata.uid)
            self._tell_lost(doubt.claim, doubt.allocation)

    def _end_doubt(self, uid: str) -> None:
        doubt = self._doubts.pop(uid, None)
        if doubt is not None:
            self._doubted.remove(doubt.allocation)

    def doubt_taking_back(self, claim: ResourceClaim) -> None:
        """Note that the API server may still clear the allocation or a reservation, until the claim changes."""
        self._doubts_of_taking_back[claim.metadata.uid] = claim.metadata.resource_version

    def may_be_taken_back_yet(self, claim: ResourceClaim) -> bool:
        """Return whether this version of the claim may still lose its allocation or a reservation."""
        return self._doubts_of_taking_back.get(claim.metadata.uid) == claim.metadata.resource_version

    def begin(self) -> None:
        """Note, once, that attempts begin: no other process sends bindings any more."""
        if self._began_s is None:
            self._began_s = self._clock.monotonic()

    def doubt_binding(self, pod: Pod, *, is_inherited: bool = False) -> None:
        """Note that the API server may still bind the pod, which must keep its claims for now.

        Args:
            is_inherited: an earlier process may have sent the binding, and this one has not.
        """
        now_s = self._clock.monotonic()
        self._doubts_of_binding = {uid: until_s for uid, until_s in self._doubts_of_binding.items() if until_s > now_s}
        began_s = self._began_s if is_inherited and self._began_s is not None else now_s
        self._doubts_of_binding[pod.uid] = max(began_s + UNDER_WAY_S, self._doubts_of_binding.get(pod.uid, 0.0))

    def may_be_bound_for_s(self, pod: Pod) -> float:
        """Return for how many seconds the API server may still bind the pod; 0 if it will not."""
        return max(0.0, self._doubts_of_binding.get(pod.uid, 0.0) - self._clock.monotonic())

    def is_in_flight(self, uid: str) -> bool:
        """Return whether the claim with that uid is about to be allocated."""
        return uid in self._in_flight

    def is_allocated(self, claim: ResourceClaim) -> bool:
        """Return whether the claim has been allocated since the attempt began, and not in flight.

        Raises:
            PluginError: it is gone.
        """
        uid = claim.metadata.uid
        if uid in self._in_flight:
            return False
        latest = self.claims.get(claim.key)
        if latest is None:
            problem = f"internal error, couldn't signal allocation for claim {claim.metadata.name}"
            reason = f'could not find ResourceClaim "{claim.key}"'
            raise fwk.PluginError(f"{problem}: look up assumed claim {claim.key}, UID={uid}: {reason}")
        return latest.metadata.uid == uid and latest.status.allocation is not None

    def simulated_allocation(self, uid: str) -> AllocationResult | None:
        """Return the allocation of the claim with that uid that the running simulation of a pod group has made."""
        in_flight = self._in_flight.get(uid)
        return in_flight.allocation if in_flight is not None and in_flight.is_simulated else None

    def start_allocation(self, uid: str, allocation: AllocationResult, *, is_simulated: bool = False) -> None:
        """Note that a claim is about to be allocated for a pod, or for one more pod."""
        in_flight = self._in_flight.get(uid)
        if in_flight is None:
            self._in_flight[uid] = _InFlight(allocation, is_simulated)
            self._with_in_flight.add(allocation)
        else:
            in_flight.sharers += 1

    def end_allocation(self, uid: str, *, for_all: bool = False) -> bool:
        """End a pod's use of the allocation in flight. Return whether it was the last and no claim has the devices.

        Args:
            for_all: end it for all pods that have decided on it: the claim is written.
        """
        in_flight = self._in_flight.get(uid)
        if in_flight is None:
            return False
        in_flight.sharers -= 1
        if in_flight.sharers and not for_all:
            return False
        del self._in_flight[uid]
        if self._rules.fly_until_bound or not in_flight.is_shown:
            self._with_in_flight.remove(in_flight.allocation)
        return not in_flight.is_shown

    def give_up_allocation(self, uid: str, claim: ResourceClaim) -> bool:
        """Do as `end_allocation` for an allocation that was not written, and wake pods that need the devices."""
        in_flight = self._in_flight.get(uid)
        is_free = self.end_allocation(uid)
        if in_flight is not None and is_free and not in_flight.is_simulated:
            self._tell_lost(claim, in_flight.allocation)
        return is_free

    def _tell_lost(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        self.lost(replace(claim, status=replace(claim.status, allocation=allocation)), claim)

    def _note_shown(self, uid: str, *, is_shown: bool) -> None:
        """Count an allocation in flight only while its claim does not show it, if the rules do not count it twice."""
        in_flight = self._in_flight.get(uid)
        if in_flight is None or in_flight.is_shown is is_shown:
            return
        in_flight.is_shown = is_shown
        if not self._rules.fly_until_bound:
            (self._with_in_flight.remove if is_shown else self._with_in_flight.add)(in_flight.allocation)

    def on_add(self, new: ResourceClaim) -> None:
        """Count the devices of an added claim."""
        if new.status.allocation is not None:
            metadata = new.metadata
            self._note_shown(metadata.uid, is_shown=True)
            doubt = self._doubts.get(metadata.uid)
            if doubt is not None and is_older(doubt.claim.metadata.resource_version, metadata.resource_version):
                self._end_doubt(metadata.uid)
            self._allocated.add(new.status.allocation)

    def on_update(self, old: ResourceClaim, new: ResourceClaim) -> None:
        """Take a changed claim, perhaps as assumed. The API server sets or clears allocations and never changes one.

        But more or less of it may be readable than before.
        """
        old_allocation, new_allocation = old.status.allocation, new.status.allocation
        if old_allocation is not None and (isinstance(old, UnreadableClaim) or isinstance(new, UnreadableClaim)):
            self._allocated.remove(old_allocation)
            old_allocation = None
        if old_allocation is None and new_allocation is not None:
            self.on_add(new)
        elif old_allocation is not None and new_allocation is None:
            self._allocated.remove(old_allocation)
            # An attempt that has got no answer writes it again.
            self._note_shown(new.metadata.uid, is_shown=False)

    def on_delete(self, old: ResourceClaim) -> None:
        """Free the devices of a deleted claim."""
        self._end_doubt(old.metadata.uid)
        self._doubts_of_taking_back.pop(old.metadata.uid, None)
        if old.status.allocation is not None:
            self._allocated.remove(old.status.allocation)

    def on_broken(self, unreadable: Any) -> None:
        """Keep the earlier state, if there is one, of a claim that cannot be decoded."""


def users_of(claim: ResourceClaim) -> tuple[str, tuple[str, ...]]:
    """Return the key of a claim, and the names of the pods that use it."""
    return claim.key, tuple(reference.name for reference in claim.status.reserved_for)
