"""Translation of in-tree volumes to the CSI volumes that replace them.

Owns the names of drivers, how a disk's name becomes a volume handle, and how its zone becomes CSI topology. Knows only
the volume sources that matter for scheduling.

Source: v1.36.2, k8s.io/csi-translation-lib v0.36.2; which of them count as migrated: kubernetes
pkg/scheduler/framework/plugins volumebinding/binder.go and nodevolumelimits/utils.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from podium.cluster.matching.volume_zones import MULTI_ZONE_DELIMITER
from podium.lib.error_text import UserFacingError
from podium.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.objects.pod_volumes import (
    AWSElasticBlockStoreVolume,
    AzureDiskVolume,
    CinderVolume,
    GCEPersistentDiskVolume,
    PortworxVolume,
    Volume,
)
from podium.objects.storage import CSINode, PersistentVolume
from podium.objects.topology_labels import BETA_REGION, BETA_ZONE, REGION, ZONE

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
"""Annotation of a CSINode: the comma-separated in-tree plugins that are migrated to CSI drivers on the node."""

_MANAGED_AZURE_DISK: Final = "managed"
_AWS_VOLUME: Final = re.compile(r"vol-[^/]*")
_UNSPECIFIED: Final = "UNSPECIFIED"
_GCE_ZONE_PARTS: Final = 3


class TranslationError(UserFacingError, ValueError):
    """The volume cannot be expressed as a CSI volume."""


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """An in-tree volume plugin and the CSI driver that replaces it.

    Args:
        source: the attribute of a volume and of a persistent volume that holds its source.
        topology_key: the driver's label for zones; "" if zone labels are not translated.
        handle: source and labels of the volume → the driver's volume handle; may raise `TranslationError`.
    """

    name: str
    driver: str
    source: str
    topology_key: str
    handle: Callable[[Any, dict[str, str]], str]


def _aws_handle(source: AWSElasticBlockStoreVolume, labels: dict[str, str]) -> str:
    # Ids are written plainly, or as `aws://zone/vol-id`.
    if not source.volume_id.startswith("aws://"):
        return source.volume_id
    handle = urlsplit(source.volume_id).path.strip("/")
    if _AWS_VOLUME.fullmatch(handle) is None:
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({source.volume_id})"
        )
    return handle


def _gce_handle(source: GCEPersistentDiskVolume, labels: dict[str, str]) -> str:
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(MULTI_ZONE_DELIMITER)
    # A regional disk lists its zones in one label.
    if len(zones) > 1:
        place = f"regions/{_gce_region(zones)}"
    else:
        place = f"zones/{zones[0] or _UNSPECIFIED}"
    return f"projects/{_UNSPECIFIED}/{place}/disks/{source.pd_name}"


def _gce_region(zones: list[str]) -> str:
    regions: set[str] = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != _GCE_ZONE_PARTS:
            raise TranslationError(
                "failed to get region from zones: "
                f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        region_list = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{region_list}]"
        )
    return regions.pop()


def _azure_handle(source: AzureDiskVolume, labels: dict[str, str]) -> str:
    if source.kind is not None and source.kind.lower() != _MANAGED_AZURE_DISK:
        raise TranslationError(f"kind({source.kind}) is not supported in csi migration")
    return source.disk_uri


def _volume_id(source: CinderVolume | PortworxVolume, labels: dict[str, str]) -> str:
    return source.volume_id


_MIGRATED: Final = (
    InTreePlugin(
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        "aws_elastic_block_store",
        "topology.ebs.csi.aws.com/zone",
        _aws_handle,
    ),
    InTreePlugin(
        "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "gce_persistent_disk", "topology.gke.io/zone", _gce_handle
    ),
    InTreePlugin("kubernetes.io/azure-disk", "disk.csi.azure.com", "azure_disk", "", _azure_handle),
    InTreePlugin(
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        "cinder",
        "topology.cinder.csi.openstack.org/zone",
        _volume_id,
    ),
    InTreePlugin("kubernetes.io/portworx-volume", "pxd.portworx.com", "portworx_volume", "", _volume_id),
)
_BY_NAME: Final = {plugin.name: plugin for plugin in _MIGRATED}
_NOT_COUNTED: Final = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})
"""In-tree plugins that have a CSI driver, but that kube-scheduler does not treat as migrated."""


def plugin_of(volume: Volume | PersistentVolume) -> InTreePlugin | None:
    """Return the in-tree plugin of the volume's source, if a CSI driver replaces it; otherwise None."""
    sources = volume.spec if isinstance(volume, PersistentVolume) else volume
    for plugin in _MIGRATED:
        if getattr(sources, plugin.source) is not None:
            return plugin
    return None


