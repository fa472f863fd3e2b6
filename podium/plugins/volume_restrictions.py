"""VolumeRestrictions: a disk or claim that only one pod may use is not given to a second pod.

Runs at: PreFilter (with AddPod and RemovePod), Filter.
Verdict: Unschedulable; UnschedulableAndUnresolvable from PreFilter if a claim is missing.
Requeue: a pod that shares an inline disk or a claim is deleted, a claim that the pod names is added, any node is added.
Cost: nothing without claims and inline disks; otherwise one look-up per volume in the snapshot's index.
Source: kubernetes pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go, v1.36.2 and v1.37.2.
Differs: a pod on a node that does not exist conflicts with no pod; upstream may count it until a node comes or goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.volumes_in_use import ClaimKey, disk_key
from podium.framework import contract as fwk
from podium.objects import resource_types
from podium.objects.core import Pod, PodSpec, once_per_spec
from podium.objects.pod_volumes import Volume
from podium.objects.storage import PersistentVolumeClaim
from podium.plugins.shared.hints import queue_if
from podium.plugins.volumes.claims import READ_WRITE_ONCE_POD, claim_not_found, named_claims, names_claim

_DISK_TAKEN, _CLAIM_TAKEN = 1, 2
_REJECTED: Final = {
    _DISK_TAKEN: fwk.unschedulable("node(s) had no available disk"),
    _CLAIM_TAKEN: fwk.unschedulable(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod"
    ),
}


@once_per_spec
def _disks(spec: PodSpec) -> tuple[Volume, ...]:
    """Return the inline volumes that pods can share only under conditions."""
    return tuple(volume for volume in spec.volumes if disk_key(volume) is not None)


def _conflict(new_volume: Volume, volume_in_use: Volume) -> bool:
    if disk_key(new_volume) != disk_key(volume_in_use):
        return False
    if new_volume.aws_elastic_block_store is not None:
        return True
    if new_volume.gce_persistent_disk is not None and volume_in_use.gce_persistent_disk is not None:
        return not (new_volume.gce_persistent_disk.read_only and volume_in_use.gce_persistent_disk.read_only)
    if new_volume.iscsi is not None and volume_in_use.iscsi is not None:
        return not (new_volume.iscsi.read_only and volume_in_use.iscsi.read_only)
    assert new_volume.rbd is not None
    assert volume_in_use.rbd is not None
    new_image, image_in_use = new_volume.rbd, volume_in_use.rbd
    is_same = (new_image.pool, new_image.image) == (image_in_use.pool, image_in_use.image) and not set(
        new_image.monitors
    ).isdisjoint(image_in_use.monitors)
    return is_same and not (new_image.read_only and image_in_use.read_only)


def _pods_conflict(incoming_pod: Pod, pod_on_node: Pod) -> bool:
    disks_in_use = _disks(pod_on_node.spec)
    return bool(disks_in_use) and any(
        _conflict(new_disk, disk_in_use) for new_disk in _disks(incoming_pod.spec) for disk_in_use in disks_in_use
    )


@dataclass(slots=True)
class ReadWriteOncePodConflicts:
    """The pod's ReadWriteOncePod claims, and how often other pods use them."""

    names: frozenset[str]
    conflict_count: int

    def clone(self) -> ReadWriteOncePodConflicts:
        """Return an independent copy."""
        return ReadWriteOncePodConflicts(self.names, self.conflict_count)

    def count(self, pod: Pod, sign: int) -> None:
        """Add or remove another pod's uses. Namespaces are not compared, as upstream."""
        self.conflict_count += sign * sum(name in self.names for name in named_claims(pod))


class _Extensions(fwk.PreFilterExtensions):
    def add_pod(self, state: fwk.CycleState, pod: Pod, pod_to_add: Pod, node: NodeInfo) -> fwk.Status | None:
        """Add the pod's uses."""
        state.read(ReadWriteOncePodConflicts).count(pod_to_add, 1)
        return None

    def remove_pod(self, state: fwk.CycleState, pod: Pod, pod_to_remove: Pod, node: NodeInfo) -> fwk.Status | None:
        """Remove the pod's uses."""
        state.read(ReadWriteOncePodConflicts).count(pod_to_remove, -1)
        return None


