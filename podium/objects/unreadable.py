"""Objects that cannot be parsed in full but must count all the same.

Owns for which kinds a partial object is better than none, and which of its fields other objects depend on. A partial
object is added, updated and deleted like any other; its type says that it is partial.

Differs: client-go drops an object that does not decode, and lists again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import blake2s
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from podium.objects import resource_types
from podium.objects.claims import DeviceRequestAllocationResult, ResourceClaim, ResourceClaimStatus
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.meta import ObjectMeta
from podium.objects.names import name_error
from podium.objects.partial_reader import UNREAD_MAX, PartialReader
from podium.objects.resource_types import KubeObject
from podium.objects.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from podium.objects.workloads import Namespace, PodDisruptionBudget


class UnreadablePod(Pod, frozen=True):
    """A pod on a node, with at least one unreadable field that others depend on. It is never scheduled."""

    field: str = ""
    detail: str = ""


class UnreadableNode(Node, frozen=True):
    """A node with at least one unreadable field that decisions depend on."""

    field: str = ""
    detail: str = ""


class UnreadableBudget(PodDisruptionBudget, frozen=True):
    """A budget whose allowed disruptions cannot be read.

    `is_selector_read` is True if its selector could be read, so that the pods it covers are known.
    """

    is_selector_read: bool = False


class UnreadableCSINode(CSINode, frozen=True):
    """A CSINode with an unreadable field. The node may not be able to attach another volume."""

    field: str = ""
    detail: str = ""


class UnreadableVolumeClaim(PersistentVolumeClaim, frozen=True):
    """A claim to storage with an unreadable field. No further pod gets it.

    `is_volume_read` is True if its volume, or the class of its future volume, is known.
    """

    is_volume_read: bool = False
    field: str = ""
    detail: str = ""


class UnreadableAttachment(VolumeAttachment, frozen=True):
    """A VolumeAttachment whose volume or node cannot be read."""

    field: str = ""
    detail: str = ""


class UnreadableClaim(ResourceClaim, frozen=True):
    """A claim with an unreadable field. No further pod gets it.

    Its allocation has the devices of which the pool can be read; an empty driver or device stands for any in that pool.
    `is_allocation_read` is True if these are all of its devices: see `with_known_devices`.
    """

    is_allocation_read: bool = True
    field: str = ""
    detail: str = ""


def unread_field(item: KubeObject) -> FieldError | None:
    """Return the first unreadable field that others depend on, or None for a complete object, and for a budget."""
    return FieldError(item.field, item.detail) if isinstance(item, _WITH_FIELD) else None


def kind_of(item: KubeObject) -> str:
    """Return the kind, whether or not the object could be read in full."""
    return next(resource_type.kind for resource_type in resource_types.ALL if isinstance(item, resource_type.type))


def is_partial(item: KubeObject) -> bool:
    """Return True if some part of the object could not be read."""
    return isinstance(item, PARTIAL)


def readable_part(kind: type[KubeObject], raw: Raw, error: str) -> Any:
    """Return the readable part of an object that failed to decode with this error.

    Returns: None if a partial object of this kind is of no use, or if the object cannot be identified.
    """
    make = next((_MAKERS[base] for base in kind.__mro__ if base in _MAKERS), None)
    if make is None:
        return None
    reader = PartialReader()
    item = reader.read(raw, kind, error)  # type: ignore[arg-type]
    return None if item is None else make(item, reader.unread)


def with_another_name(item: Any) -> Any:
    """Return a stand-in for an object with an invalid name, or None if that is of no use.

    Only for running pods, because they need not be requested from the API server by name.
    """
    return _pod(item, []) if isinstance(item, Pod) else None


# ---------------------------------------------------------------- kinds

_HARMLESS_OF_PODS = re.compile(
    r"metadata\.(generation|annotations|ownerReferences|creationTimestamp|deletionTimestamp|resourceVersion)\b"
    r"|spec\.(schedulerName|preemptionPolicy|nodeSelector|tolerations|topologySpreadConstraints|schedulingGates)\b"
    r"|spec\.(hostUsers|schedulingGroup|affinity\.nodeAffinity|affinity\.podAffinity|resourceClaims)\b"
    r"|spec\.affinity\.podAntiAffinity\.preferred"
    r"|spec\.(initC|c)ontainers\[\d+\]\.(image\b|ports\[\d+\]\.containerPort)"
    r"|(spec|status)\.([\w\[\]]+\.)?resources\.(limits|claims)\b"
    r"|status\.(phase|conditions|nominatedNodeName|startTime|resourceClaimStatuses|extendedResourceClaimStatus)\b"
)
"""The fields that affect neither a running pod's usage nor its anti-affinity.

