"""The state of VolumeBinding within one scheduling attempt: a pod's claims, and what to do for them on a node.

Owns the verdicts, for one node and for many rows. Never assumes or writes anything.

Source: kubernetes pkg/scheduler/framework/plugins/volumebinding/binder.go (FindPodVolumes), v1.36.2.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.snapshot import BoolArray
from podium.framework import contract as fwk
from podium.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from podium.plugins.volumes.claims import SELECTED_NODE
from podium.plugins.volumes.csi_translation import TranslationError
from podium.plugins.volumes.matching import Choice, choose, rows_with_volumes
from podium.plugins.volumes.provisioning import StorageCapacity, can_provision, topology_allows, topology_mask
from podium.plugins.volumes.volume_nodes import is_usable_on, usable_rows


class Conflict(enum.IntFlag):
    """The reasons why a node does not fit; several may hold."""

    NODE_AFFINITY = 1
    NO_VOLUME = 2
    NO_SPACE = 4
    VOLUME_GONE = 8


# Arrays take plain integers many times faster than members of an Enum.
_NO_VOLUME: Final = int(Conflict.NO_VOLUME)
_NO_SPACE: Final = int(Conflict.NO_SPACE)


@dataclass(frozen=True, slots=True)
class Waiting:
    """An unbound claim whose binding waits for the pod's node.

    `choice` is None for a claim whose node has been selected: its volume is being provisioned.
    """

    claim: PersistentVolumeClaim
    storage_class: StorageClass
    choice: Choice | None
    capacity: StorageCapacity

    @property
    def selected_node(self) -> str | None:
        """Return the node for which the volume is being provisioned already."""
        return self.claim.metadata.annotations.get(SELECTED_NODE)


@dataclass(frozen=True, slots=True)
class Plan:
    """The actions for the waiting claims on a node: volumes to bind, and claims to provision."""

    bindings: tuple[tuple[PersistentVolume, PersistentVolumeClaim], ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of one pod: the volumes of bound claims (None: the volume does not exist), and the waiting claims.

    Invariant: waiting claims whose node has been selected come first; the others choose volumes in their order.
    """

    bound_volumes: tuple[PersistentVolume | None, ...]
    waiting: tuple[Waiting, ...]
    csi_nodes: fwk.Lister[CSINode]

    # ------------------------------------------------------------ one node

    def plan(self, node: NodeInfo) -> tuple[Conflict, Plan]:
        """Return the conflicts of the node, and what to do for the claims if there are none.

        Raises:
            PluginError: an in-tree volume cannot be translated.
        """
        conflict = self._bound_conflict(node)
        if any(waiting_claim.selected_node not in (None, node.name) for waiting_claim in self.waiting):
            return conflict | Conflict.NO_VOLUME, Plan()
        bindings: list[tuple[PersistentVolume, PersistentVolumeClaim]] = []
        unmatched_claims: list[Waiting] = []
        taken_names: set[str] = set()
        for waiting_claim in self.waiting:
            volume = (
                choose(waiting_claim.choice, node.labels, taken_names) if waiting_claim.choice is not None else None
            )
            if volume is None:
                unmatched_claims.append(waiting_claim)
            else:
                taken_names.add(volume.metadata.name)
                bindings.append((volume, waiting_claim.claim))
        for waiting_claim in unmatched_claims:
            if not can_provision(waiting_claim.storage_class) or not topology_allows(
                waiting_claim.storage_class, node.labels
            ):
                return conflict | Conflict.NO_VOLUME, Plan()
            if not waiting_claim.capacity.has_enough(node.labels):
                return conflict | Conflict.NO_SPACE, Plan()
        return conflict, Plan(tuple(bindings), tuple(waiting_claim.claim for waiting_claim in unmatched_claims))

    def _bound_conflict(self, node: NodeInfo) -> Conflict:
        for volume in self.bound_volumes:
            if volume is None:
                return Conflict.VOLUME_GONE
            try:
                if not is_usable_on(volume, node.labels, self.csi_nodes.get(node.name)):
                    return Conflict.NODE_AFFINITY
            except TranslationError as error:
                raise fwk.PluginError(f"could not translate pv: {error}") from error
        return Conflict(0)

    # ------------------------------------------------------------ many rows

    def conflicts(self, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return the conflicts of each row as the bits of `Conflict`; None if every row passes.

        Raises:
            PluginError: an in-tree volume cannot be translated.

        Shape: one entry per row of `rows`.
        """
        conflicts = np.zeros(len(rows), np.int64)
        if self.bound_volumes:
            self._check_bound(snapshot, rows, conflicts)
        if self.waiting:
            self._check_waiting(snapshot, rows, conflicts)
        return conflicts if np.count_nonzero(conflicts) else None

    def has_volumes(self, snapshot: Snapshot, rows: Rows) -> BoolArray:
        """Return which of the rows have a volume for one of the waiting claims. Shape: one entry per row of `rows`."""
        has_volume = np.zeros(len(rows), np.bool_)
        for waiting_claim in self.waiting:
            if waiting_claim.choice is not None:
                has_volume |= waiting_claim.choice.coverage(snapshot, rows)
        return has_volume

    def _check_bound(self, snapshot: Snapshot, rows: Rows, conflicts: IntArray) -> None:
        is_open = np.ones(len(rows), np.bool_)
        for volume in self.bound_volumes:
            if volume is None:
                conflicts[is_open] |= Conflict.VOLUME_GONE
                return
            try:
                is_within = usable_rows(volume, snapshot, rows, self.csi_nodes)
            except TranslationError as error:
                raise fwk.PluginError(f"could not translate pv: {error}") from error
            if is_within is not None:
                conflicts[is_open & ~is_within] |= Conflict.NODE_AFFINITY
                is_open &= is_within

    def _check_waiting(self, snapshot: Snapshot, rows: Rows, conflicts: IntArray) -> None:
        is_open = np.ones(len(rows), np.bool_)
        if node_names := {waiting_claim.selected_node for waiting_claim in self.waiting} - {None}:
            for name in node_names:
                is_open &= rows == snapshot.row_of.get(name or "", -1)
            conflicts[~is_open] |= _NO_VOLUME
            if not np.count_nonzero(is_open):
                return
        for waiting_claim, is_unmatched in self._rows_without_volume(snapshot, rows):
            is_needed = is_open & is_unmatched
            if not np.count_nonzero(is_needed):
                continue
            if not can_provision(waiting_claim.storage_class):
                conflicts[is_needed] |= _NO_VOLUME
                is_open &= ~is_needed
                continue
            is_lacking = is_needed & ~topology_mask(waiting_claim.storage_class, snapshot, rows)
            conflicts[is_lacking] |= _NO_VOLUME
            is_full = is_needed & ~is_lacking & ~waiting_claim.capacity.capacity_mask(snapshot, rows)
            conflicts[is_full] |= _NO_SPACE
            is_open &= ~(is_lacking | is_full)

    def _rows_without_volume(self, snapshot: Snapshot, rows: Rows) -> Sequence[tuple[Waiting, BoolArray]]:
        """Return each waiting claim, with the rows on which there is no volume for it."""
        choices = [waiting_claim.choice for waiting_claim in self.waiting if waiting_claim.choice is not None]
        has_volume = iter(rows_with_volumes(choices, snapshot, rows))
        return [
            (waiting_claim, np.ones(len(rows), np.bool_) if waiting_claim.choice is None else ~next(has_volume))
            for waiting_claim in self.waiting
        ]
