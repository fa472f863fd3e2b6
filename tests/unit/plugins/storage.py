"""Builders of storage objects, and of pods that use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from podium.config import NEWEST, Release
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, PreFilterPlugin, TableFilterPlugin
from podium.framework.contract.status import Code, Status
from podium.objects import resource_types
from podium.objects.core import Pod
from podium.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from podium.plugins import IN_TREE
from tests.builders import pod, snapshot_of
from tests.unit.plugins.clusters import RecordingHandle

Json = dict[str, Any]

RESOURCES = {
    resource.type: resource
    for resource in resource_types.ALL
    if resource.type.__module__ == PersistentVolume.__module__
}

ZONE = "topology.kubernetes.io/zone"
DONE = {"pv.kubernetes.io/bind-completed": "yes"}
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


def claim(
    name: str = "data",
    *,
    storage_class: str | None = "slow",
    size: str = "1Gi",
    volume: str = "",
    is_bound_field: bool | None = None,
    modes: Iterable[str] = ("ReadWriteOnce",),
    annotations: Mapping[str, str] | None = None,
    owner: Pod | None = None,
    phase: str = "",
    deleting: bool = False,
    namespace: str = "default",
    version: str = "1",
    **spec: Any,
) -> PersistentVolumeClaim:
    """A claim; one with a volume is fully bound unless told otherwise."""
    is_bound = bool(volume) if is_bound_field is None else is_bound_field
    metadata: Json = {
        "name": name,
        "namespace": namespace,
        "uid": f"claim-{name}",
        "resourceVersion": version,
        "annotations": {**(DONE if is_bound else {}), **(annotations or {})},
    }
    if owner is not None:
        metadata["ownerReferences"] = [{"kind": "Pod", "uid": owner.uid, "controller": True}]
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    claim_spec: Json = {"accessModes": list(modes), "volumeName": volume, **spec}
    claim_spec["resources"] = {"requests": {"storage": size} if size else {}}
    if storage_class is not None:
        claim_spec["storageClassName"] = storage_class
    return msgspec.convert(
        {"metadata": metadata, "spec": claim_spec, "status": {"phase": phase}}, PersistentVolumeClaim
    )


def volume(
    name: str = "pv",
    *,
    storage_class: str = "slow",
    size: str = "1Gi",
    modes: Iterable[str] = ("ReadWriteOnce",),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    reach: Mapping[str, Iterable[str]] | None = None,
    kept_for: PersistentVolumeClaim | None = None,
    csi: tuple[str, str] | None = None,
    phase: str = "Available",
    deleting: bool = False,
    version: str = "1",
    **spec: Any,
) -> PersistentVolume:
    """A free volume; `reach` are values by label of the nodes it can be reached from."""
    metadata: Json = {
        "name": name,
        "uid": f"volume-{name}",
        "resourceVersion": version,
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    volume_spec: Json = {"capacity": {"storage": size}, "accessModes": list(modes), "storageClassName": storage_class}
    if reach is not None:
        expressions = [{"key": key, "operator": "In", "values": list(values)} for key, values in reach.items()]
        volume_spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    if kept_for is not None:
        meta = kept_for.metadata
        volume_spec["claimRef"] = {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid}
    if csi is not None:
        volume_spec["csi"] = {"driver": csi[0], "volumeHandle": csi[1]}
    return msgspec.convert(
        {"metadata": metadata, "spec": {**volume_spec, **spec}, "status": {"phase": phase}}, PersistentVolume
    )


def storage_class(
    name: str = "slow",
    *,
    provisioner: str = "disk.example.com",
    mode: str | None = "WaitForFirstConsumer",
    topologies: Iterable[Mapping[str, Iterable[str]]] = (),
) -> StorageClass:
    """A class; `allowed` are topologies of which one must hold, each values by label."""
    terms = [
        {"matchLabelExpressions": [{"key": key, "values": list(values)} for key, values in term.items()]}
        for term in topologies
    ]
    class_document: Json = {"metadata": {"name": name}, "provisioner": provisioner, "allowedTopologies": terms}
    return msgspec.convert(
        class_document if mode is None else {**class_document, "volumeBindingMode": mode}, StorageClass
    )


def csi_node(name: str, limits: Mapping[str, int | None] | None = None, migrated: str = "") -> CSINode:
    """Return a CSINode: how many volumes each driver takes, None where a driver does not say."""
    drivers = [
        {"name": driver, "allocatable": {} if count is None else {"count": count}}
        for driver, count in (limits or {}).items()
    ]
    annotations = {MIGRATED: migrated} if migrated else {}
    return msgspec.convert(
        {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}}, CSINode
    )


def csi_driver(name: str = "disk.example.com", *, publishes: bool | None = True, demands: bool = False) -> CSIDriver:
    """A driver; `demands` is whether pods go to no node without it."""
    spec: Json = {} if publishes is None else {"storageCapacity": publishes}
    spec |= {"preventPodSchedulingIfMissing": True} if demands else {}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, CSIDriver)


def capacity(
    name: str = "c",
    *,
    storage_class: str = "slow",
    on: Mapping[str, str] | None = None,
    size: str | None = None,
    largest: str | None = None,
) -> CSIStorageCapacity:
    """Return the capacity left on the nodes with these labels; without any it is left nowhere."""
    capacity_document: Json = {
        "metadata": {"name": name, "namespace": "kube-system"},
        "storageClassName": storage_class,
    }
    if on is not None:
        capacity_document["nodeTopology"] = {"matchLabels": dict(on)}
    if size is not None:
        capacity_document["capacity"] = size
    if largest is not None:
        capacity_document["maximumVolumeSize"] = largest
    return msgspec.convert(capacity_document, CSIStorageCapacity)


def attachment(volume_name: str | None, node_name: str, attacher: str = "disk.example.com") -> VolumeAttachment:
    return msgspec.convert(
        {
            "metadata": {"name": f"{volume_name}-{node_name}"},
            "spec": {"attacher": attacher, "nodeName": node_name, "source": {"persistentVolumeName": volume_name}},
        }
        if volume_name is not None
        else {"metadata": {"name": node_name}, "spec": {"attacher": attacher, "nodeName": node_name}},
        VolumeAttachment,
    )


def user(*volumes: str | Json, name: str = "web", **fields: Any) -> Pod:
    """A pod with volumes: a string is the name of a claim, everything else a volume as in the API."""
    pod_volumes = [
        {
            "name": f"v{index}",
            **(
                {"persistentVolumeClaim": {"claimName": volume_source}}
                if isinstance(volume_source, str)
                else volume_source
            ),
        }
        for index, volume_source in enumerate(volumes)
    ]
    return pod(name, spec={"volumes": pod_volumes}, **fields)


EPHEMERAL: Json = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


class VolumePluginBench:
    """Nodes, pods on them and storage objects, seen by one plugin."""

    def __init__(self, plugin: str, *items: Any, args: object = None, release: Release = NEWEST) -> None:
        objects: dict[Any, list[Any]] = {}
        pods_on_nodes: list[Any] = []
        for item in items:
            resource = next((RESOURCES[base] for base in type(item).__mro__ if base in RESOURCES), None)
            if resource is None:
                pods_on_nodes.append(item)
            else:
                objects.setdefault(resource, []).append(item)
        self.snapshot = snapshot_of(*pods_on_nodes)
        self.handle = RecordingHandle(self.snapshot, objects=objects, release=release)
        self.plugin: Any = IN_TREE[plugin](args, self.handle)
        self.state = CycleState()

    def pre_filter(self, pod: Pod) -> Status | None:
        """Return the status of PreFilter for the pod, in a new attempt."""
        self.state = CycleState()
        assert isinstance(self.plugin, PreFilterPlugin)
        result, status = self.plugin.pre_filter(self.state, pod, self.snapshot)
        assert result is None
        return status

    def filter(self, pod: Pod) -> dict[str, tuple[str, ...]]:
        """The reasons by rejected node; both forms have to agree."""
        status = self.pre_filter(pod)
        if status is not None:
            assert status.code is Code.SKIP, status
            return {}
        return {name: status.all_reasons for name, status in self.statuses(pod).items()}

    def statuses(self, pod: Pod) -> dict[str, Status]:
        """The status by rejected node, after PreFilter; both forms have to agree."""
        assert isinstance(self.plugin, TableFilterPlugin)
        assert isinstance(self.plugin, FilterPlugin)
        rows = self.snapshot.order[::-1]
        verdicts = self.plugin.filter_rows(self.state, pod, self.snapshot, rows)
        table: dict[str, Status | None] = dict.fromkeys(map(self.snapshot.name, rows))
        for row, verdict in zip(rows, verdicts if verdicts is not None else (), strict=verdicts is not None):
            if verdict:
                table[self.snapshot.name(row)] = self.plugin.explain(self.state, pod, int(verdict))
        for row in rows:
            node_status = self.plugin.filter(self.state, pod, self.snapshot.node(row))
            assert node_status == table[self.snapshot.name(row)], self.snapshot.name(row)
        return {name: status for name, status in table.items() if status is not None}
