"""The writes of PreBind as values, for callers without an API server."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from podium.devices.reservations import ReservationError, has_allocation, with_finalizer, with_reservation
from podium.framework import contract as fwk
from podium.objects.claims import ResourceClaim
from podium.objects.core import Pod
from podium.objects.resource_types import RESOURCE_CLAIMS
from podium.plugins.dynamic_resources.pod_devices import NO_MAPPINGS, PodDevices
from podium.plugins.shared.claim_cache import ClaimCache

_SUFFIX = 5
"""The length of the part of its uid that ends the name of a claim that an API server would name."""


def written_claims(
    pod_devices: PodDevices, pod: Pod, node_name: str, now_s: float, claims: ClaimCache
) -> Sequence[fwk.ObjectWrite]:
    """Return the pod's claims, allocated and reserved for it.

    Raises:
        PluginError: a claim cannot be written.
    """
    writes = []
    on_node = pod_devices.by_node.get(node_name)
    for index, claim in enumerate(pod_devices.claims):
        new_allocation = pod_devices.reserved.get(index)
        latest = claims.get(claim.key)
        if latest is not None and has_allocation(latest, new_allocation):
            claim = latest
        if claim.is_reserved_for(pod.uid):
            continue
        old_claim: ResourceClaim | None = claim
        if claim is pod_devices.special:
            if new_allocation is None or on_node is None or on_node.special is None:
                continue
            if not on_node.mappings:
                raise fwk.PluginError(NO_MAPPINGS.format(pod=pod.key))
            old_claim, claim_metadata = None, on_node.special.metadata
            name = f"{claim_metadata.generate_name}{claim_metadata.uid[-_SUFFIX:]}"
            claim = replace(on_node.special, metadata=replace(claim_metadata, name=name))
        try:
            allocation = new_allocation or claim.status.allocation
            new_claim = with_reservation(claim, allocation, pod, now_s, is_new=new_allocation is not None)
        except ReservationError as error:
            raise fwk.PluginError(str(error)) from error
        writes.append(
            fwk.ObjectWrite(
                RESOURCE_CLAIMS, old_claim, new_claim if new_allocation is None else with_finalizer(new_claim)
            )
        )
    return writes
