"""Which claims and which inline disks the pods on each node use."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, TypeAlias

from podium.kube.objects import Pod, PodSpec, Volume, once_per_spec


class ClaimKey(NamedTuple):
    """A claim that a pod names."""

    namespace: str
    name: str


class DiskKey(NamedTuple):
    """An inline disk of a kind that only some pods may share: its source and what identifies it there."""

    source: str
    identity: str


VolumeKey: TypeAlias = ClaimKey | DiskKey


class VolumesInUse:
    """Rows by what pods on them use, counted by reference.

    Source: kubernetes pkg/scheduler/framework/types.go (PVCRefCounts), v1.36.2.
    """

    def __init__(self) -> None:
        self._rows: dict[VolumeKey, dict[int, int]] = {}
        self._is_shared = False
        """A copy reads the same table: it is copied before it is written."""

    def add(self, row: int, pod: Pod) -> None:
        """Count what the pod uses on the row."""
        for key in _keys(pod):
            rows = self._own().get(key, {})
            self._rows[key] = {**rows, row: rows.get(row, 0) + 1}

    def remove(self, row: int, pod: Pod) -> None:
        """Take back one earlier `add`."""
        for key in _keys(pod):
            rows = dict(self._own()[key])
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
            if rows:
                self._rows[key] = rows
            else:
                del self._rows[key]

    def rows_using(self, key: VolumeKey) -> Collection[int]:
        """The rows with a pod that uses it."""
        return self._rows.get(key, {}).keys()

    def copy(self) -> VolumesInUse:
        """An independent copy. Cost: nothing until one of the two changes."""
        twin = VolumesInUse()
        twin._rows = self._rows
        twin._is_shared = self._is_shared = True
        return twin

    def _own(self) -> dict[VolumeKey, dict[int, int]]:
        if self._is_shared:
            self._rows, self._is_shared = dict(self._rows), False
        return self._rows


def _keys(pod: Pod) -> list[VolumeKey]:
    namespace = pod.metadata.namespace
    names, disks = _names_and_disks(pod.spec)
    return [*(ClaimKey(namespace, name) for name in names), *disks]


@once_per_spec
def _names_and_disks(spec: PodSpec) -> tuple[tuple[str, ...], tuple[DiskKey, ...]]:
    claims = (volume.persistent_volume_claim for volume in spec.volumes)
    return (
        tuple(claim.claim_name for claim in claims if claim is not None),
        tuple(key for volume in spec.volumes if (key := disk_key(volume)) is not None),
    )


def disk_key(volume: Volume) -> DiskKey | None:
    """What two inline disks that may conflict have in common; None for every other volume."""
    if (gce := volume.gce_persistent_disk) is not None:
        return DiskKey("gcePersistentDisk", gce.pd_name)
    if (aws := volume.aws_elastic_block_store) is not None:
        return DiskKey("awsElasticBlockStore", aws.volume_id)
    if (iscsi := volume.iscsi) is not None:
        return DiskKey("iscsi", iscsi.iqn)
    if (rbd := volume.rbd) is not None:
        return DiskKey("rbd", f"{rbd.pool}/{rbd.image}")
    return None
