"""VolumeBinding: pods go to nodes where their claims have volumes or can get them, and are bound after their claims.

Runs at: PreFilter, Filter, PreScore, Score (0 if no claim waits for the pod's node), Reserve, PreBind.
Verdict: UnschedulableAndUnresolvable, with every reason that holds; an Error from PreBind if binding fails.
Requeue: changes of volumes, claims of the pod, storage classes, nodes, and the objects that CSI drivers publish.
Cost: zero for pods without claims. Otherwise one pass over the rows per bound volume, per node label that the candidate
volumes select by, and per candidate volume with any other affinity; for scores see `volumes.storage_scores`.
Source: kubernetes pkg/scheduler/framework/plugins/volumebinding/volume_binding.go and binder.go, v1.36.2.
Differs: the plan for the claims is computed again for scores and for the chosen node, instead of being kept for every
node. A claim with a field that cannot be read is refused; upstream does not see it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.config.args import VolumeBindingArgs
from podium.framework import contract as fwk
from podium.objects import resource_types
from podium.objects.api_errors import ApiError
from podium.objects.core import Pod, PodSpec
from podium.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from podium.objects.unreadable import UnreadableVolumeClaim, unread_field
from podium.plugins.shared.hints import queue_if
from podium.plugins.volumes.assumed import Assumed
from podium.plugins.volumes.binding import Reservation, VolumeBinder
from podium.plugins.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    ClaimUse,
    claim_not_found,
    claims_used,
    class_of_claim,
    is_fully_bound,
    ownership_problem,
    uses_claim,
    uses_claims,
)
from podium.plugins.volumes.csi_translation import MIGRATED_PLUGINS
from podium.plugins.volumes.free_volumes import VolumeIndex
from podium.plugins.volumes.grouped import index_of
from podium.plugins.volumes.matching import choice_for, requested_nano
from podium.plugins.volumes.pod_claims import Conflict, PodClaims, Waiting
from podium.plugins.volumes.provisioning import StorageCapacity, volume_limit
from podium.plugins.volumes.storage_scores import StorageScores, scored_claims

_LOST: Final = "Lost"
_PARALLEL: Final = fwk.PreBindPreFlightResult(allow_parallel=True)
_UNBOUND_IMMEDIATE: Final = fwk.unresolvable("pod has unbound immediate PersistentVolumeClaims")
_REASONS: Final = {
    Conflict.NODE_AFFINITY: "node(s) didn't match PersistentVolume's node affinity",
    Conflict.NO_VOLUME: "node(s) didn't find available persistent volumes to bind",
    Conflict.NO_SPACE: "node(s) did not have enough free storage",
    Conflict.VOLUME_GONE: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


class VolumeBinding(
    fwk.PreFilterPlugin,
    fwk.TableFilterPlugin,
    fwk.FilterPlugin,
    fwk.PreScorePlugin,
    fwk.TableScorePlugin,
    fwk.ScorePlugin,
    fwk.ReservePlugin,
    fwk.PreBindPlugin,
    fwk.BindingWriter,
):
    """Follows the pod's claims to their volumes, and has waiting claims bound before the pod is bound."""

    def __init__(self, args: VolumeBindingArgs, handle: fwk.Handle) -> None:
        self._handle = handle
        self._listed_claims = handle.lister(resource_types.PERSISTENT_VOLUME_CLAIMS)
        volumes = handle.lister(resource_types.PERSISTENT_VOLUMES)
        self._volume_index = index_of(volumes, VolumeIndex)
        self._classes = handle.lister(resource_types.STORAGE_CLASSES)
        self._csi_nodes = handle.lister(resource_types.CSI_NODES)
        self._drivers = handle.lister(resource_types.CSI_DRIVERS)
        self._capacities = handle.lister(resource_types.CSI_STORAGE_CAPACITIES)
        self._claims = Assumed(self._listed_claims)
        self._volumes = Assumed(volumes)
        # The shape comes with the feature gate StorageCapacityScoring.
        self._scores = None if args.shape is None else StorageScores(args.shape)
        self._binder = VolumeBinder(handle, self._claims, self._volumes, self._csi_nodes, args.bind_timeout_s)

    # ------------------------------------------------------------ filtering

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return Skip without claims, UnschedulableAndUnresolvable if a claim is unusable or should be bound."""
        if not uses_claims(pod.spec):
            return None, fwk.SKIP
        uses = tuple(claims_used(pod))
        # Listed, not assumed claims: a deletion must be seen even while a binding is assumed.
        for use in uses:
            problem = self._problem(pod, use)
            if problem is not None:
                return None, fwk.unresolvable(problem)
        try:
            claims = self._pod_claims(pod, uses)
        except fwk.PluginError as error:
            return None, fwk.error_status(error)
        if claims is None:
            return None, _UNBOUND_IMMEDIATE
        state.write(claims)
        return None, None

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return the bits of `Conflict` for each row."""
        return state.read(PodClaims).conflicts(snapshot, rows)

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return every reason that holds."""
        return _rejection(verdict)

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success or UnschedulableAndUnresolvable."""
        conflict, _ = state.read(PodClaims).plan(node)
        return _rejection(conflict) if conflict else None

    def _problem(self, pod: Pod, use: ClaimUse) -> str | None:
        """Return why the claim cannot be used."""
        claim = self._listed_claims.get(f"{pod.metadata.namespace}/{use.name}")
        if claim is None and use.is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
        if claim is None:
            return claim_not_found(use.name)
        if isinstance(claim, UnreadableVolumeClaim):
            return f'persistentvolumeclaim "{use.name}" has a field that cannot be read: {unread_field(claim)}'
        if claim.status.phase == _LOST:
            volume = claim.spec.volume_name
            return f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{volume}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{use.name}" is being deleted'
        return ownership_problem(pod, claim) if use.is_ephemeral else None

    def _pod_claims(self, pod: Pod, uses: Iterable[ClaimUse]) -> PodClaims | None:
        """Return the pod's claims with their volumes, as assumed; None if a claim should be bound already and is not.

        Raises:
            PluginError: a class or a claim is invalid.
        """
        bound_volumes: list[PersistentVolume | None] = []
        waiting: list[tuple[PersistentVolumeClaim, StorageClass]] = []
        is_immediate = False
        for use in uses:
            claim = self._claims.get(f"{pod.metadata.namespace}/{use.name}")
            assert claim is not None, "found a moment ago"
            if is_fully_bound(claim):
                bound_volumes.append(self._volumes.get(claim.spec.volume_name))
                continue
            storage_class = self._class_that_waits(claim)
            # A claim that names a volume is bound by the controller, whatever its class.
            if storage_class is None or claim.spec.volume_name:
                is_immediate = True
            else:
                waiting.append((claim, storage_class))
        # Only after all claims, as upstream: an error of a later claim's class comes first.
        if is_immediate:
            return None
        return PodClaims(tuple(bound_volumes), self._in_order(waiting), self._csi_nodes)

    def _class_that_waits(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        """Return the claim's class, if its binding mode is WaitForFirstConsumer.

        Raises:
            PluginError: the class has no binding mode.
        """
        name = class_of_claim(claim)
        storage_class = self._classes.get(name) if name else None
        if storage_class is None:
            return None
        if storage_class.volume_binding_mode is None:
            raise fwk.PluginError(f'VolumeBindingMode not set for StorageClass "{name}"')
        return storage_class if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else None

    def _in_order(self, waiting: list[tuple[PersistentVolumeClaim, StorageClass]]) -> tuple[Waiting, ...]:
        """Return the waiting claims, with the volumes that they may take, in the order of `PodClaims`."""
        if not waiting:
            return ()
        waiting_claims = [self._waiting(claim, storage_class) for claim, storage_class in waiting]
        claims_with_node = [claim for claim in waiting_claims if claim.selected_node is not None]
        # As upstream, by size: each claim takes the smallest volume that fits before a larger claim needs it.
        claims_without_node = sorted(
            (claim for claim in waiting_claims if claim.selected_node is None),
            key=lambda claim: requested_nano(claim.claim),
        )
        return (*claims_with_node, *claims_without_node)

    def _waiting(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> Waiting:
        capacity = StorageCapacity(claim, storage_class, self._drivers.get(storage_class.provisioner), self._capacities)
        waiting = Waiting(claim, storage_class, None, capacity)
        # A selected node means that provisioning has begun, and no other volume is looked for.
        if waiting.selected_node is not None:
            return waiting
        choice = choice_for(claim, self._volume_index(), self._volumes.all())
        return Waiting(claim, storage_class, choice, capacity)

    # ------------------------------------------------------------ scoring

    def pre_score(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> fwk.Status | None:
        """Return Skip if nodes are not scored by storage."""
        return fwk.SKIP if self._scores is None else None

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the scores by the share of storage in use; 0 if no claim waits for the pod's node."""
        claims = scored_claims(state)
        if claims is None or self._scores is None:
            return np.zeros(len(rows), np.int64)
        return self._scores.of_rows(claims, snapshot, rows)

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return the score of one node, as `score_rows`."""
        claims = scored_claims(state)
        return 0 if claims is None or self._scores is None else self._scores.of_node(claims, node)

    # ------------------------------------------------------------ on the way to the node

    def reserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> fwk.Status | None:
        """Assume the bindings of claims. Return UnschedulableAndUnresolvable if they are no longer possible."""
        claims = state.find(PodClaims)
        if claims is None or not claims.waiting:
            return None
        # Planned again, as earlier pods may have taken the volume since the node was filtered.
        snapshot = self._handle.snapshot()
        conflict, plan = claims.plan(snapshot.node(snapshot.row_of[node_name]))
        if conflict:
            return _rejection(conflict)
        state.write(self._binder.assume(plan, node_name))
        return None

    def unreserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> None:
        """Undo the assumptions that have not been written."""
        reservation = state.find(Reservation)
        if reservation is not None:
            self._binder.revert(reservation)

    def pre_bind_pre_flight(
        self, state: fwk.CycleState, pod: Pod, node_name: str
    ) -> tuple[fwk.PreBindPreFlightResult | None, fwk.Status | None]:
        """Return Skip if every claim is bound."""
        return _PARALLEL, fwk.SKIP if state.find(Reservation) is None else None

    async def pre_bind(self, state: fwk.CycleState, pod: Pod, node_name: str) -> fwk.Status | None:
        """Write the assumed bindings and wait until every claim is bound. Return Error if that fails or times out."""
        reservation = state.find(Reservation)
        if reservation is None:
            return None
        try:
            await self._binder.bind(reservation, pod, node_name)
        except (ApiError, fwk.PluginError) as error:
            return fwk.error_status(error)
        return None

    def writes_before_binding(self, state: fwk.CycleState, pod: Pod, node_name: str) -> Sequence[fwk.ObjectWrite]:
        """Return the claimRef of each volume that was chosen, and the selected node of each claim to be provisioned."""
        reservation = state.find(Reservation)
        if reservation is None:
            return ()
        return [
            *(
                fwk.ObjectWrite(
                    resource_types.PERSISTENT_VOLUMES, self._volumes.delivered_state(binding.volume.key), binding.volume
                )
                for binding in reservation.bindings
            ),
            *(
                fwk.ObjectWrite(
                    resource_types.PERSISTENT_VOLUME_CLAIMS,
                    self._claims.delivered_state(provision.claim.key),
                    provision.claim,
                )
                for provision in reservation.provisions
            ),
        ]

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return CLUSTER for a pod with volumes, whose claims and volumes are separate objects; otherwise NODE."""
        return fwk.Scope.CLUSTER if spec.volumes else fwk.Scope.NODE

    def score_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return CLUSTER for a pod with volumes, as `filter_scope`; otherwise NODE, since every score is 0."""
        return self.filter_scope(spec)

    # ------------------------------------------------------------ requeueing

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register everything that affects where volumes are or can be provisioned."""
        add, update = fwk.ActionType.ADD, fwk.ActionType.UPDATE
        return (
            fwk.on(
                fwk.EventResource.STORAGE_CLASS, add, update, hint=self.after_class_change, scope=fwk.HintScope.SPEC
            ),
            fwk.on(fwk.EventResource.PERSISTENT_VOLUME_CLAIM, add, update, hint=self.after_claim_change),
            fwk.on(fwk.EventResource.PERSISTENT_VOLUME, add, update),
            fwk.on(fwk.EventResource.NODE, add, fwk.ActionType.UPDATE_NODE_LABEL),
            fwk.on(fwk.EventResource.CSI_NODE, add, update, hint=self.after_csi_node_change, scope=fwk.HintScope.SPEC),
            fwk.on(fwk.EventResource.CSI_DRIVER, update, hint=self.after_driver_change, scope=fwk.HintScope.SPEC),
            fwk.on(
                fwk.EventResource.CSI_STORAGE_CAPACITY,
                add,
                update,
                hint=self.after_capacity_change,
                scope=fwk.HintScope.SPEC,
            ),
        )

    def after_class_change(self, pod: Pod, old: StorageClass | None, new: StorageClass) -> fwk.QueueingHint:
        """Queue if the class is new or its allowed topologies have changed."""
        return queue_if(old is None or old.allowed_topologies != new.allowed_topologies)

    def after_claim_change(
        self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
    ) -> fwk.QueueingHint:
        """Queue if the pod uses the claim."""
        return queue_if(uses_claim(pod, new))

    def after_csi_node_change(self, pod: Pod, old: CSINode | None, new: CSINode) -> fwk.QueueingHint:
        """Queue if the CSINode is new, or its migrated in-tree plugins have changed."""
        if old is None:
            return fwk.QueueingHint.QUEUE
        old_annotations, new_annotations = old.metadata.annotations, new.metadata.annotations
        return queue_if(old_annotations.get(MIGRATED_PLUGINS, "") != new_annotations.get(MIGRATED_PLUGINS, ""))

    def after_driver_change(self, pod: Pod, old: CSIDriver, new: CSIDriver) -> fwk.QueueingHint:
        """Queue if the driver of an inline volume of the pod has stopped publishing its storage capacity."""
        # Upstream: without published capacities there is nothing to check, so more nodes pass.
        stops_publishing = old.spec.storage_capacity and not new.spec.storage_capacity
        return queue_if(
            bool(stops_publishing)
            and any(volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.spec.volumes)
        )

    def after_capacity_change(
        self, pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity
    ) -> fwk.QueueingHint:
        """Queue if the capacity object is new, or larger volumes can be provisioned there."""
        if old is None:
            return fwk.QueueingHint.QUEUE
        old_limit, new_limit = volume_limit(old), volume_limit(new)
        return queue_if(new_limit is not None and (old_limit is None or new_limit > old_limit))


@functools.cache
def _rejection(conflict: int) -> fwk.Status:
    return fwk.unresolvable(*(reason for bit, reason in _REASONS.items() if bit & conflict))
