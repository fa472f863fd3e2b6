"""NodeVolumeLimits: no node gets more volumes of a CSI driver than it can attach.

Runs at: PreFilter, Filter.
Verdict: Unschedulable; UnschedulableAndUnresolvable where a claim is missing.
Requeue: a node appears among the CSI nodes or can attach more, a pod with volumes goes, a claim of the pod appears, a
volume is detached.
Cost: nothing without claims and migrated volumes; else a few look-ups for each node with a limit, and for each that
may be near it the volumes of its pods.
Source: kubernetes pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, v1.36.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework.cluster_event import ActionType, EventRegistration, EventResource, QueueingHint, Sees, on
from podium.framework.cycle_state import CycleState
from podium.framework.interface import FilterPlugin, Handle, PreFilterPlugin, PreFilterResult, Scope, TableFilterPlugin
from podium.framework.status import SKIP, Status, unresolvable, unschedulable
from podium.kube import resource_types
from podium.kube.objects import Pod, PodSpec
from podium.kube.storage_objects import CSINode, PersistentVolumeClaim, VolumeAttachment
from podium.plugins.hints import holds_a_place, queue_if
from podium.plugins.volumes.attachments import (
    AttachedVolume,
    MissingClaimError,
    VolumeFinder,
    attaches_volumes,
    is_plain,
)
from podium.plugins.volumes.claims import uses_claim
from podium.plugins.volumes.csi_translation import inline_driver

_TOO_MANY: Final = unschedulable("node(s) exceed max volume count")
_EXCEEDED, _MISSING = 1, 2


@dataclass(frozen=True, slots=True)
class _Users:
    """The pods of a node with volumes that count.

    Attributes:
        of: all pods of the node, as the snapshot has them; it makes a new mapping of each change.
        volumes_max: how many volumes they have at the most; None where that may not even make sense.
    """

    of: Mapping[str, Pod]
    pods: tuple[Pod, ...]
    volumes_max: int | None


def _users(of: Mapping[str, Pod]) -> _Users:
    pods = tuple(pod for pod in of.values() if pod.spec.volumes and attaches_volumes(pod.spec))
    makes_sense = all(is_plain(volume) for pod in pods for volume in pod.spec.volumes)
    return _Users(of, pods, sum(len(pod.spec.volumes) for pod in pods) if makes_sense else None)


def _limits(csi_node: CSINode) -> dict[str, int]:
    """How many volumes of each driver the node takes, where it says so."""
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


class NodeVolumeLimits(PreFilterPlugin, TableFilterPlugin, FilterPlugin):
    """Counts the volumes of the pods on a node, and those attached to it, against what its CSINode says."""

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._finder = VolumeFinder(handle)
        self._csi_nodes = handle.lister(resource_types.CSI_NODES)
        self._users: dict[int, _Users] = {}

    def pre_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        """Skip without volumes that have to be attached."""
        del state, snapshot
        return None, None if attaches_volumes(pod.spec) else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """1 for nodes that would get too many, 2 for all where a claim is missing."""
        del state
        try:
            self._finder.of_new_pod(pod, None)
        except MissingClaimError:
            return np.full(len(rows), _MISSING, np.int64)
        wanted: AbstractSet[AttachedVolume] | None = None
        verdicts = np.zeros(len(rows), np.int64)
        for position, row in enumerate(rows.tolist()):
            csi_node = self._csi_nodes.get(snapshot.name(row))
            if csi_node is None:
                continue
            if wanted is None:
                wanted = self._finder.of_new_pod(pod, csi_node)
            if not wanted:
                return None
            users = self._users_on(row, snapshot)
            name, limits = csi_node.metadata.name, _limits(csi_node)
            if not self._has_plenty(wanted, users, name, limits):
                verdicts[position] = self._is_exceeded(wanted, users.pods, csi_node, limits)
        return verdicts if verdicts.any() else None

    def explain(self, state: CycleState, pod: Pod, verdict: int) -> Status:
        """Too many, or which claim is missing."""
        del state
        if verdict == _EXCEEDED:
            return _TOO_MANY
        try:
            self._finder.of_new_pod(pod, None)
        except MissingClaimError as error:
            return unresolvable(str(error))
        raise AssertionError("the claim was missing a moment ago")

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Success, Unschedulable, or UnschedulableAndUnresolvable where a claim is missing."""
        del state
        csi_node = self._csi_nodes.get(node.name)
        try:
            wanted = self._finder.of_new_pod(pod, csi_node)
        except MissingClaimError as error:
            return unresolvable(str(error))
        if not wanted or csi_node is None:
            return None
        return _TOO_MANY if self._is_exceeded(wanted, node.pods, csi_node, _limits(csi_node)) else None

    def _users_on(self, row: int, snapshot: Snapshot) -> _Users:
        of = snapshot.pods[row]
        known = self._users.get(row)
        if known is None or known.of is not of:
            known = self._users[row] = _users(of)
        return known

    def _has_plenty(
        self,
        wanted: AbstractSet[AttachedVolume],
        users: _Users,
        node_name: str,
        limits: Mapping[str, int],
    ) -> bool:
        """Whether there are places enough even if every volume were another one, of a wanted driver."""
        places = min((limits[volume.driver] for volume in wanted if volume.driver in limits), default=None)
        if users.volumes_max is None or places is None:
            return users.volumes_max is not None
        attached = len(self._finder.attached_to(node_name))
        return users.volumes_max + attached + len(wanted) <= places

    def _is_exceeded(
        self,
        wanted: AbstractSet[AttachedVolume],
        pods: Iterable[Pod],
        csi_node: CSINode,
        limits: Mapping[str, int],
    ) -> bool:
        """Whether some driver would have more volumes on the node than it has places."""
        if not limits:
            return False
        used = self._finder.of_pods(pods, csi_node)
        new = Counter(volume.driver for volume in wanted - used)
        if new.keys().isdisjoint(limits):
            return False
        current = Counter(volume.driver for volume in used | self._finder.attached_to(csi_node.metadata.name))
        return any(driver in limits and current[driver] + count > limits[driver] for driver, count in new.items())

    def filter_scope(self, spec: PodSpec) -> Scope:
        """Claims and volumes wherever they are; nothing without any."""
        return Scope.CLUSTER if spec.volumes else Scope.NODE

    # ------------------------------------------------------------ requeueing

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """Places that are made or given back, claims that appear."""
        return (
            on(EventResource.CSI_NODE, ActionType.ADD),
            on(EventResource.CSI_NODE, ActionType.UPDATE, hint=self.after_csi_node_update, sees=Sees.SPEC),
            on(EventResource.POD, ActionType.DELETE, hint=self.after_pod_deletion, sees=Sees.SPEC),
            on(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, hint=self.after_claim_added),
            on(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, hint=self.after_detachment, sees=Sees.SPEC),
        )

    def after_csi_node_update(self, pod: Pod, old: CSINode, new: CSINode) -> QueueingHint:
        """Queue where some driver has more places than before; none where it does not say."""
        del pod
        before = _limits(old)
        return queue_if(any(count > before.get(driver, 0) for driver, count in _limits(new).items()))

    def after_pod_deletion(self, pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
        """Queue where the pod that went held a place and had volumes that may have been attached."""
        del pod, new
        return queue_if(holds_a_place(old) and attaches_volumes(old.spec))

    def after_claim_added(
        self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
    ) -> QueueingHint:
        """Queue where the pod uses the claim."""
        del old
        return queue_if(uses_claim(pod, new))

    def after_detachment(self, pod: Pod, old: VolumeAttachment, new: VolumeAttachment | None) -> QueueingHint:
        """Queue where the pod names a claim, or has an in-tree volume that the driver stands in for."""
        del new
        return queue_if(
            any(
                volume.persistent_volume_claim is not None
                or (old.spec.attacher and inline_driver(volume) == old.spec.attacher)
                for volume in pod.spec.volumes
            )
        )
