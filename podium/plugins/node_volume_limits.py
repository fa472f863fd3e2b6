"""NodeVolumeLimits: no node gets more volumes of a CSI driver than it can attach.

Runs at: PreFilter, Filter.
Verdict: Unschedulable if a limit would be exceeded, or if a CSI driver with `preventPodSchedulingIfMissing` is not
installed on the node; UnschedulableAndUnresolvable if a claim is missing.
Requeue: a CSINode is added or can attach more volumes, a pod with volumes is deleted, a claim of the pod is added, a
volume is detached.
Cost: nothing for pods without claims and migrated volumes; otherwise a few column lookups, and a walk over the volumes
of the pods on each node that may be near its limit.
Source: kubernetes pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, v1.36.2 and v1.37.2.
Differs: a node whose CSINode cannot be parsed in full takes no further volumes; upstream does not see such a CSINode
and then applies no limit. Claims and attachments that cannot be parsed in full count as volumes, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.snapshot import BoolArray
from podium.framework import contract as fwk
from podium.objects import resource_types
from podium.objects.core import Pod, PodSpec
from podium.objects.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from podium.objects.unreadable import UnreadableCSINode
from podium.plugins.shared.hints import occupies_node, queue_if
from podium.plugins.volumes.attachments import (
    UNKNOWN,
    AttachedVolume,
    MissingClaimError,
    VolumeFinder,
    attaches_volumes,
)
from podium.plugins.volumes.claims import uses_claim
from podium.plugins.volumes.csi_translation import inline_driver
from podium.plugins.volumes.node_columns import NodeColumn, change_log_of

_TOO_MANY: Final = fwk.unschedulable("node(s) exceed max volume count")
_EXCEEDED, _CLAIM_MISSING, _NOT_INSTALLED = 1, 2, 3
"""Verdicts. `_NOT_INSTALLED + i` says that the driver at index i of `_RequiredDrivers.names` is not installed."""
_NO_LIMIT: Final = 1 << 62
_DRIVERS_MAX: Final = 64
"""The maximum number of drivers whose columns are cached."""


@dataclass(frozen=True, slots=True)
class _RequiredDrivers:
    """The drivers that must be installed on the pod's node; an index in `names` is part of a verdict."""

    names: tuple[str, ...]


def _not_installed(driver: str) -> fwk.Status:
    return fwk.unschedulable(f"{driver} CSI driver is not installed on the node")


def _limits(csi_node: CSINode) -> dict[str, int]:
    """Return the volume limit of each driver that the CSINode has a limit for."""
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


