"""What answers say about devices: what was found on each node, and the claims as they are in the end."""

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
    """The devices that one attempt has found.

    `allocations` are those of each feasible node by claim, `extended` the requests for extended resources there,
    `deallocated` the claims that would be taken back or deleted.
    """
    found = state.find(PodDevices)
    if found is None:
        return {}
    answer: dict[str, Any] = {}
    wanted = [found.claims[index] for index in found.wanted]
    nodes = {name: on_node for name, on_node in sorted(found.by_node.items()) if name in feasible}
    if nodes:
        answer["allocations"] = {
            name: {
                _name_of(claim): msgspec.to_builtins(result)
                for claim, result in zip(wanted, on_node.results, strict=True)
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
    taken = [claim for claim in (found.deallocated, found.deleted) if claim is not None]
    if taken:
        answer["deallocated"] = sorted(claim.key for claim in taken)
    return answer


def devices_of_queue(placements: Iterable[Placement]) -> dict[str, Any]:
    """The claims that a queue of pods has changed, as they are in the end, and what their pods' status says."""
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
    kept = {key: claim for key, claim in sorted(claims.items()) if claim is not None}
    return {name: value for name, value in (("claims", kept), ("pod_status", pod_status)) if value}


def _mappings_on(placement: Placement) -> Sequence[RequestMapping]:
    found = None if placement.state is None else placement.state.find(PodDevices)
    on_node = None if found is None or placement.node is None else found.by_node.get(placement.node)
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
    """The requests of a claim for extended resources, with the defaults that an API server adds."""
    answer = []
    for request in requests:
        assert request.exactly is not None
        exactly = {**msgspec.to_builtins(request.exactly), "allocationMode": request.exactly.allocation_mode}
        answer.append({"name": request.name, "exactly": exactly})
    return answer


def _mappings(mappings: Iterable[RequestMapping]) -> list[Mapping[str, Any]]:
    return [msgspec.to_builtins(each) for each in mappings]


def _is_special(claim: ResourceClaim) -> bool:
    return claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true" and bool(claim.metadata.generate_name)


def _name_of(claim: ResourceClaim) -> str:
    return SPECIAL_NAME if claim.metadata.name == SPECIAL_NAME else claim.key


def _key_in_queue(claim: ResourceClaim) -> str:
    if not _is_special(claim):
        return claim.key
    return f"{claim.metadata.namespace}/{SPECIAL_NAME}/{claim.metadata.owner_references[0].name}"
