"""The CSI volumes that a pod has, or will have, attached to its node.

Owns what counts as one volume: a driver and its handle, or an unbound claim. Never knows limits.

Source: kubernetes v1.36.2, pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (filterAttachableVolumes,
getCSIDriverInfo).
Differs: an unbound claim is identified by its key, where upstream makes a name with a random prefix. Claims and
attachments with a field that cannot be read count, for each driver if it is not known which one; upstream does not see
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from podium.framework import contract as fwk
from podium.objects import resource_types
from podium.objects.core import Pod, PodSpec, once_per_spec
from podium.objects.pod_volumes import Volume
from podium.objects.storage import CSINode, PersistentVolumeClaim
from podium.objects.unreadable import UnreadableAttachment, UnreadableVolumeClaim
from podium.plugins.volumes.claims import claim_not_found, class_of_claim, ephemeral_claim_name, ownership_problem
from podium.plugins.volumes.csi_translation import (
    TranslationError,
    driver_of_provisioner,
    handle_of,
    is_in_tree,
    is_migratable_inline,
    plugin_of,
)
from podium.plugins.volumes.grouped import group_by

UNKNOWN: Final = ""
"""The driver of a volume that counts for every driver, because its own cannot be read."""


class AttachedVolume(NamedTuple):
    """A volume that counts. `is_made` distinguishes a driver's handle from the key of a claim or attachment."""

    driver: str
    handle: str
    is_made: bool = True


class MissingClaimError(fwk.PluginError):
    """A claim of the pod does not exist."""


@once_per_spec
def attaches_volumes(spec: PodSpec) -> bool:
    """Return whether any of the pod's volumes may have to be attached to its node."""
    return any(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None or is_migratable_inline(volume)
        for volume in spec.volumes
    )


class VolumeFinder:
    """Follows the volumes of pods to their drivers."""

    def __init__(self, handle: fwk.Handle) -> None:
        self._claims = handle.lister(resource_types.PERSISTENT_VOLUME_CLAIMS)
        self._volumes = handle.lister(resource_types.PERSISTENT_VOLUMES)
        self._classes = handle.lister(resource_types.STORAGE_CLASSES)
        # Indexed, since each filtered node would otherwise look through the attachments of all.
        self._attachments = group_by(
            handle.lister(resource_types.VOLUME_ATTACHMENTS), lambda attachment: attachment.spec.node_name
        )

    def of_new_pod(self, pod: Pod, csi_node: CSINode | None) -> set[AttachedVolume]:
        """Return the volumes of an incoming pod.

        Raises:
            MissingClaimError: a claim does not exist.
            PluginError: a volume is invalid.
        """
        return self._of_pod(pod, csi_node, is_new=True)

    def of_pods(self, pods: Iterable[Pod], csi_node: CSINode | None) -> set[AttachedVolume]:
        """Return the volumes of pods that are on a node. Missing claims do not count.

        Raises:
            PluginError: a volume is invalid.
        """
        attached_volumes: set[AttachedVolume] = set()
        for pod in pods:
            if pod.spec.volumes and attaches_volumes(pod.spec):
                attached_volumes |= self._of_pod(pod, csi_node, is_new=False)
        return attached_volumes

    def attachments_max(self, node_name: str) -> int:
        """Return the number of VolumeAttachments of the node: an upper limit of `attached_to`."""
        return sum(1 for _ in self._attachments(node_name))

    def attached_to(self, node_name: str) -> set[AttachedVolume]:
        """Return the volumes that are attached to the node."""
        attached_volumes: set[AttachedVolume] = set()
        for attachment in self._attachments(node_name):
            # It takes a place on the node, whichever driver it is of.
            if isinstance(attachment, UnreadableAttachment):
                attached_volumes.add(AttachedVolume(UNKNOWN, attachment.key, is_made=False))
                continue
            name, attacher = attachment.spec.source.persistent_volume_name, attachment.spec.attacher
            volume = self._volumes.get(name) if attacher and name is not None else None
            if volume is not None and volume.spec.csi is not None:
                attached_volumes.add(AttachedVolume(attacher, volume.spec.csi.volume_handle))
        return attached_volumes

    def _of_pod(self, pod: Pod, csi_node: CSINode | None, *, is_new: bool) -> set[AttachedVolume]:
        attached_volumes: set[AttachedVolume] = set()
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None and volume.ephemeral is None:
                attached_volume = _of_inline(volume, csi_node)
            else:
                claim = self._claim(pod, volume, is_new=is_new)
                attached_volume = None if claim is None else self._of_claim(claim, csi_node)
            if attached_volume is not None:
                attached_volumes.add(attached_volume)
        return attached_volumes

    def _claim(self, pod: Pod, volume: Volume, *, is_new: bool) -> PersistentVolumeClaim | None:
        claim_source = volume.persistent_volume_claim
        name = claim_source.claim_name if claim_source is not None else ephemeral_claim_name(pod, volume.name)
        if not name:
            raise fwk.PluginError("PersistentVolumeClaim had no name")
        key = f"{pod.metadata.namespace}/{name}"
        claim = self._claims.get(key)
        # Of a pod on the node, the claim may have been deleted while the pod ends.
        if claim is None and is_new:
            raise MissingClaimError(f"looking up PVC {key}: {claim_not_found(name)}")
        if isinstance(claim, UnreadableVolumeClaim):
            return claim
        if claim is not None and claim_source is None and (problem := ownership_problem(pod, claim)) is not None:
            raise fwk.PluginError(problem)
        return claim

    def _of_claim(self, claim: PersistentVolumeClaim, csi_node: CSINode | None) -> AttachedVolume | None:
        if isinstance(claim, UnreadableVolumeClaim) and not claim.is_volume_read:
            return AttachedVolume(UNKNOWN, claim.key, is_made=False)
        volume = self._volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is None:
            return self._of_class(claim, csi_node)
        if (csi := volume.spec.csi) is not None:
            return AttachedVolume(csi.driver, csi.volume_handle) if csi.driver and csi.volume_handle else None
        plugin = plugin_of(volume)
        # Without a CSINode it cannot be known whether the plugin is migrated there.
        if plugin is None or csi_node is None:
            return None
        try:
            handle = handle_of(plugin, volume)
        except TranslationError:
            return None
        return AttachedVolume(plugin.driver, handle) if handle else None

    def _of_class(self, claim: PersistentVolumeClaim, csi_node: CSINode | None) -> AttachedVolume | None:
        """Return the volume that will be provisioned for the claim."""
        name = class_of_claim(claim)
        storage_class = self._classes.get(name) if name else None
        if storage_class is None or (is_in_tree(storage_class.provisioner) and csi_node is None):
            return None
        driver = driver_of_provisioner(storage_class.provisioner)
        return AttachedVolume(driver, claim.key, is_made=False) if driver else None


def _of_inline(volume: Volume, csi_node: CSINode | None) -> AttachedVolume | None:
    plugin = plugin_of(volume)
    if plugin is None or csi_node is None:
        return None
    try:
        return AttachedVolume(plugin.driver, handle_of(plugin, volume))
    except TranslationError as error:
        raise fwk.PluginError(f"converting volume({volume.name}) from inline to csi: {error}") from error
