"""The claim for extended resources that a node gets from devices instead of a device plugin.

Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, v1.36.2.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from random import Random

from msgspec.structs import replace

from podium.cluster import NodeInfo
from podium.devices.extended_resources import RequestMapping, requests_for
from podium.framework import contract as fwk
from podium.objects.claims import EXTENDED_RESOURCE_CLAIM, ResourceClaim, ResourceClaimMeta, ResourceClaimSpec
from podium.objects.core import Pod
from podium.objects.devices import DeviceClass
from podium.objects.meta import OwnerReference
from podium.plugins.dynamic_resources.pod_devices import SPECIAL_NAME

ClassFor = Callable[[str], DeviceClass | None]


def new_special_claim(pod: Pod, random: Random) -> ResourceClaim:
    """Return the claim before its requests are known; it exists in memory only."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)
    return ResourceClaim(
        metadata=ResourceClaimMeta(
            name=SPECIAL_NAME,
            generate_name=f"{pod.metadata.name}-extended-resources-",
            namespace=pod.metadata.namespace,
            uid=str(uuid.UUID(int=random.getrandbits(128), version=4)),
            annotations={EXTENDED_RESOURCE_CLAIM: "true"},
            owner_references=(owner,),
        )
    )


def special_claim_on(
    node: NodeInfo,
    claim: ResourceClaim,
    pod: Pod,
    requests: Mapping[str, int],
    has_other_claims: bool,
    class_for: ClassFor,
    *,
    is_written: bool = False,
) -> tuple[ResourceClaim | None, tuple[RequestMapping, ...]] | fwk.Status:
    """Return the claim with its requests on a node, or the node's rejection; None if nothing is to be allocated there.

    Args:
        requests: the extended resources that the pod requests.
        is_written: whether another scheduler has written the claim for the one node that it has chosen.
    """
    if is_written and claim.status.allocation is not None:
        return None, ()
    if claim.spec.devices.requests:
        return fwk.unresolvable("cannot schedule extended resource claim")
    classes: dict[str, str] = {}
    for resource in requests:
        device_class = class_for(resource)
        if device_class is not None and node.allocatable(resource) == 0:
            classes[resource] = device_class.key
        elif resource not in node.node.status.allocatable:
            return fwk.unresolvable("cannot fit resource")
    if is_written and classes:
        # To allocate again would give the pod devices twice.
        return fwk.unresolvable("the claim for extended resources has not been seen yet")
    if claim.status.allocation is not None or (not classes and not has_other_claims):
        return None, ()
    device_requests, mappings = requests_for(pod.spec, classes)
    devices = replace(claim.spec.devices, requests=device_requests)
    return replace(claim, spec=ResourceClaimSpec(devices=devices)), mappings
