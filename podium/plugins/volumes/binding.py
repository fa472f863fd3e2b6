"""Binding a pod's claims: assume, write, wait.

Owns the order of writes and the conditions that end the wait with an error. The binding itself is done by the volume
controller and the provisioners.

Source: kubernetes v1.36.2, pkg/scheduler/framework/plugins/volumebinding/binder.go (AssumePodVolumes, BindPodVolumes,
checkBindings).
Differs: changes are patched with the resource version of the decision as precondition, where upstream writes the whole
object; a volume that is completely pre-bound to its claim is not written again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from podium.framework import contract as fwk
from podium.objects import resource_types
from podium.objects.core import Node, Pod
from podium.objects.meta import ObjectMeta
from podium.objects.resource_versions import is_older
from podium.objects.storage import ClaimReference, CSINode, PersistentVolume, PersistentVolumeClaim
from podium.plugins.volumes.assumed import Assumed
from podium.plugins.volumes.claims import BOUND_BY_CONTROLLER, SELECTED_NODE, is_fully_bound
from podium.plugins.volumes.csi_translation import TranslationError
from podium.plugins.volumes.matching import is_kept_for
from podium.plugins.volumes.pod_claims import Plan
from podium.plugins.volumes.volume_nodes import is_usable_on

_POLL_S: Final = 1.0


@dataclass(slots=True)
class Binding:
    """A volume with its claimRef set to the claim; after the write, as the API server returned it."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim
    is_written: bool


@dataclass(slots=True)
class Provision:
    """A claim with its selected node set; after the write, as the API server returned it."""

    claim: PersistentVolumeClaim
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class Reservation:
    """The assumed writes for the claims of one pod."""

    bindings: tuple[Binding, ...]
    provisions: tuple[Provision, ...]

    def clone(self) -> Reservation:
        """Return the same object: there are no dry runs after a node is chosen."""
        return self


class VolumeBinder:
    """Assumes, writes and waits for the volumes of pods.

    Args:
        bind_timeout_s: the longest time that PreBind waits.
    """

    def __init__(
        self,
        handle: fwk.Handle,
        claims: Assumed[PersistentVolumeClaim],
        volumes: Assumed[PersistentVolume],
        csi_nodes: fwk.Lister[CSINode],
        bind_timeout_s: float,
    ) -> None:
        self._handle = handle
        self._claims = claims
        self._volumes = volumes
        self._csi_nodes = csi_nodes
        self._pods = handle.lister(resource_types.PODS)
        self._nodes = handle.lister(resource_types.NODES)
        self._bind_timeout_s = bind_timeout_s

    # ------------------------------------------------------------ assuming

    def assume(self, plan: Plan, node_name: str) -> Reservation:
        """Assume the planned volumes bound to their claims, and the node selected for claims to be provisioned."""
        bindings = tuple(_reservation_of(volume, claim) for volume, claim in plan.bindings)
        for binding in bindings:
            if not binding.is_written:
                self._volumes.assume(binding.volume)
        provisions = tuple(
            Provision(replace(claim, metadata=_with_annotation(claim.metadata, SELECTED_NODE, node_name)))
            for claim in plan.provisions
        )
        for provision in provisions:
            self._claims.assume(provision.claim)
        return Reservation(bindings, provisions)

    def revert(self, reservation: Reservation) -> None:
        """Drop the assumptions that have not been written. Written ones hold until the watch delivers newer states."""
        for binding in reservation.bindings:
            self._volumes.restore(binding.volume)
        for provision in reservation.provisions:
            self._claims.restore(provision.claim)

    # ------------------------------------------------------------ writing and waiting

    async def bind(self, reservation: Reservation, pod: Pod, node_name: str) -> None:
        """Write what was assumed, then wait until every claim is bound.

        Raises:
            ApiError: a write failed.
            PluginError: binding failed, has been undone, or takes too long.
        """
        # Imported here, because callers that only decide need no event loop.
        import anyio

        await self._write(reservation)
        clock = self._handle.clock
        deadline_s = clock.monotonic() + self._bind_timeout_s
        while (left_s := deadline_s - clock.monotonic()) > _POLL_S:
            await anyio.sleep(_POLL_S)
            try:
                if self._are_bound(reservation, pod, node_name):
                    return
            except fwk.PluginError as error:
                raise fwk.PluginError(f"binding volumes: {error}") from error
        await anyio.sleep(max(left_s, 0.0))
        raise fwk.PluginError("binding volumes: context deadline exceeded")

    async def _write(self, reservation: Reservation) -> None:
        """Write volumes first, then claims.

        After a failure the remaining ones are not written, and their assumptions drop.
        """
        client = self._handle.client
        try:
            for binding in reservation.bindings:
                if not binding.is_written:
                    change = _change_of_volume(binding.volume)
                    binding.volume = await client.patch(resource_types.PERSISTENT_VOLUMES, binding.volume, change)
                    binding.is_written = True
            for provision in reservation.provisions:
                annotations = {SELECTED_NODE: provision.claim.metadata.annotations[SELECTED_NODE]}
                change = {"metadata": {"annotations": annotations}}
                provision.claim = await client.patch(resource_types.PERSISTENT_VOLUME_CLAIMS, provision.claim, change)
                provision.is_written = True
        except BaseException:
            self.revert(reservation)
            raise

    def _are_bound(self, reservation: Reservation, pod: Pod, node_name: str) -> bool:
        """Return whether every claim has its volume.

        Raises:
            PluginError: the claims can no longer be bound as decided.
        """
        node = self._nodes.get(node_name)
        if node is None:
            raise fwk.PluginError(f'failed to get node "{node_name}": node "{node_name}" not found')
        if self._pods.get(pod.key) is None:
            raise fwk.PluginError(f'pod does not exist any more: pod "{pod.metadata.name}" not found')
        return all(self._has_its_claim(binding, node) for binding in reservation.bindings) and all(
            self._has_its_volume(provision, node) for provision in reservation.provisions
        )

    def _has_its_claim(self, binding: Binding, node: Node) -> bool:
        name, key = binding.volume.metadata.name, binding.claim.key
        volume, claim = self._volumes.delivered_state(name), self._claims.delivered_state(key)
        if volume is None:
            raise fwk.PluginError(f'failed to check binding: persistentvolumes "{name}" not found')
        if claim is None:
            raise fwk.PluginError(f'failed to check binding: persistentvolumeclaims "{key}" not found')
        if is_older(volume.metadata.resource_version, binding.volume.metadata.resource_version):
            return False
        self._demand_reach(volume, node)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise fwk.PluginError(f'ClaimRef got reset for pv "{name}"')
        return is_fully_bound(claim)

    def _has_its_volume(self, provision: Provision, node: Node) -> bool:
        key, name = provision.claim.key, provision.claim.metadata.name
        claim = self._claims.delivered_state(key)
        if claim is None:
            raise fwk.PluginError(f'failed to check provisioning pvc: persistentvolumeclaims "{key}" not found')
        if is_older(claim.metadata.resource_version, provision.claim.metadata.resource_version):
            return False
        if not claim.metadata.annotations:
            raise fwk.PluginError(f'selectedNode annotation reset for PVC "{name}"')
        if claim.metadata.annotations.get(SELECTED_NODE) != node.name:
            raise fwk.PluginError(f'provisioning failed for PVC "{name}"')
        if claim.spec.volume_name:
            volume = self._volumes.delivered_state(claim.spec.volume_name)
            if volume is None:  # not seen yet; or deleted, and then the claim will lose it
                return False
            self._demand_reach(volume, node)
        return is_fully_bound(claim)

    def _demand_reach(self, volume: PersistentVolume, node: Node) -> None:
        try:
            within = is_usable_on(volume, node.metadata.labels, self._csi_nodes.get(node.name))
        except TranslationError as error:
            raise fwk.PluginError(f"failed to translate pv to csi: could not translate pv: {error}") from error
        if not within:
            raise fwk.PluginError(
                f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.name}": '
                "no matching NodeSelectorTerms"
            )