class NodeVolumeLimits(fwk.PreFilterPlugin, fwk.TableFilterPlugin, fwk.FilterPlugin):
    """Checks the volumes of the pods on a node, and those attached to it, against the limits in its CSINode."""

    def __init__(self, args: object, handle: fwk.Handle) -> None:
        self._events = handle.release.events
        self._needs_installed_drivers = handle.release.needs_installed_drivers
        self._drivers = handle.lister(resource_types.CSI_DRIVERS)
        self._finder = VolumeFinder(handle)
        self._csi_nodes = handle.lister(resource_types.CSI_NODES)
        self._csi_node_changes = change_log_of(self._csi_nodes)
        self._has_csi_node = self._csi_node_column(lambda name: self._csi_nodes.get(name) is not None)
        self._limit_columns: dict[str, NodeColumn[CSINode]] = {}
        self._installed_columns: dict[str, NodeColumn[CSINode]] = {}
        self._attachment_counts = NodeColumn(
            change_log_of(handle.lister(resource_types.VOLUME_ATTACHMENTS)),
            lambda attachment: attachment.spec.node_name,
            self._finder.attachments_max,
        )

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return Skip for a pod without volumes that must be attached."""
        return None, None if attaches_volumes(pod.spec) else fwk.SKIP

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return the verdict of each row: a driver is not installed, a limit is exceeded, or a claim is missing."""
        try:
            new_volumes = volumes_without_csi_node = self._finder.of_new_pod(pod, None)
        except MissingClaimError:
            return np.full(len(rows), _CLAIM_MISSING, np.int64)
        has_csi_node = self._has_csi_node.over(snapshot).take(rows) > 0
        has_any_csi_node = has_csi_node.any()
        if has_any_csi_node:
            # Any node with a CSINode will do: the new volumes depend only on whether there is one.
            example_name = snapshot.name(int(rows[has_csi_node.argmax()]))
            new_volumes = self._finder.of_new_pod(pod, self._csi_nodes.get(example_name))
        verdicts = np.zeros(len(rows), np.int64)
        if required_drivers := self._required_drivers(new_volumes):
            state.write(_RequiredDrivers(required_drivers))
            drivers_without_csi_node = {volume.driver for volume in volumes_without_csi_node}
            for index, driver in reversed(tuple(enumerate(required_drivers))):
                is_absent = self._installed_column(driver).over(snapshot).take(rows) == 0
                if driver not in drivers_without_csi_node:
                    is_absent &= has_csi_node
                verdicts[is_absent] = _NOT_INSTALLED + index
        if has_any_csi_node and new_volumes:
            is_close = self._close_to_limits(new_volumes, snapshot, rows) & (verdicts == 0)
            for position in is_close.nonzero()[0].tolist():
                row = int(rows[position])
                csi_node = self._csi_nodes.get(snapshot.name(row))
                if csi_node is not None:
                    verdicts[position] = self._is_exceeded(
                        new_volumes, snapshot.pods[row].values(), csi_node, _limits(csi_node)
                    )
        return verdicts if verdicts.any() else None

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return the status: too many volumes, the absent driver, or the missing claim."""
        if verdict == _EXCEEDED:
            return _TOO_MANY
        if verdict >= _NOT_INSTALLED:
            return _not_installed(state.read(_RequiredDrivers).names[verdict - _NOT_INSTALLED])
        try:
            self._finder.of_new_pod(pod, None)
        except MissingClaimError as error:
            return fwk.unresolvable(str(error))
        raise AssertionError("the claim was missing a moment ago")

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success, Unschedulable, or UnschedulableAndUnresolvable if a claim is missing."""
        csi_node = self._csi_nodes.get(node.name)
        try:
            new_volumes = self._finder.of_new_pod(pod, csi_node)
        except MissingClaimError as error:
            return fwk.unresolvable(str(error))
        for driver in self._required_drivers(new_volumes):
            if not self._is_installed(driver, node.name):
                return _not_installed(driver)
        if not new_volumes or csi_node is None:
            return None
        return _TOO_MANY if self._is_exceeded(new_volumes, node.pods, csi_node, _limits(csi_node)) else None

    def _close_to_limits(self, new_volumes: AbstractSet[AttachedVolume], snapshot: Snapshot, rows: Rows) -> BoolArray:
        """Return the rows that exceed a limit if all volumes are distinct, or have volumes that may need attaching."""
        in_use = snapshot.volumes_in_use
        volumes_max = in_use.named_claims(rows) + self._attachment_counts.over(snapshot).take(rows) + len(new_volumes)
        is_close: BoolArray = in_use.unclear(rows) > 0
        for driver in {volume.driver for volume in new_volumes}:
            is_close |= volumes_max > self._limit_column(driver).over(snapshot).take(rows)
        return is_close

    def _required_drivers(self, volumes: Iterable[AttachedVolume]) -> tuple[str, ...]:
        """Return the drivers of the volumes that must be installed on the node, in the order of the checks."""
        if not self._needs_installed_drivers:
            return ()
        return tuple(
            name
            for name in sorted({volume.driver for volume in volumes})
            if (driver := self._drivers.get(name)) is not None and driver.spec.prevent_pod_scheduling_if_missing
        )

    def _installed_column(self, driver: str) -> NodeColumn[CSINode]:
        return self._cached_column(self._installed_columns, driver, lambda name: self._is_installed(driver, name))

    def _is_installed(self, driver: str, node_name: str) -> bool:
        csi_node = self._csi_nodes.get(node_name)
        if csi_node is None or isinstance(csi_node, UnreadableCSINode):
            return csi_node is not None
        return any(installed.name == driver for installed in csi_node.spec.drivers)

    def _limit_column(self, driver: str) -> NodeColumn[CSINode]:
        return self._cached_column(self._limit_columns, driver, lambda name: self._limit_on(driver, name))

    def _cached_column(
        self, columns: dict[str, NodeColumn[CSINode]], driver: str, number_of: Callable[[str], int]
    ) -> NodeColumn[CSINode]:
        column = columns.pop(driver, None)
        if column is None:
            if len(columns) >= _DRIVERS_MAX:
                del columns[next(iter(columns))]
            column = self._csi_node_column(number_of)
        columns[driver] = column  # the most recently used is last
        return column

    def _limit_on(self, driver: str, node_name: str) -> int:
        csi_node = self._csi_nodes.get(node_name)
        if isinstance(csi_node, UnreadableCSINode):
            return 0
        return _NO_LIMIT if csi_node is None else _limits(csi_node).get(driver, _NO_LIMIT)

    def _csi_node_column(self, number_of: Callable[[str], int]) -> NodeColumn[CSINode]:
        return NodeColumn(self._csi_node_changes, lambda csi_node: csi_node.metadata.name, number_of)

    def _is_exceeded(
        self,
        new_volumes: AbstractSet[AttachedVolume],
        pods: Iterable[Pod],
        csi_node: CSINode,
        limits: Mapping[str, int],
    ) -> bool:
        """Return whether a driver would exceed its limit on the node, or might if a volume's driver is unknown."""
        if isinstance(csi_node, UnreadableCSINode):
            return bool(new_volumes - self._finder.of_pods(pods, csi_node))
        if not limits:
            return False
        volumes_in_use = self._finder.of_pods(pods, csi_node)
        new_counts = Counter(volume.driver for volume in new_volumes - volumes_in_use)
        if new_counts.keys().isdisjoint(limits):
            return False
        current_counts = Counter(
            volume.driver for volume in volumes_in_use | self._finder.attached_to(csi_node.metadata.name)
        )
        unknown_count = current_counts[UNKNOWN]
        return any(
            driver in limits and current_counts[driver] + unknown_count + count > limits[driver]
            for driver, count in new_counts.items()
        )

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return CLUSTER for a pod with volumes, whose claims and volumes are separate objects; otherwise NODE."""
        return fwk.Scope.CLUSTER if spec.volumes else fwk.Scope.NODE

    # ------------------------------------------------------------ requeueing

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register changes that free attachments or raise limits, and claims that are added."""
        return (
            fwk.on(fwk.EventResource.CSI_NODE, fwk.ActionType.ADD),
            fwk.on(
                fwk.EventResource.CSI_NODE,
                fwk.ActionType.UPDATE,
                hint=self.after_csi_node_update,
                scope=fwk.HintScope.SPEC,
            ),
            fwk.on(
                self._events.assigned_pods,
                fwk.ActionType.DELETE,
                hint=self.after_pod_deletion,
                scope=fwk.HintScope.SPEC,
            ),
            fwk.on(fwk.EventResource.PERSISTENT_VOLUME_CLAIM, fwk.ActionType.ADD, hint=self.after_claim_added),
            fwk.on(
                fwk.EventResource.VOLUME_ATTACHMENT,
                fwk.ActionType.DELETE,
                hint=self.after_detachment,
                scope=fwk.HintScope.SPEC,
            ),
        )

    def after_csi_node_update(self, pod: Pod, old: CSINode, new: CSINode) -> fwk.QueueingHint:
        """Queue if a driver has a higher limit than before. A driver without a limit counts as 0."""
        if isinstance(old, UnreadableCSINode):
            return fwk.QueueingHint.QUEUE
        old_limits = _limits(old)
        return queue_if(any(count > old_limits.get(driver, 0) for driver, count in _limits(new).items()))

    def after_pod_deletion(self, pod: Pod, old: Pod, new: Pod | None) -> fwk.QueueingHint:
        """Queue if the deleted pod was on a node, or nominated to one, and had volumes that may have been attached."""
        return queue_if(occupies_node(old) and attaches_volumes(old.spec))

    def after_claim_added(
        self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
    ) -> fwk.QueueingHint:
        """Queue if the pod uses the claim."""
        return queue_if(uses_claim(pod, new))

    def after_detachment(self, pod: Pod, old: VolumeAttachment, new: VolumeAttachment | None) -> fwk.QueueingHint:
        """Queue if the pod uses any claim, or has an in-tree volume that is migrated to the driver."""
        return queue_if(
            any(
                volume.persistent_volume_claim is not None
                or (old.spec.attacher and inline_driver(volume) == old.spec.attacher)
                for volume in pod.spec.volumes
            )
        )
