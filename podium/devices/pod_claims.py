"""The resource claims of a pod: which ones it has, and whether they can be allocated at all.

Source: kubernetes v1.36.2, staging dynamic-resource-allocation/resourceclaim/claim.go and
pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from podium.devices.requests import GetClass
from podium.objects.claims import DeviceRequest, ExactDeviceRequest, ResourceClaim
from podium.objects.core import Pod, PodResourceClaim
from podium.objects.unreadable import unread_field

GetClaim = Callable[[str], ResourceClaim | None]


@dataclass(frozen=True, slots=True)
class ClaimProblem:
    """The reason why the pod cannot get its claims now, as shown to users.

    Attributes:
        is_error: the claim is one that an API server would refuse, so no event can make the pod schedulable.
    """

    reason: str
    is_error: bool = False


def claims_of_pod(pod: Pod, claim_of: GetClaim) -> tuple[ResourceClaim, ...] | ClaimProblem:
    """Return the claims in the order of the pod's spec, or the first problem. Two entries may name the same claim.

    Args:
        claim_of: the claim of a key.
    """
    claims: list[ResourceClaim] = []
    for entry in pod.spec.resource_claims:
        name = _name_of(pod, entry)
        if isinstance(name, ClaimProblem):
            return name
        if name is None:
            continue
        claim = claim_of(f"{pod.metadata.namespace}/{name}")
        problem = _problem_with(pod, entry, name, claim)
        if problem is not None:
            return ClaimProblem(problem)
        assert claim is not None
        claims.append(claim)
    return tuple(claims)


def problem_with_requests(claim: ResourceClaim, class_of: GetClass) -> ClaimProblem | None:
    """Return why the claim cannot be allocated: an unknown class, or a request of an unknown kind."""
    for request in claim.spec.devices.requests:
        if request.exactly is None and not request.first_available:
            return ClaimProblem(f"resource claim {claim.key}, request {request.name}: unknown request type")
        for name, alternative in _alternatives(request):
            class_name = alternative.device_class_name
            if not class_name:
                return ClaimProblem(f"request {name}: unsupported request type", is_error=True)
            if class_of(class_name) is None:
                return ClaimProblem(f"request {name}: device class {class_name} does not exist")
    return None


def _name_of(pod: Pod, entry: PodResourceClaim) -> str | ClaimProblem | None:
    """Return the name of the claim; None if there is nothing to claim."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    if entry.resource_claim_template_name is None:
        entry_path = f'pod "{pod.key}", spec.resourceClaim "{entry.name}"'
        return ClaimProblem(f"{entry_path}: none of the supported fields are set")
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name
    return ClaimProblem(f'pod "{pod.key}": ResourceClaim not created yet')


def _problem_with(pod: Pod, entry: PodResourceClaim, name: str, claim: ResourceClaim | None) -> str | None:
    if claim is None:
        return f'could not find ResourceClaim "{pod.metadata.namespace}/{name}"'
    if (problem := unreadable_claim(claim)) is not None:
        return problem
    if claim.metadata.deletion_timestamp is not None:
        return f'resourceclaim "{name}" is being deleted'
    if entry.resource_claim_name is None and not is_controlled_by(claim, pod):
        return f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)"
    return None


def unreadable_claim(claim: ResourceClaim) -> str | None:
    """Return why the existing claim cannot be used; None if it can be read in full."""
    unread = unread_field(claim)
    return None if unread is None else f"resource claim {claim.key} has a field that cannot be read, {unread}"


def is_controlled_by(claim: ResourceClaim, pod: Pod) -> bool:
    """Return True if the pod controls the claim."""
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


def _alternatives(request: DeviceRequest) -> Iterator[tuple[str, ExactDeviceRequest]]:
    if request.exactly is not None:
        yield request.name, request.exactly
    for alternative in request.first_available:
        yield f"{request.name}/{alternative.name}", alternative
