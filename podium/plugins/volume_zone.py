"""VolumeZone: pods go to nodes with the zone and region labels of their volumes.

Runs at: PreFilter, Filter.
Verdict: UnschedulableAndUnresolvable.
Requeue: a node or volume is added or changes labels, a claim of the pod is added or changes, a class with
WaitForFirstConsumer is added.
Cost: nothing without labelled volumes; otherwise one gather for each label of each volume.
Source: kubernetes pkg/scheduler/framework/plugins/volumezone/volume_zone.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.labels import ABSENT
from podium.cluster.matching.volume_zones import TOPOLOGY_LABELS, Zones, zones_of
from podium.cluster.snapshot import BoolArray
from podium.framework import contract as fwk
from podium.objects import resource_types
from podium.objects.core import Pod, PodSpec
from podium.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from podium.objects.topology_labels import BETA_REGION, BETA_ZONE, REGION, ZONE
from podium.plugins.shared.hints import queue_if
from podium.plugins.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_not_found,
    class_of_claim,
    named_claims,
    names_claim,
)

_REJECTED: Final = fwk.unresolvable("node(s) had no available volume zone")
_TODAYS_LABEL: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}


@dataclass(frozen=True, slots=True)
class _Demands:
    zones: tuple[Zones, ...]


class VolumeZone(fwk.PreFilterPlugin, fwk.TableFilterPlugin, fwk.FilterPlugin):
    """Matches nodes' labels against those of the pod's bound volumes. Nodes without any such label pass."""

    def __init__(self, args: object, handle: fwk.Handle) -> None:
        self._claims = handle.lister(resource_types.PERSISTENT_VOLUME_CLAIMS)
        self._volumes = handle.lister(resource_types.PERSISTENT_VOLUMES)
        self._classes = handle.lister(resource_types.STORAGE_CLASSES)

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return Skip if no volume has such labels, UnschedulableAndUnresolvable if a claim or volume is missing."""
        zones: list[Zones] = []
        for name in named_claims(pod):
            claim_zones = self._zones_of_claim(pod.metadata.namespace, name)
            if isinstance(claim_zones, fwk.Status):
                return None, claim_zones
            zones += claim_zones
        if not zones:
            return None, fwk.SKIP
        state.write(_Demands(tuple(zones)))
        return None, None

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return verdict 1 for nodes with other labels."""
        is_fitting = np.ones(len(rows), np.bool_)
        for zones in state.read(_Demands).zones:
            is_fitting &= _rows_in(zones, snapshot, rows)
        if is_fitting.all():
            return None
        # As upstream: a node without any such label passes, since its cluster may not use zones at all.
        has_zone_label = np.zeros(len(rows), np.bool_)
        for label in TOPOLOGY_LABELS:
            has_zone_label |= snapshot.label_column(label).ids.take(rows) != ABSENT
        return np.where(has_zone_label & ~is_fitting, 1, 0)

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return the status of the only verdict."""
        return _REJECTED

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success or UnschedulableAndUnresolvable."""
        labels = node.labels
        if not any(label in labels for label in TOPOLOGY_LABELS):
            return None
        return None if all(_is_in(zones, labels) for zones in state.read(_Demands).zones) else _REJECTED

    def _zones_of_claim(self, namespace: str, name: str) -> Sequence[Zones] | fwk.Status:
        if not name:
            return fwk.unresolvable("PersistentVolumeClaim had no name")
        claim = self._claims.get(f"{namespace}/{name}")
        if claim is None:
            return fwk.unresolvable(claim_not_found(name))
        volume_name = claim.spec.volume_name
        if not volume_name:
            # Nothing to compare yet; VolumeBinding decides where the claim can get a volume.
            return self._problem_of_unbound(claim) or ()
        volume = self._volumes.get(volume_name)
        if volume is None:
            return fwk.unresolvable(f'persistentvolume "{volume_name}" not found')
        return zones_of(volume)

    def _problem_of_unbound(self, claim: PersistentVolumeClaim) -> fwk.Status | None:
        """Return why an unbound claim rejects the pod; None if it waits for its first consumer."""
        class_name = class_of_claim(claim)
        if not class_name:
            return fwk.unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = self._classes.get(class_name)
        if storage_class is None:
            return fwk.unresolvable(f'storageclass.storage.k8s.io "{class_name}" not found')
        if storage_class.volume_binding_mode is None:
            return fwk.unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return None
        return fwk.unresolvable("PersistentVolume had no name")

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return CLUSTER for a pod with volumes, whose claims and volumes are separate objects; otherwise NODE."""
        return fwk.Scope.CLUSTER if spec.volumes else fwk.Scope.NODE

    # ------------------------------------------------------------ requeueing

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register classes, nodes, claims and volumes that are added or changed."""
        return (
            fwk.on(
                fwk.EventResource.STORAGE_CLASS,
                fwk.ActionType.ADD,
                hint=self.after_class_added,
                scope=fwk.HintScope.SPEC,
            ),
            fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD, fwk.ActionType.UPDATE_NODE_LABEL),
            fwk.on(
                fwk.EventResource.PERSISTENT_VOLUME_CLAIM,
                fwk.ActionType.ADD,
                fwk.ActionType.UPDATE,
                hint=self.after_claim_change,
                scope=fwk.HintScope.SPEC,
            ),
            fwk.on(
                fwk.EventResource.PERSISTENT_VOLUME,
                fwk.ActionType.ADD,
                fwk.ActionType.UPDATE,
                hint=self.after_volume_change,
                scope=fwk.HintScope.SPEC,
            ),
        )

    def after_class_added(self, pod: Pod, old: StorageClass | None, new: StorageClass) -> fwk.QueueingHint:
        """Queue if claims of the class wait for their first consumer."""
        return queue_if(new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)

    def after_claim_change(
        self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
    ) -> fwk.QueueingHint:
        """Queue if the pod names the claim."""
        return queue_if(names_claim(pod, new))

    def after_volume_change(self, pod: Pod, old: PersistentVolume | None, new: PersistentVolume) -> fwk.QueueingHint:
        """Queue if the volume is new, or requires other labels than before."""
        return queue_if(old is None or zones_of(old) != zones_of(new))


def _is_in(zones: Zones, labels: Mapping[str, str]) -> bool:
    value = labels.get(zones.label)
    # Volumes of old clusters have the beta labels, which new nodes no longer get.
    if value is None:
        value = labels.get(_TODAYS_LABEL.get(zones.label, zones.label))
    return value in zones.values


def _rows_in(zones: Zones, snapshot: Snapshot, rows: Rows) -> BoolArray:
    is_within, present = _rows_with(zones.label, zones.values, snapshot, rows)
    todays_label = _TODAYS_LABEL.get(zones.label)
    if todays_label is None:
        return is_within
    within_today, _ = _rows_with(todays_label, zones.values, snapshot, rows)
    return np.where(present, is_within, within_today)


def _rows_with(label: str, values: frozenset[str], snapshot: Snapshot, rows: Rows) -> tuple[BoolArray, BoolArray]:
    """Return which rows have the label with one of the values, and which have the label with any value."""
    column = snapshot.label_column(label)
    ids = column.ids.take(rows)
    value_ids = [value_id for value in values if (value_id := column.id_of(value)) is not None]
    return np.isin(ids, value_ids), ids != ABSENT
