"""What the volume controller and the provisioners do: bind claims to volumes, and make volumes for claims.

Every class is taken for one whose provisioner works once a node is selected for a claim. Where an immediate claim would
be provisioned is not known, so that it waits unless a volume exists.

Source: kubernetes pkg/controller/volume/persistentvolume, v1.36.2; external-provisioner for the node affinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from podium.engine.store import ObjectStore
from podium.framework.contract.status import PluginError
from podium.framework.contract.writing import ObjectWrite
from podium.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.objects.meta import ObjectMeta
from podium.objects.resource_types import (
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from podium.objects.storage import (
    ClaimReference,
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    VolumeNodeAffinity,
)
from podium.plugins.volumes.claims import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    class_of_claim,
)
from podium.plugins.volumes.free_volumes import VolumeIndex
from podium.plugins.volumes.matching import choice_for

_STORAGE: Final = "storage"


def controller_writes(store: ObjectStore, written: Sequence[ObjectWrite], node_name: str) -> Iterator[ObjectWrite]:
    """What is written after the scheduler has chosen volumes and selected a node for claims.

    Args:
        written: what the scheduler has written; it is carried out already.
    """
    for write in written:
        if isinstance(volume := write.after, PersistentVolume) and volume.spec.claim_ref is not None:
            reference = volume.spec.claim_ref
            claim = store.get(PERSISTENT_VOLUME_CLAIMS, f"{reference.namespace}/{reference.name}")
            if claim is not None:
                yield from _bound(claim, volume)
        elif isinstance(claim := write.after, PersistentVolumeClaim) and SELECTED_NODE in claim.metadata.annotations:
            volume = _provisioned(store, claim, node_name)
            yield ObjectWrite(PERSISTENT_VOLUMES, None, volume)
            yield from _bound(claim, volume)


def bound_at_once(store: ObjectStore, claim: PersistentVolumeClaim) -> Sequence[ObjectWrite]:
    """What the volume controller writes as soon as a claim exists: its class does not wait, and a volume suits it."""
    name = class_of_claim(claim)
    storage_class = store.get(STORAGE_CLASSES, name) if name else None
    waits = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    if waits or claim.spec.volume_name:
        return ()
    index = VolumeIndex()
    for volume in store.objects(PERSISTENT_VOLUMES).values():
        index.put(volume)
    try:
        suitable = choice_for(claim, index).all()
    except PluginError:
        return ()
    if not suitable:
        return ()
    volume = suitable[0]
    kept = replace(volume, spec=replace(volume.spec, claim_ref=_reference(claim)))
    return [ObjectWrite(PERSISTENT_VOLUMES, volume, kept), *_bound(claim, kept)]


def _bound(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Iterator[ObjectWrite]:
    """The claim bound to the volume. Its new version ends what a scheduler has assumed of it."""
    annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    metadata = replace(
        claim.metadata, annotations=annotations, resource_version=f"{claim.metadata.resource_version}-bound"
    )
    spec = replace(claim.spec, volume_name=volume.metadata.name)
    status = PersistentVolumeClaimStatus(phase="Bound")
    yield ObjectWrite(PERSISTENT_VOLUME_CLAIMS, claim, replace(claim, metadata=metadata, spec=spec, status=status))
    volume_metadata = replace(volume.metadata, resource_version=f"{volume.metadata.resource_version}-bound")
    bound = replace(volume, metadata=volume_metadata, status=PersistentVolumeStatus(phase="Bound"))
    yield ObjectWrite(PERSISTENT_VOLUMES, volume, bound)


def _provisioned(store: ObjectStore, claim: PersistentVolumeClaim, node_name: str) -> PersistentVolume:
    """The volume that a provisioner makes for the claim, within reach of the node."""
    storage_class = store.get(STORAGE_CLASSES, class_of_claim(claim))
    driver = storage_class.provisioner if storage_class is not None else ""
    name = f"pvc-{claim.metadata.uid}"
    return PersistentVolume(
        metadata=ObjectMeta(name=name, uid=f"PersistentVolume/{name}"),
        spec=PersistentVolumeSpec(
            capacity={_STORAGE: claim.spec.resources.requests.get(_STORAGE, "0")},
            access_modes=claim.spec.access_modes,
            claim_ref=_reference(claim),
            storage_class_name=class_of_claim(claim),
            volume_mode=claim.spec.volume_mode,
            node_affinity=_affinity(store, driver, node_name),
            csi=CSIPersistentVolumeSource(driver=driver, volume_handle=name),
        ),
    )


def _affinity(store: ObjectStore, driver: str, node_name: str) -> VolumeNodeAffinity | None:
    """The affinity to the part of the cluster that the driver says the node is in."""
    csi_node, node = store.get(CSI_NODES, node_name), store.get(NODES, node_name)
    keys = [
        key
        for entry in (csi_node.spec.drivers if csi_node else ())
        if entry.name == driver
        for key in entry.topology_keys or ()
    ]
    labels = node.metadata.labels if node is not None else {}
    terms = tuple(NodeSelectorRequirement(key, "In", (labels[key],)) for key in keys if key in labels)
    if not terms:
        return None
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=terms),)))


def _reference(claim: PersistentVolumeClaim) -> ClaimReference:
    metadata = claim.metadata
    return ClaimReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
    )
