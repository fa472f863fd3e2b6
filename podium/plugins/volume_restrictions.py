"""VolumeRestrictions: a disk or claim that only one pod may use is not given to a second pod.

Runs at: PreFilter (with AddPod and RemovePod), Filter.
Verdict: Unschedulable; UnschedulableAndUnresolvable from PreFilter if a claim is missing.
Requeue: a pod that shares an inline disk or a claim is deleted, a claim that the pod names is added, any node is added.
Cost: nothing without claims and inline disks; otherwise one look-up per volume in the snapshot's index.
Source: kubernetes pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go, v1.36.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.volumes_in_use import ClaimKey, disk_key
from podium.framework.contract.cluster_event import (
    ActionType,
    EventRegistration,
    EventResource,
    HintScope,
    QueueingHint,
    on,
)
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import (
    FilterPlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    TableFilterPlugin,
)
from podium.framework.contract.handle import Handle
from podium.framework.contract.plugin import Scope
from podium.framework.contract.status import SKIP, Status, unresolvable, unschedulable
from podium.objects import resource_types
from podium.objects.core import Pod, PodSpec, once_per_spec
from podium.objects.pod_volumes import Volume
from podium.objects.storage import PersistentVolumeClaim
from podium.plugins.shared.hints import queue_if
from podium.plugins.volumes.claims import READ_WRITE_ONCE_POD, claim_not_found, named_claims, names_claim

_DISK_TAKEN, _CLAIM_TAKEN = 1, 2
_REJECTED: Final = {
    _DISK_TAKEN: unschedulable("node(s) had no available disk"),
    _CLAIM_TAKEN: unschedulable(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod"
    ),
}


@once_per_spec
def _disks(spec: PodSpec) -> tuple[Volume, ...]:
    """The inline volumes that pods can share only under conditions."""
    return tuple(volume for volume in spec.volumes if disk_key(volume) is not None)


def _conflict(wanted: Volume, used: Volume) -> bool:
    if disk_key(wanted) != disk_key(used):
        return False
    if wanted.aws_elastic_block_store is not None:
        return True
    if wanted.gce_persistent_disk is not None and used.gce_persistent_disk is not None:
        return not (wanted.gce_persistent_disk.read_only and used.gce_persistent_disk.read_only)
    if wanted.iscsi is not None and used.iscsi is not None:
        return not (wanted.iscsi.read_only and used.iscsi.read_only)
    assert wanted.rbd is not None
    assert used.rbd is not None
    one, other = wanted.rbd, used.rbd
    is_same = (one.pool, one.image) == (other.pool, other.image) and not set(one.monitors).isdisjoint(other.monitors)
    return is_same and not (one.read_only and other.read_only)


def _pods_conflict(wanting: Pod, using: Pod) -> bool:
    used = _disks(using.spec)
    return bool(used) and any(_conflict(one, other) for one in _disks(wanting.spec) for other in used)


@dataclass(slots=True)
class ReadWriteOncePodConflicts:
    """The pod's ReadWriteOncePod claims, and how often other pods use them."""

    names: frozenset[str]
    others: int

    def clone(self) -> ReadWriteOncePodConflicts:
        """An independent copy."""
        return ReadWriteOncePodConflicts(self.names, self.others)

    def count(self, pod: Pod, sign: int) -> None:
        """Add or remove another pod's uses. Namespaces are not compared, as upstream."""
        self.others += sign * sum(name in self.names for name in named_claims(pod))


class _Extensions(PreFilterExtensions):
    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status | None:
        """Add the pod's uses."""
        del pod, node
        state.read(ReadWriteOncePodConflicts).count(added, 1)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status | None:
        """Remove the pod's uses."""
        del pod, node
        state.read(ReadWriteOncePodConflicts).count(removed, -1)
        return None


class VolumeRestrictions(PreFilterPlugin, TableFilterPlugin, FilterPlugin):
    """Rejects nodes with a pod that uses an inline disk of this pod, and all nodes if a claim is in use."""

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._claims = handle.lister(resource_types.PERSISTENT_VOLUME_CLAIMS)
        self._extensions = _Extensions()

    def pre_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        """Return Skip without inline disks and claims in use, UnschedulableAndUnresolvable if a claim is missing."""
        namespace = pod.metadata.namespace
        once_only: set[str] = set()
        for name in named_claims(pod):
            claim = self._claims.get(f"{namespace}/{name}")
            if claim is None:
                return None, unresolvable(claim_not_found(name))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                once_only.add(name)
        in_use = snapshot.volumes_in_use
        others = sum(bool(in_use.rows_using(ClaimKey(namespace, name))) for name in once_only)
        if not others and not _disks(pod.spec):
            return None, SKIP
        state.write(ReadWriteOncePodConflicts(frozenset(once_only), others))
        return None, None

    def pre_filter_extensions(self) -> PreFilterExtensions:
        """The extensions that update the uses of claims."""
        return self._extensions

    def filter_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Verdict 1 for nodes where a disk is in use, 2 for all others if a claim is in use."""
        taken = [row for row in _rows_with_disks(pod, snapshot) if self._is_disk_taken(pod, snapshot.node(row))]
        is_claim_taken = state.read(ReadWriteOncePodConflicts).others > 0
        if not taken and not is_claim_taken:
            return None
        verdicts = np.full(len(snapshot.nodes), _CLAIM_TAKEN if is_claim_taken else 0, np.int64)
        verdicts[taken] = _DISK_TAKEN
        return verdicts.take(rows)

    def explain(self, state: CycleState, pod: Pod, verdict: int) -> Status:
        """The status for a disk or a claim in use."""
        del state, pod
        return _REJECTED[verdict]

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Return success or Unschedulable."""
        if self._is_disk_taken(pod, node):
            return _REJECTED[_DISK_TAKEN]
        return _REJECTED[_CLAIM_TAKEN] if state.read(ReadWriteOncePodConflicts).others > 0 else None

    def _is_disk_taken(self, pod: Pod, node: NodeInfo) -> bool:
        return any(_pods_conflict(pod, other) for other in node.pods)

    def filter_scope(self, spec: PodSpec) -> Scope:
        """CLUSTER for a pod with volumes, because claims and volumes are objects elsewhere; otherwise NODE."""
        return Scope.CLUSTER if spec.volumes else Scope.NODE

    # ------------------------------------------------------------ requeueing

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """Pods that are deleted; nodes and claims that are added."""
        return (
            on(EventResource.POD, ActionType.DELETE, hint=self.after_pod_deletion, scope=HintScope.SPEC),
            on(EventResource.NODE, ActionType.ADD),
            on(
                EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, hint=self.after_claim_added, scope=HintScope.SPEC
            ),
        )

    def after_pod_deletion(self, pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
        """Queue if the deleted pod, of the same namespace, shared a disk or a claim with this one."""
        del new
        if old.metadata.namespace != pod.metadata.namespace:
            return QueueingHint.SKIP
        return queue_if(_pods_conflict(pod, old) or not set(named_claims(pod)).isdisjoint(named_claims(old)))

    def after_claim_added(
        self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
    ) -> QueueingHint:
        """Queue if the pod names the claim."""
        del old
        return queue_if(names_claim(pod, new))


def _rows_with_disks(pod: Pod, snapshot: Snapshot) -> set[int]:
    """The rows with a pod that uses one of the disks, with or without conflict."""
    keys = {key for volume in _disks(pod.spec) if (key := disk_key(volume)) is not None}
    return {row for key in keys for row in snapshot.volumes_in_use.rows_using(key)}
