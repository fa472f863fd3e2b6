"""Binds claims to volumes and provisions volumes for claims, as the volume controller and provisioners do.

The provisioner of every class is assumed to work once a node is selected for a claim. The topology of an immediate
claim's volume is unknown, so such a claim stays unbound unless a volume exists.

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


def controller_writes(store: ObjectStore, writes: Sequence[ObjectWrite], node_name: str) -> Iterator[ObjectWrite]:
    """Yield the writes that follow the scheduler's choice of volumes and nodes for claims.

    Args:
        writes: the scheduler's writes, which are already carried out.
    """
    for write in writes:
        if isinstance(volume := write.after, PersistentVolume) and volume.spec.claim_ref is not None:
            reference = volume.spec.claim_ref
            claim = store.get(PERSISTENT_VOLUME_CLAIMS, f"{reference.namespace}/{reference.name}")
            if claim is not None:
                yield from _bind(claim, volume)
        elif isinstance(claim := write.after, PersistentVolumeClaim) and SELECTED_NODE in claim.metadata.annotations:
            volume = _provision(store, claim, node_name)
            yield ObjectWrite(PERSISTENT_VOLUMES, None, volume)
            yield from _bind(claim, volume)


def immediate_binding(store: ObjectStore, claim: PersistentVolumeClaim) -> Sequence[ObjectWrite]:
    """Return the volume controller's writes for a new claim whose class binds immediately, if a volume suits it."""
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
    claimed_volume = replace(volume, spec=replace(volume.spec, claim_ref=_reference(claim)))
    return [ObjectWrite(PERSISTENT_VOLUMES, volume, claimed_volume), *_bind(claim, claimed_volume)]


def _bind(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Iterator[ObjectWrite]:
    """Yield the writes that bind the claim. Its new resource version ends the scheduler's assumptions about it."""
    annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    metadata = replace(
        claim.metadata, annotations=annotations, resource_version=f"{claim.metadata.resource_version}-bound"
    )
    spec = replace(claim.spec, volume_name=volume.metadata.name)
    status = PersistentVolumeClaimStatus(phase="Bound")
    yield ObjectWrite(PERSISTENT_VOLUME_CLAIMS, claim, replace(claim, metadata=metadata, spec=spec, status=status))
    volume_metadata = replace(volume.metadata, resource_version=f"{volume.metadata.resource_version}-bound")
    bound_volume = replace(volume, metadata=volume_metadata, status=PersistentVolumeStatus(phase="Bound"))
    yield ObjectWrite(PERSISTENT_VOLUMES, volume, bound_volume)


def _provision(store: ObjectStore, claim: PersistentVolumeClaim, node_name: str) -> PersistentVolume:
    """Make the volume that a provisioner would make for the claim, accessible from the node."""
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
    """Return the affinity to the node's topology, as the driver reports it."""
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
