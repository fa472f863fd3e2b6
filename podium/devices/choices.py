"""The devices that a search has chosen so far: taking one more, and giving it back.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, v0.36.2 and
v0.37.2. What an older upstream does not undo is not undone here either, since it decides which devices a search finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from podium.config.release_rules import DeviceRules
from podium.devices.allocated import AllocatedDevices, ConsumedCapacity
from podium.devices.capacity import Amount, consumption, has_capacity
from podium.devices.counters import AvailableCounters, ConsumedCounters
from podium.devices.errors import AllocationError, CapacityError
from podium.devices.interruptible import Interruptible
from podium.devices.inventory import DeviceID, SliceDevice
from podium.devices.pools import Pool
from podium.devices.requests import Candidate, ClaimData, RequestData
from podium.objects.core import Taint
from podium.objects.tolerations import is_tolerated

_EFFECTS: Final = ("NoSchedule", "NoExecute")
"""The effects of taints that keep a device from being allocated."""


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """A device that was chosen for a request.

    Attributes:
        consumption: the consumed amounts of its capacities, if the device is shared.
        is_charged: this choice consumes the device's counters.
        is_first_share: no earlier choice of the search has a share of the device.
    """

    data: RequestData
    device: SliceDevice
    pool: Pool
    consumption: Mapping[str, Amount] = field(default_factory=dict)
    is_charged: bool = False
    is_first_share: bool = True


class Choices:
    """The choices of a search for each claim.

    Args:
        undoes_all: undo everything whatever the rules are, so that a search misses nothing.

    Attributes:
        by_claim: the chosen devices of each claim, in the order in which they were taken.
    """

    def __init__(
        self,
        claims: Sequence[ClaimData],
        allocated: AllocatedDevices,
        available: AvailableCounters,
        rules: DeviceRules,
        *,
        undoes_all: bool = False,
    ) -> None:
        self._rules = rules
        self._undoes_all = undoes_all or rules.undo_all
        self.by_claim: list[list[Choice]] = [[] for _ in claims]
        self._claims = claims
        self._allocated = allocated
        self._counters = ConsumedCounters(available)
        self._capacity = ConsumedCapacity()
        self._claims_of: dict[DeviceID, set[int]] = {}

    def is_in_use(self, claim: int, data: RequestData, device: DeviceID) -> bool:
        """Return True if a claim that holds the device keeps the request from it. Shared devices are never in use."""
        claims = self._claims_of.get(device)
        # As upstream: an administrator may have a device that is in use, but no claim the same one twice.
        if data.has_admin_access:
            return claims is not None and claim in claims
        return bool(claims) or self._allocated.is_dedicated(device)

    def has_capacity(self, data: RequestData, device: SliceDevice, action: str = "checking") -> bool:
        """Return True if the device has the requested capacities.

        Raises:
            AllocationError: an amount cannot be computed with. The message names the action.
        """
        if not (device.is_shared or device.has_policies or data.capacities or device.id in self._allocated.consumed):
            return True  # The request consumes all of each capacity, and no other claim has any of it.
        consumed_amounts = self._allocated.consumed.of(device.id), self._capacity.of(device.id)
        try:
            return has_capacity(data.capacities, device.device.capacity or {}, self._rules, *consumed_amounts)
        except CapacityError as error:
            where = f"claim {data.claim.key}, request {data.name}"
            raise AllocationError(f"{where}: {action} capacity for device {device.id}: {error}") from None

    def prepare(self, claim: int, data: RequestData, candidate: Candidate) -> Interruptible[None]:
        """Read the counters that `take` needs for the device, which would otherwise do that without interruption.

        Yields where it can be interrupted.
        """
        device, pool = candidate
        if device.consumes and not self.is_in_use(claim, data, device.id) and not self._is_paid_for(device):
            yield from self._counters.available.read(pool)

    def take(self, claim: int, data: RequestData, candidate: Candidate) -> bool:
        """Choose a selectable device for a request. False if that is not possible.

        Raises:
            AllocationError: the request asks for all devices, and a constraint refuses this one; or as `has_capacity`.
        """
        device, pool = candidate
        if self.is_in_use(claim, data, device.id):
            return False
        # A shared device consumes its counters once, with its first share.
        is_charged = bool(device.consumes) and not self._is_paid_for(device)
        if is_charged and not self._counters.charge(device, pool):
            return False
        if not _tolerates(data, device) or not self._satisfies_constraints(claim, data, device):
            # Upstream does not give the counters back here, which later candidates of the pool feel, and answers show.
            if is_charged and self._undoes_all:
                self._counters.give_back(device, pool)
            return False
        # Shared devices are never in use.
        if not device.is_shared:
            self._claims_of.setdefault(device.id, set()).add(claim)
        # Again, as upstream: in mode All the capacity was checked before others took their shares.
        if not self.has_capacity(data, device, "rechecking"):
            if self._undoes_all:
                self._release(claim, Choice(data, device, pool, is_charged=is_charged))
            return False
        choice = Choice(data, device, pool, is_charged=is_charged)
        if device.is_shared:
            amounts = consumption(data.capacities, device.device.capacity or {}, self._rules)
            choice = Choice(data, device, pool, amounts, is_charged, device.id not in self._capacity)
            self._capacity.add(device.id, _nano(amounts))
        self.by_claim[claim].append(choice)
        return True

    def undo(self, claim: int) -> None:
        """Give back the device that was taken last for a claim."""
        choice = self.by_claim[claim].pop()
        device = choice.device
        if device.is_shared and (choice.consumption or self._undoes_all):
            self._capacity.remove(device.id, _nano(choice.consumption))
            if self._undoes_all and not choice.is_first_share:
                # Its amounts may be zero, but an earlier share still pays for its counters.
                self._capacity.add(device.id, {})
        self._release(claim, choice)

    def _release(self, claim: int, choice: Choice) -> None:
        """Undo what a device that passed the constraints of a claim has changed, but for its capacities."""
        device = choice.device
        for constraint in self._claims[claim].constraints:
            constraint.remove(*choice.data.base_and_subrequest)
        if not device.is_shared:
            self._claims_of[device.id].discard(claim)
        if choice.is_charged and (self._undoes_all or not device.is_shared):
            self._counters.give_back(device, choice.pool)

    def _is_paid_for(self, device: SliceDevice) -> bool:
        """Return True if the device is shared and already consumes its counters."""
        if not device.is_shared:
            return False
        if self._rules.undo_all and self._allocated.has_shares(device.id):
            return True
        return device.id in self._allocated.consumed or device.id in self._capacity

    def _satisfies_constraints(self, claim: int, data: RequestData, device: SliceDevice) -> bool:
        """Add the device to all constraints of the claim, or to none."""
        base, subrequest = data.base_and_subrequest
        constraints = self._claims[claim].constraints
        for index, constraint in enumerate(constraints):
            if constraint.add(base, subrequest, device):
                continue
            # In mode All no other device can take its place, so upstream ends the attempt with an error.
            if data.devices is not None:
                request_name = f"claim {data.claim.key}, request {data.name}"
                reason = "because a claim constraint would not be satisfied"
                raise AllocationError(f"{request_name}: cannot add device {device.id} {reason}")
            for earlier in constraints[:index]:
                earlier.remove(base, subrequest)
            return False
        return True


def _tolerates(data: RequestData, device: SliceDevice) -> bool:
    return all(is_borne(data, taint) for taint in device.device.taints)


def is_borne(data: RequestData, taint: Taint) -> bool:
    """Return True if a device with the taint may be allocated to the request."""
    return taint.effect not in _EFFECTS or is_tolerated(data.request.tolerations, taint)


def _nano(amounts: Mapping[str, Amount]) -> dict[str, int]:
    return {name: amount.nano for name, amount in amounts.items()}
