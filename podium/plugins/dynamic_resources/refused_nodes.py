"""Explains to people why nodes were refused for a pod's claims. Decides nothing, and is never called by an attempt.

Cost: one pass over all claims of the cluster if devices are taken, and that of `podium.devices.shortages`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from podium.cluster import NodeInfo, Rows, Snapshot
from podium.devices.extended_resources import extended_requests
from podium.devices.interruptible import run_uninterrupted
from podium.devices.inventory import DeviceID
from podium.devices.pod_claims import ClaimProblem, claims_of_pod, problem_with_requests
from podium.devices.refusals import Holder, NodeRefusal
from podium.devices.shortages import HURRIED, Limits, Shortages
from podium.framework import contract as fwk
from podium.objects.claims import ResourceClaim
from podium.objects.core import Pod
from podium.objects.selectors import compile_node_selector
from podium.plugins.dynamic_resources.special_claim import new_special_claim, special_claim_on
from podium.plugins.shared.cluster_devices import ClusterDevices, Holders, users_of

IsUsable = Callable[[ResourceClaim], bool]
"""Tells whether the devices of an allocated claim are bound, or may still be."""


def explain_nodes(
    devices: ClusterDevices,
    pod: Pod,
    snapshot: Snapshot,
    rows: Rows,
    is_usable: IsUsable,
    holders: Holders | None,
) -> Mapping[int, NodeRefusal]:
    """Return why each of these nodes, which DynamicResources has rejected, has no devices for the pod.

    Args:
        holders: by device, the claims that have it, if the caller has read them. The search is then a short one, and
            leaves no trace in the answers that attempts share, because a replayed run does not make it.

    Returns: no entry for nodes whose status is the whole explanation, as if a claim does not exist.
    """
    claims = claims_of_pod(pod, devices.claims.get)
    if isinstance(claims, ClaimProblem):
        return {}
    fresh = [claim for claim in claims if claim.status.allocation is None]
    if any(devices.is_in_flight(claim.metadata.uid) for claim in fresh):
        return {}
    if any(problem_with_requests(claim, devices.class_named) is not None for claim in fresh):
        return {}
    holders_read = [] if holders is None else [holders]

    def holders_of(device: DeviceID) -> Sequence[tuple[str, tuple[str, ...]]]:
        if not holders_read:
            holders_read.append(run_uninterrupted(devices.holders()))
        return holders_read[0].get(device, ())

    inventory, limits = devices.inventory(), Limits()
    if holders is not None:
        inventory, limits = inventory.part_of(snapshot.name(row) for row in rows.tolist()), HURRIED
    shortages = Shortages(inventory, devices.class_named, devices.allocated_devices(), holders_of, limits)
    allocated_claims = [claim for claim in claims if claim.status.allocation is not None]
    requests = extended_requests(pod.spec)
    is_backed = any(devices.class_for(resource) is not None for resource in requests)
    special = new_special_claim(pod, Random(0)) if is_backed else None
    refusals = {}
    for row in rows.tolist():
        node = snapshot.node(row)
        claims_to_allocate = fresh
        if special is not None:
            answer = special_claim_on(node, special, pod, requests, bool(claims), devices.class_for)
            if isinstance(answer, fwk.Status):
                continue
            claims_to_allocate = [*fresh, *([] if answer[0] is None else [answer[0]])]
        refusal = shortages.on_node(node.name, node.labels, claims_to_allocate) if claims_to_allocate else NodeRefusal()
        unreachable_claims = tuple(
            _holder(claim) for claim in allocated_claims if not _is_there(claim, node, is_usable)
        )
        if unreachable_claims:
            refusal = NodeRefusal(refusal.requests, unreachable_claims, refusal.broken_pools, refusal.error)
        if refusal.text:
            refusals[row] = refusal
    return refusals


def _is_there(claim: ResourceClaim, node: NodeInfo, is_usable: IsUsable) -> bool:
    """Return whether the node can use the allocated claim."""
    allocation = claim.status.allocation
    assert allocation is not None
    selector = allocation.node_selector
    return (selector is None or compile_node_selector(selector).matches(node.labels, node.name)) and is_usable(claim)


def _holder(claim: ResourceClaim) -> Holder:
    assert claim.status.allocation is not None
    results = claim.status.allocation.devices.results
    return Holder(*users_of(claim), tuple(f"{result.driver}/{result.pool}/{result.device}" for result in results))
