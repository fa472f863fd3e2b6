"""The volumes of pods, cut down to what scheduling reads."""

from __future__ import annotations

from typing import Any

from msgspec import field

from podium.objects.meta import Value


class PersistentVolumeClaimVolume(Value, frozen=True):
    """A volume that is a claim by name."""

    claim_name: str = ""
    read_only: bool = False


class GCEPersistentDiskVolume(Value, frozen=True):
    """An inline GCE disk."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreVolume(Value, frozen=True):
    """An inline AWS disk."""

    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class ISCSIVolume(Value, frozen=True):
    """An inline iSCSI target."""

    iqn: str = ""
    read_only: bool = False


class RBDVolume(Value, frozen=True):
    """An inline Ceph block device."""

    monitors: tuple[str, ...] = ()
    pool: str = ""
    image: str = ""
    read_only: bool = False


class CSIVolume(Value, frozen=True):
    """An inline CSI volume."""

    driver: str = ""


class AzureDiskVolume(Value, frozen=True):
    """An inline Azure disk."""

    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None


class AzureFileVolume(Value, frozen=True):
    """An inline Azure file share; only its presence is kept."""


class VSphereVolume(Value, frozen=True):
    """An inline vSphere volume; only its presence is kept."""


class CinderVolume(Value, frozen=True):
    """An inline Cinder volume."""

    volume_id: str = field(default="", name="volumeID")


class PortworxVolume(Value, frozen=True):
    """An inline Portworx volume."""

    volume_id: str = field(default="", name="volumeID")


class ImageVolume(Value, frozen=True):
    """An image mounted as a volume."""

    reference: str = ""


class EphemeralVolume(Value, frozen=True):
    """A volume with its own claim, which is created and deleted with the pod.

    The claim is created from the template, which is kept as parsed JSON.
    """

    volume_claim_template: dict[str, Any] = {}


class Volume(Value, frozen=True):
    """A pod's volume; sources that never influence scheduling are not kept."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GCEPersistentDiskVolume | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolume | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None
    csi: CSIVolume | None = None
    azure_disk: AzureDiskVolume | None = None
    azure_file: AzureFileVolume | None = None
    vsphere_volume: VSphereVolume | None = None
    cinder: CinderVolume | None = None
    portworx_volume: PortworxVolume | None = None
    image: ImageVolume | None = None

    @property
    def has_source(self) -> bool:
        """The volume has a source that affects scheduling."""
        return self != Volume(name=self.name)