def handle_of(plugin: InTreePlugin, volume: Volume | PersistentVolume) -> str:
    """Return the driver's handle of a volume that has the plugin's source.

    Raises:
        TranslationError: the volume has no handle.
    """
    if isinstance(volume, PersistentVolume):
        return plugin.handle(getattr(volume.spec, plugin.source), volume.metadata.labels)
    return plugin.handle(getattr(volume, plugin.source), {})


def is_migratable_inline(volume: Volume) -> bool:
    """Return whether the volume of a pod has an in-tree source that can be migrated to a CSI driver."""
    return inline_driver(volume) is not None


def inline_driver(volume: Volume) -> str | None:
    """Return the CSI driver of a pod's volume with an in-tree source; None for other volumes."""
    plugin = plugin_of(volume)
    if plugin is not None:
        return plugin.driver
    if volume.azure_file is not None:
        return "file.csi.azure.com"
    return "csi.vsphere.vmware.com" if volume.vsphere_volume is not None else None


def driver_of_provisioner(provisioner: str) -> str:
    """Return the CSI driver that provisions for the provisioner; "" if its volumes do not count as CSI volumes."""
    plugin = _BY_NAME.get(provisioner)
    if plugin is not None:
        return plugin.driver
    return "" if provisioner in _NOT_COUNTED else provisioner


def is_in_tree(provisioner: str) -> bool:
    """Return whether the provisioner is an in-tree plugin for which there is a driver."""
    return provisioner in _BY_NAME or provisioner in _NOT_COUNTED


def is_migrated_on(plugin: InTreePlugin, csi_node: CSINode | None) -> bool:
    """Return whether the plugin is migrated to its CSI driver on the node, according to the CSINode."""
    if csi_node is None:
        return False
    return plugin.name in csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")


# ---------------------------------------------------------------- topology


def translated_affinity(plugin: InTreePlugin, volume: PersistentVolume) -> NodeSelector | None:
    """Return the volume's node affinity, with the driver's topology labels; None for all nodes.

    Raises:
        TranslationError: the volume cannot be translated.
    """
    # For its errors: upstream translates the whole volume, and fails for one without a valid handle.
    handle_of(plugin, volume)
    affinity = volume.spec.node_affinity
    selector = affinity.required if affinity is not None else None
    if not plugin.topology_key:
        return selector
    zone_label, region_label = _topology_labels(selector, volume.metadata.labels)
    # The volume's own affinity comes before its labels, from which upstream would derive one.
    if _values_of(selector, zone_label):
        selector = _with_renamed_key(selector, zone_label, plugin.topology_key)
    elif zone_label in volume.metadata.labels:
        selector = _with_zones(selector, plugin.topology_key, volume.metadata.labels[zone_label])
    if region_label == BETA_REGION and _values_of(selector, region_label):
        selector = _with_renamed_key(selector, region_label, REGION)
    return selector


def _topology_labels(selector: NodeSelector | None, labels: dict[str, str]) -> tuple[str, str]:
    """Return the label keys for zone and region: the current ones, unless only the deprecated ones are used."""
    keys = {requirement.key for term in _terms(selector) for requirement in term.match_expressions}
    for names in (keys, labels):
        if ZONE in names:
            return ZONE, REGION
        if BETA_ZONE in names:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _terms(selector: NodeSelector | None) -> tuple[NodeSelectorTerm, ...]:
    return selector.node_selector_terms if selector is not None else ()


def _values_of(selector: NodeSelector | None, key: str) -> bool:
    """Return whether any requirement on the key names values."""
    return any(
        requirement.key == key and requirement.values
        for term in _terms(selector)
        for requirement in term.match_expressions
    )


def _with_renamed_key(selector: NodeSelector | None, old_key: str, new_key: str) -> NodeSelector:
    return NodeSelector(
        node_selector_terms=tuple(
            replace(
                term,
                match_expressions=tuple(
                    replace(requirement, key=new_key) if requirement.key == old_key else requirement
                    for requirement in term.match_expressions
                ),
            )
            for term in _terms(selector)
        )
    )


def _with_zones(selector: NodeSelector | None, key: str, zones: str) -> NodeSelector | None:
    """Return the selector with the zones required in every term; unchanged if no zone is named."""
    zone_names = sorted({zone.strip() for zone in zones.split(MULTI_ZONE_DELIMITER)} - {""})
    if not zone_names:
        return selector
    requirement = NodeSelectorRequirement(key=key, operator="In", values=tuple(zone_names))
    return NodeSelector(
        node_selector_terms=tuple(
            replace(term, match_expressions=(*term.match_expressions, requirement))
            # Without terms there is no node affinity yet, and the zones become the only term.
            for term in _terms(selector) or (NodeSelectorTerm(),)
        )
    )