Devices are taken by what is allocated to claims, not by the pod that names them.
"""

_HARMLESS_OF_NODES = re.compile(
    r"metadata\.(generation|annotations|ownerReferences|creationTimestamp|deletionTimestamp)\b"
    r"|status\.(conditions|images)\b"
)


def _pod(pod: Pod, unread: Sequence[FieldError]) -> Pod | None:
    if not pod.node_name:
        return None
    meta, harm = pod.metadata, _harm(unread, _HARMLESS_OF_PODS)
    if reason := name_error(meta.name, meta.namespace, meta.uid, is_namespaced=True):
        meta, harm = _stand_in(pod), harm or FieldError("metadata", reason)
    if harm is None:
        return pod
    return UnreadablePod(
        metadata=meta,
        spec=pod.spec,
        status=pod.status,
        node_name=pod.node_name,
        field=harm.path,
        detail=harm.detail,
    )


def _node(node: Node, unread: Sequence[FieldError]) -> Node | None:
    if name_error(node.name, node.metadata.namespace, node.uid, is_namespaced=False):
        return None
    harm = _harm(unread, _HARMLESS_OF_NODES)
    if harm is None:
        return node
    return UnreadableNode(
        metadata=node.metadata, spec=node.spec, status=node.status, field=harm.path, detail=harm.detail
    )


def _budget(budget: PodDisruptionBudget, unread: Sequence[FieldError]) -> PodDisruptionBudget | None:
    meta = budget.metadata
    if name_error(meta.name, meta.namespace, meta.uid, is_namespaced=True):
        return None
    is_selector_read = not any(error.path.startswith("spec") for error in unread)
    return UnreadableBudget(metadata=meta, spec=budget.spec, status=budget.status, is_selector_read=is_selector_read)


def _csi_node(csi_node: CSINode, unread: Sequence[FieldError]) -> CSINode | None:
    meta = csi_node.metadata
    if name_error(meta.name, meta.namespace, meta.uid, is_namespaced=False):
        return None
    if not any(error.path.startswith("spec") for error in unread):
        return csi_node
    return UnreadableCSINode(metadata=meta, spec=csi_node.spec, field=unread[0].path, detail=unread[0].detail)


_VOLUME_OF_CLAIM = re.compile(r"metadata\.annotations|spec$|spec\.(volumeName|storageClassName)")


def _volume_claim(claim: PersistentVolumeClaim, unread: Sequence[FieldError]) -> PersistentVolumeClaim | None:
    meta = claim.metadata
    if name_error(meta.name, meta.namespace, meta.uid, is_namespaced=True):
        return None
    is_volume_read = len(unread) < UNREAD_MAX and not any(_VOLUME_OF_CLAIM.match(error.path) for error in unread)
    return UnreadableVolumeClaim(
        metadata=meta,
        spec=claim.spec,
        status=claim.status,
        is_volume_read=is_volume_read,
        field=unread[0].path,
        detail=unread[0].detail,
    )


def _attachment(attachment: VolumeAttachment, unread: Sequence[FieldError]) -> VolumeAttachment | None:
    meta = attachment.metadata
    if name_error(meta.name, meta.namespace, meta.uid, is_namespaced=False):
        return None
    harm = next((error for error in unread if error.path.startswith("spec")), None)
    if harm is None:
        return attachment
    return UnreadableAttachment(metadata=meta, spec=attachment.spec, field=harm.path, detail=harm.detail)


_RESULTS = "status.allocation.devices.results"


def _claim(claim: ResourceClaim, unread: Sequence[FieldError]) -> ResourceClaim | None:
    meta, status = claim.metadata, claim.status
    if name_error(meta.name, meta.namespace, meta.uid, is_namespaced=True):
        return None
    harm = [error for error in unread if error.path.startswith(_RESULTS) or _RESULTS.startswith(error.path)]
    is_allocation_read = not harm and len(unread) < UNREAD_MAX
    if status.allocation is not None and not is_allocation_read:
        # How much of a device is taken may be what cannot be read.
        results = [replace(error, share_id=None) for error in status.allocation.devices.results if error.pool]
        status = _with_results(status, tuple(results))
    return UnreadableClaim(
        metadata=meta,
        spec=claim.spec,
        status=status,
        is_allocation_read=is_allocation_read,
        field=unread[0].path,
        detail=unread[0].detail,
    )


def with_known_devices(claim: ResourceClaim, former: ResourceClaim | None) -> ResourceClaim:
    """Return the claim with the devices that it held before, if not all can be read of which it holds.

    What is not known, it does not hold: any other device, and every pod that asks for one, would have to wait for it.
    No API server shows such a claim.
    """
    if not isinstance(claim, UnreadableClaim) or claim.is_allocation_read or former is None:
        return claim
    if former.metadata.uid != claim.metadata.uid or former.status.allocation is None:
        return claim
    return replace(claim, status=replace(claim.status, allocation=former.status.allocation))


def _with_results(
    status: ResourceClaimStatus, results: tuple[DeviceRequestAllocationResult, ...]
) -> ResourceClaimStatus:
    assert status.allocation is not None
    devices = replace(status.allocation.devices, results=results)
    return replace(status, allocation=replace(status.allocation, devices=devices))


def _namespace(namespace: Namespace, unread: Sequence[FieldError]) -> Namespace | None:
    """Return the namespace with the labels that can be read."""
    del unread
    meta = namespace.metadata
    return None if name_error(meta.name, meta.namespace, meta.uid, is_namespaced=False) else namespace


_WITH_FIELD: Final = (
    UnreadablePod,
    UnreadableNode,
    UnreadableClaim,
    UnreadableCSINode,
    UnreadableVolumeClaim,
    UnreadableAttachment,
)
PARTIAL: Final = (*_WITH_FIELD, UnreadableBudget)
"""The types of partial objects."""

_MAKERS: Final[dict[type[Any], Callable[[Any, Sequence[FieldError]], Any]]] = {
    Pod: _pod,
    Node: _node,
    PodDisruptionBudget: _budget,
    CSINode: _csi_node,
    PersistentVolumeClaim: _volume_claim,
    VolumeAttachment: _attachment,
    ResourceClaim: _claim,
    Namespace: _namespace,
}


def _harm(unread: Sequence[FieldError], harmless: re.Pattern[str]) -> FieldError | None:
    """Return the first field that others depend on; the last one if further fields may not have been checked."""
    harm = next((error for error in unread if not harmless.match(error.path)), None)
    return harm or (unread[-1] if len(unread) >= UNREAD_MAX else None)


def _stand_in(pod: Pod) -> ObjectMeta:
    """Return the pod's metadata with a generated name, and with another namespace or uid if those are invalid."""
    meta = pod.metadata
    content = msgspec.json.encode((meta.namespace, meta.name, meta.uid, pod.node_name))
    stand_in = f"unreadable-{blake2s(content, digest_size=8).hexdigest()}"
    namespace = meta.namespace if not name_error("a", meta.namespace, "a", is_namespaced=True) else stand_in
    uid = meta.uid if not name_error("a", "a", meta.uid, is_namespaced=True) else stand_in
    return replace(meta, name=stand_in, namespace=namespace, uid=uid)
