"""The devices in answers: the allocations on each node, and the final state of claims."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from podium.devices.extended_resources import RequestMapping
from podium.engine.placement import Placement
from podium.framework.contract.cycle_state import CycleState
from podium.objects.claims import EXTENDED_RESOURCE_CLAIM, DeviceRequest, ResourceClaim
from podium.plugins.dynamic_resources.pod_devices import SPECIAL_NAME, PodDevices


def devices_of_attempt(state: CycleState, feasible: Collection[str]) -> dict[str, Any]:
    """Return the devices that one attempt has found.

    `allocations` are those of each feasible node by claim, `extended` the requests for extended resources there,
    `deallocated` the claims that would be taken back or deleted.
    """
    pod_devices = state.find(PodDevices)
    if pod_devices is None:
        return {}
    answer: dict[str, Any] = {}
    claims = [pod_devices.claims[index] for index in pod_devices.indexes_to_allocate]
    nodes = {name: on_node for name, on_node in sorted(pod_devices.by_node.items()) if name in feasible}
    if nodes:
        answer["allocations"] = {
            name: {
                _name_of(claim): msgspec.to_builtins(result)
                for claim, result in zip(claims, on_node.results, strict=True)
            }
            for name, on_node in nodes.items()
        }
    extended = {
        name: {"requests": _requests(on_node.special.spec.devices.requests), "mappings": _mappings(on_node.mappings)}
        for name, on_node in nodes.items()
        if on_node.special is not None and on_node.mappings
    }
    if extended:
        answer["extended"] = extended
    withdrawals = [
        claim for claim in (pod_devices.claim_to_deallocate, pod_devices.claim_to_delete) if claim is not None
    ]
    if withdrawals:
        answer["deallocated"] = sorted(claim.key for claim in withdrawals)
    return answer


def devices_of_queue(placements: Iterable[Placement]) -> dict[str, Any]:
    """Return the final state of the claims that a queue of pods has changed, and the status of their pods."""
    claims: dict[str, Any] = {}
    pod_status: dict[str, Any] = {}
    for placement in placements:
        for write in placement.writes:
            claim = write.before if write.after is None else write.after
            if isinstance(claim, ResourceClaim):
                claims[_key_in_queue(claim)] = None if write.after is None else _as_written(claim)
        mappings = _mappings_on(placement)
        if mappings:
            name = f"{placement.pod.metadata.namespace}/{SPECIAL_NAME}/{placement.pod.metadata.name}"
            status = {"resourceClaimName": name, "requestMappings": _mappings(mappings)}
            pod_status[placement.pod.key] = {"extendedResourceClaimStatus": status}
    final_claims = {key: claim for key, claim in sorted(claims.items()) if claim is not None}
    return {name: value for name, value in (("claims", final_claims), ("pod_status", pod_status)) if value}


def _mappings_on(placement: Placement) -> Sequence[RequestMapping]:
    pod_devices = None if placement.state is None else placement.state.find(PodDevices)
    on_node = None if pod_devices is None or placement.node is None else pod_devices.by_node.get(placement.node)
    return () if on_node is None else on_node.mappings


def _as_written(claim: ResourceClaim) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "finalizers": list(claim.metadata.finalizers),
        "status": msgspec.to_builtins(claim.status),
    }
    if _is_special(claim):
        metadata = msgspec.to_builtins(claim.metadata)
        answer |= {key: metadata[key] for key in ("generateName", "annotations", "ownerReferences")}
        answer["spec"] = {"devices": {"requests": _requests(claim.spec.devices.requests)}}
    return answer


def _requests(requests: Iterable[DeviceRequest]) -> list[dict[str, Any]]:
    """Return the requests of a claim for extended resources, with the defaults that an API server adds."""
    answer = []
    for request in requests:
        assert request.exactly is not None
        exactly = {**msgspec.to_builtins(request.exactly), "allocationMode": request.exactly.allocation_mode}
        answer.append({"name": request.name, "exactly": exactly})
    return answer


def _mappings(mappings: Iterable[RequestMapping]) -> list[Mapping[str, Any]]:
    return [msgspec.to_builtins(mapping) for mapping in mappings]


def _is_special(claim: ResourceClaim) -> bool:
    return claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true" and bool(claim.metadata.generate_name)


def _name_of(claim: ResourceClaim) -> str:
    return SPECIAL_NAME if claim.metadata.name == SPECIAL_NAME else claim.key


def _key_in_queue(claim: ResourceClaim) -> str:
    if not _is_special(claim):
        return claim.key
    return f"{claim.metadata.namespace}/{SPECIAL_NAME}/{claim.metadata.owner_references[0].name}"
