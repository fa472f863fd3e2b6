"""Volumes, claims, classes and CSI drivers, cut down to the fields that scheduling reads; see `objects.core`."""

from __future__ import annotations

from podium.objects.affinity import NodeSelector
from podium.objects.meta import ClusterObject, Int32, LabelSelector, NamespacedObject, RawQuantity, ResourceList, Value
from podium.objects.pod_volumes import (
    AWSElasticBlockStoreVolume,
    AzureDiskVolume,
    CinderVolume,
    GCEPersistentDiskVolume,
    PortworxVolume,
)


class VolumeResources(Value, frozen=True):
    """The amount of storage that a claim requests."""

    requests: ResourceList = {}


class PersistentVolumeClaimSpec(Value, frozen=True):
    """The spec of a claim: the volume that it requests, and the one that it is bound to."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Value, frozen=True):
    """The phase of the claim's binding."""

    phase: str = ""


class PersistentVolumeClaim(NamespacedObject, frozen=True):
    """A claim to storage."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class ClaimReference(Value, frozen=True):
    """The claim that a volume is bound or pre-bound to."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class CSIPersistentVolumeSource(Value, frozen=True):
    """A volume that a CSI driver serves."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Value, frozen=True):
    """The nodes that a volume can be used on."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Value, frozen=True):
    """The spec of a volume: its capacity, its source, and the claim that it is bound to."""

    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIPersistentVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolume | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolume | None = None
    azure_disk: AzureDiskVolume | None = None
    cinder: CinderVolume | None = None
    portworx_volume: PortworxVolume | None = None


class PersistentVolumeStatus(Value, frozen=True):
    """The phase of a volume."""

    phase: str = ""


class PersistentVolume(ClusterObject, frozen=True):
    """A piece of storage."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologyExpression(Value, frozen=True):
    """Values of a node label; a node must have one of them."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(Value, frozen=True):
    """Expressions that must all hold."""

    match_label_expressions: tuple[TopologyExpression, ...] = ()


class StorageClass(ClusterObject, frozen=True):
    """A way to provision volumes."""

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class VolumeNodeResources(Value, frozen=True):
    """The limit of a driver's volumes on a node."""

    count: Int32 | None = None


class CSINodeDriver(Value, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None
    topology_keys: tuple[str, ...] | None = None


class CSINodeSpec(Value, frozen=True):
    """The CSI drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(ClusterObject, frozen=True):
    """The CSI drivers that run on the node of the same name, with their limits."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Value, frozen=True):
    """The capabilities of a CSI driver that scheduling depends on."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(ClusterObject, frozen=True):
    """A CSI driver."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(NamespacedObject, frozen=True):
    """The amount of storage of a class that is left in one part of the cluster."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: RawQuantity | None = None
    maximum_volume_size: RawQuantity | None = None


class VolumeAttachmentSource(Value, frozen=True):
    """The volume that is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Value, frozen=True):
    """The volume that is attached, and the node that it is attached to."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(ClusterObject, frozen=True):
    """A volume attached, or to be attached, to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