class VolumeRestrictions(fwk.PreFilterPlugin, fwk.TableFilterPlugin, fwk.FilterPlugin):
    """Rejects nodes with a pod that uses an inline disk of this pod, and all nodes if a claim is in use."""

    def __init__(self, args: object, handle: fwk.Handle) -> None:
        self._events = handle.release.events
        self._claims = handle.lister(resource_types.PERSISTENT_VOLUME_CLAIMS)
        self._extensions = _Extensions()

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return Skip without inline disks and claims in use, UnschedulableAndUnresolvable if a claim is missing."""
        namespace = pod.metadata.namespace
        once_only: set[str] = set()
        for name in named_claims(pod):
            claim = self._claims.get(f"{namespace}/{name}")
            if claim is None:
                return None, fwk.unresolvable(claim_not_found(name))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                once_only.add(name)
        in_use = snapshot.volumes_in_use
        conflict_count = sum(bool(in_use.rows_using(ClaimKey(namespace, name))) for name in once_only)
        if not conflict_count and not _disks(pod.spec):
            return None, fwk.SKIP
        state.write(ReadWriteOncePodConflicts(frozenset(once_only), conflict_count))
        return None, None

    def pre_filter_extensions(self) -> fwk.PreFilterExtensions:
        """Return the extensions that update the uses of claims."""
        return self._extensions

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return verdict 1 for nodes where a disk is in use, 2 for all others if a claim is in use."""
        rows_with_disk = [
            row for row in _rows_with_disks(pod, snapshot) if self._is_disk_taken(pod, snapshot.node(row))
        ]
        is_claim_taken = state.read(ReadWriteOncePodConflicts).conflict_count > 0
        if not rows_with_disk and not is_claim_taken:
            return None
        verdicts = np.full(len(snapshot.nodes), _CLAIM_TAKEN if is_claim_taken else 0, np.int64)
        verdicts[rows_with_disk] = _DISK_TAKEN
        return verdicts.take(rows)

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return the status for a disk or a claim in use."""
        return _REJECTED[verdict]

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success or Unschedulable."""
        if self._is_disk_taken(pod, node):
            return _REJECTED[_DISK_TAKEN]
        return _REJECTED[_CLAIM_TAKEN] if state.read(ReadWriteOncePodConflicts).conflict_count > 0 else None

    def _is_disk_taken(self, pod: Pod, node: NodeInfo) -> bool:
        return any(_pods_conflict(pod, pod_on_node) for pod_on_node in node.pods)

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return CLUSTER for a pod with volumes, whose claims and volumes are separate objects; otherwise NODE."""
        return fwk.Scope.CLUSTER if spec.volumes else fwk.Scope.NODE

    # ------------------------------------------------------------ requeueing

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register pods that are deleted; nodes and claims that are added."""
        return (
            fwk.on(
                self._events.assigned_pods,
                fwk.ActionType.DELETE,
                hint=self.after_pod_deletion,
                scope=fwk.HintScope.SPEC,
            ),
            fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD),
            fwk.on(
                fwk.EventResource.PERSISTENT_VOLUME_CLAIM,
                fwk.ActionType.ADD,
                hint=self.after_claim_added,
                scope=fwk.HintScope.SPEC,
            ),
        )

    def after_pod_deletion(self, pod: Pod, old: Pod, new: Pod | None) -> fwk.QueueingHint:
        """Queue if the deleted pod, of the same namespace, shared a disk or a claim with this one."""
        if old.metadata.namespace != pod.metadata.namespace:
            return fwk.QueueingHint.SKIP
        return queue_if(_pods_conflict(pod, old) or not set(named_claims(pod)).isdisjoint(named_claims(old)))

    def after_claim_added(
        self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
    ) -> fwk.QueueingHint:
        """Queue if the pod names the claim."""
        return queue_if(names_claim(pod, new))


def _rows_with_disks(pod: Pod, snapshot: Snapshot) -> set[int]:
    """Return the rows with a pod that uses one of the disks, with or without conflict."""
    keys = {key for volume in _disks(pod.spec) if (key := disk_key(volume)) is not None}
    return {row for key in keys for row in snapshot.volumes_in_use.rows_using(key)}
