"""A claim as it is written for a pod: allocated, protected from deletion, and reserved.

Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (bindClaim), v1.36.2.
"""

from __future__ import annotations

from msgspec.structs import replace

from podium.objects.claims import (
    DELETE_PROTECTION,
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from podium.objects.core import Pod
from podium.objects.times import format_time


class ReservationError(Exception):
    """The claim cannot be written for the pod any more. The message says why."""


def with_finalizer(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim with the finalizer of allocated claims."""
    finalizers = claim.metadata.finalizers
    if DELETE_PROTECTION in finalizers:
        return claim
    return replace(claim, metadata=replace(claim.metadata, finalizers=(*finalizers, DELETE_PROTECTION)))


def has_allocation(claim: ResourceClaim, allocation: AllocationResult | None) -> bool:
    """Return True if the claim already has this allocation, so that it need not be written."""
    if allocation is None or claim.status.allocation is None:
        return False
    return _devices(claim.status.allocation) == _devices(allocation)


def with_reservation(
    claim: ResourceClaim, allocation: AllocationResult | None, pod: Pod, now_s: float, *, is_new: bool
) -> ResourceClaim:
    """Return the claim reserved for the pod.

    Args:
        allocation: the new allocation, or the one that the claim had when the pod's node was chosen.
        is_new: the allocation is new and may have to be written.

    Raises:
        ReservationError: the claim has changed since the node was chosen.
    """
    if claim.metadata.deletion_timestamp is not None:
        raise ReservationError(f"claim {claim.key} got deleted in the meantime")
    present = claim.status.allocation
    if present is not None and not has_allocation(claim, allocation):
        raise ReservationError(f"claim {claim.key} got allocated elsewhere in the meantime")
    allocation = present or (allocation if is_new else None)
    if allocation is None:
        raise ReservationError(f"claim {claim.key} got deallocated elsewhere in the meantime")
    if allocation.allocation_timestamp is None:
        allocation = replace(allocation, allocation_timestamp=format_time(now_s))
    user = ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.uid)
    users = (*claim.status.reserved_for, user)
    return replace(claim, status=replace(claim.status, allocation=allocation, reserved_for=users))


def _devices(allocation: AllocationResult) -> list[tuple[str, str, str, str, str | None]]:
    return [
        (result.request, result.driver, result.pool, result.device, result.share_id)
        for result in allocation.devices.results
    ]