def _reservation_of(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Binding:
    """Return the volume pre-bound to the claim. `is_written` is set if it is so already and no write is needed."""
    spec, metadata = volume.spec, volume.metadata
    reference = spec.claim_ref
    if not is_kept_for(volume, claim):
        metadata = _with_annotation(metadata, BOUND_BY_CONTROLLER, "yes")
    if reference is None or reference.uid != claim.metadata.uid:
        reference = ClaimReference(
            api_version="v1",
            kind="PersistentVolumeClaim",
            namespace=claim.metadata.namespace,
            name=claim.metadata.name,
            uid=claim.metadata.uid,
            resource_version=claim.metadata.resource_version,
        )
    is_as_it_was = metadata is volume.metadata and reference is spec.claim_ref
    reserved_volume = replace(volume, metadata=metadata, spec=replace(spec, claim_ref=reference))
    return Binding(reserved_volume, claim, is_written=is_as_it_was)


def _change_of_volume(volume: PersistentVolume) -> dict[str, Any]:
    """Return the patch that pre-binds a volume to a claim."""
    reference = volume.spec.claim_ref
    assert reference is not None
    annotations = volume.metadata.annotations
    patch_annotations = {key: annotations[key] for key in (BOUND_BY_CONTROLLER,) if key in annotations}
    return {
        "metadata": {"annotations": patch_annotations} if patch_annotations else {},
        "spec": {
            "claimRef": {
                "apiVersion": reference.api_version,
                "kind": reference.kind,
                "namespace": reference.namespace,
                "name": reference.name,
                "uid": reference.uid,
                "resourceVersion": reference.resource_version,
            }
        },
    }


def _with_annotation(metadata: ObjectMeta, key: str, value: str) -> ObjectMeta:
    return (
        metadata
        if key in metadata.annotations and metadata.annotations[key] == value
        else replace(metadata, annotations={**metadata.annotations, key: value})
    )
