"""The claims and inline disks in use by the pods on each node."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.objects.core import Pod, PodSpec, once_per_spec
from podium.objects.pod_volumes import Volume


class ClaimKey(NamedTuple):
    """A claim that a pod names."""

    namespace: str
    name: str


class DiskKey(NamedTuple):
    """An inline disk that pods can share only under conditions: its source, and its identity there."""

    source: str
    identity: str


VolumeKey: TypeAlias = ClaimKey | DiskKey
IntArray: TypeAlias = NDArray[np.int64]

_NAMED, _UNCLEAR = range(2)
_PERHAPS_ATTACHED: Final = (
    "ephemeral",
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "azure_disk",
    "azure_file",
    "vsphere_volume",
    "cinder",
    "portworx_volume",
)


class VolumesInUse:
    """Rows by the claims and disks in use, with reference counts; and the number of volumes on each row.

    Source: kubernetes pkg/scheduler/framework/types.go (PVCRefCounts), v1.36.2.
    """

    def __init__(self) -> None:
        self._rows: dict[VolumeKey, dict[int, int]] = {}
        self._counts: IntArray = np.zeros((2, 0), np.int64)
        self._is_shared = False
        """Whether a copy shares the tables: then they are copied before they are written."""

    def add(self, row: int, pod: Pod) -> None:
        """Count what the pod uses on the row."""
        self._count(row, pod, 1)
        for key in _keys(pod):
            rows = self._own().get(key, {})
            # New mappings, because copies share them.
            self._rows[key] = {**rows, row: rows.get(row, 0) + 1}

    def remove(self, row: int, pod: Pod) -> None:
        """Take back one earlier `add`."""
        self._count(row, pod, -1)
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
        """Return the rows with a pod that uses the claim or disk."""
        return self._rows.get(key, {}).keys()

    def named_claims(self, rows: NDArray[np.intp]) -> IntArray:
        """Return, for each row, how many of its pods' volumes name a claim. Shape: one entry per row of `rows`."""
        return self._of(_NAMED, rows)

    def unclear(self, rows: NDArray[np.intp]) -> IntArray:
        """Return, for each row, how many of its pods' volumes may need attaching; their specs alone do not say.

        Shape: one entry per row of `rows`.
        """
        return self._of(_UNCLEAR, rows)

    def copy(self) -> VolumesInUse:
        """Return an independent copy. Cost: nothing until one of the two changes."""
        twin = VolumesInUse()
        twin._rows, twin._counts = self._rows, self._counts
        twin._is_shared = self._is_shared = True
        return twin

    def _own(self) -> dict[VolumeKey, dict[int, int]]:
        if self._is_shared:
            self._rows, self._counts, self._is_shared = dict(self._rows), self._counts.copy(), False
        return self._rows

    def _count(self, row: int, pod: Pod, sign: int) -> None:
        named_and_unclear = _volume_counts(pod.spec)
        if not any(named_and_unclear):
            return
        self._own()
        missing = row + 1 - self._counts.shape[1]
        if missing > 0:
            # At least doubled, so that adding row by row stays linear.
            self._counts = np.pad(self._counts, ((0, 0), (0, max(missing, row))))
        for column, number in zip(self._counts, named_and_unclear, strict=True):
            column[row] += sign * number

    def _of(self, column: int, rows: NDArray[np.intp]) -> IntArray:
        counts: IntArray = self._counts[column]
        if len(rows) and int(rows.max()) < len(counts):
            return counts.take(rows)
        in_use = np.zeros(len(rows), np.int64)
        is_counted = rows < len(counts)
        in_use[is_counted] = counts[rows[is_counted]]
        return in_use


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


@once_per_spec
def _volume_counts(spec: PodSpec) -> tuple[int, int]:
    """Return the number of volumes that name a claim, and of those that are unclear."""
    claims = [volume.persistent_volume_claim for volume in spec.volumes]
    claim_count = sum(claim is not None and bool(claim.claim_name) for claim in claims)
    nameless = sum(claim is not None and not claim.claim_name for claim in claims)
    other_volume_count = sum(
        any(getattr(volume, source) is not None for source in _PERHAPS_ATTACHED) for volume in spec.volumes
    )
    return claim_count, nameless + other_volume_count


def disk_key(volume: Volume) -> DiskKey | None:
    """Return the key that two conflicting inline disks share, or None for every other volume."""
    if (gce := volume.gce_persistent_disk) is not None:
        return DiskKey("gcePersistentDisk", gce.pd_name)
    if (aws := volume.aws_elastic_block_store) is not None:
        return DiskKey("awsElasticBlockStore", aws.volume_id)
    if (iscsi := volume.iscsi) is not None:
        return DiskKey("iscsi", iscsi.iqn)
    if (rbd := volume.rbd) is not None:
        return DiskKey("rbd", f"{rbd.pool}/{rbd.image}")
    return None
