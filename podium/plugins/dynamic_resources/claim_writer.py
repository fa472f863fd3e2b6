"""Writes a pod's claims: allocation and reservation before the pod is bound, and their removal after a failure.

Owns the order of writes, and what conflicts with other writers mean. Decides nothing.

The path of a claim: Filter finds devices, Reserve notes them in memory (`ClusterDevices.start_allocation`), and PreBind
calls `write`. It patches a claim without allocation twice: first the finalizer, then allocation and reservation, which
are both in the status. The binding of the pod follows. The kubelet runs no pod whose claim is not reserved for it.
Since KEP-4381 the scheduler chooses the devices and makes all allocations, where drivers used to, so a mistake here
gives one device to two pods. Four rules follow:

1. The finalizer goes first. A claim that is deleted while it is allocated must stay until its pods have stopped;
   otherwise its devices count as free while containers still use them. The status has an endpoint of its own, which
   ignores metadata, hence two writes.
2. A write without an answer is neither a success nor a failure. The API server may carry it out for as long as it works
   on a request, a minute. Until then, and until the claim has been read, the devices are withheld from other claims
   (`ClusterDevices.doubt`).
3. A conflict is no failure either: the claim is read again and written again, up to five times. If it already has this
   very allocation, the write was our own, or that of another pod that shares the claim.
4. A failed attempt takes its reservation back, but reads the pod first, because the binding may have been carried out
   without an answer. The allocation stays: other pods may share it, and PostFilter clears it if it is in the way. While
   such a removal may still come late, a reservation does not count as safe: it is removed and made again, since a new
   resource version makes the late patch fail.

Example: for pod web-1 with claim c, Filter finds device gpu-0 on node n1. The first patch adds the finalizer and moves
c from version 7 to 8. The second sets gpu-0 and web-1 on version 8; the API server carries it out, and the connection
breaks before the answer. PreBind fails and web-1 waits for its backoff, while gpu-0 is withheld. The watch then shows c
at version 9, allocated and reserved for web-1. The next attempt considers only n1, finds nothing to write, and binds.
Had the patch been lost, the claim would be read after a minute, and gpu-0 be free again.

For extended resources that devices provide (KEP-5004), the scheduler creates the claim, too, and names it in the pod's
status. No user owns this claim, so a failed attempt deletes it. Binding conditions (KEP-5007) need the time of the
allocation; it is added to allocations that lack it.

Source: kubernetes v1.36.2, pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (bindClaim, Unreserve)
and extendeddynamicresources.go.
Differs: changes are patched with the resource version as precondition, where upstream writes the whole object. A claim
that was reserved for the pod when its attempt began is looked at again, since a pod may wait at Permit for long. A
claim that was recreated under the same name is left alone; upstream writes the old one's allocation into it. A claim
that lost its allocation and got other devices after the pod's node was chosen ends the binding; upstream reserves it.
The claim for extended resources gets its name from podium, in the API server's style, so that it is found again if the
answer to its creation is lost. What takes back an earlier attempt's claims ends before they are written for the next
attempt; upstream lets the two overlap.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from podium.devices.reservations import ReservationError, has_allocation, with_finalizer, with_reservation
from podium.framework import contract as fwk
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError, Conflict, NotFound
from podium.objects.claims import DELETE_PROTECTION, AllocationResult, ResourceClaim
from podium.objects.core import Pod
from podium.objects.resource_types import PODS, RESOURCE_CLAIMS
from podium.plugins.dynamic_resources.pod_devices import NO_MAPPINGS, SPECIAL_NAME, NodeDevices, PodDevices
from podium.plugins.shared.cluster_devices import ClusterDevices, DoubtedAllocation

if TYPE_CHECKING:
    import anyio

log = get_logger("devices")

_TRIES: Final = 5
_PAUSE_S: Final = 0.01
_JITTER: Final = 0.1
_RETRY_S: Final = 5.0
_SEEN_POLL_S: Final = 0.1
_SEEN_POLLS_MAX: Final = 1200
_SEEN_POLLS_A_READ: Final = 50
_SUFFIX_CHARACTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_NAME_LENGTH_MAX: Final = 63
_DELETED_KEPT: Final = 1000
_DELETED: Final = "claim {claim} got deleted in the meantime"


class ClaimWriter:
    """Writes claims for pods. The states that an API server returns are assumed at once."""

    def __init__(self, handle: fwk.Handle, devices: ClusterDevices) -> None:
        self._handle = handle
        self._devices = devices
        self._flies_on = handle.release.devices.fly_until_bound
        self._turns: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        """By uid of a pod, the lock of the attempt that writes its claims."""
        self._deallocating: set[tuple[str, str]] = set()
        """The uids and versions of the claims that lose their allocation, or wait for that."""
        self._deleted: dict[str, None] = {}
        """The uids of the last claims whose deletion was requested, oldest first: they go sooner or later."""

    @asynccontextmanager
    async def _turn(self, pod: Pod) -> AsyncIterator[None]:
        """Let one attempt at the pod write its claims; the next one waits until the clean-up of the last has ended."""
        import anyio

        async with self._turns.setdefault(pod.uid, anyio.Lock()):
            yield

    # ------------------------------------------------------------ before the binding

    async def write(self, pod_devices: PodDevices, pod: Pod, node_name: str) -> None:
        """Allocate and reserve the pod's claims, in order, and replace them by the states that were written.

        Raises:
            PluginError: a claim cannot be written.
        """
        async with self._turn(pod):
            await self._write(pod_devices, pod, node_name)

    async def _write(self, pod_devices: PodDevices, pod: Pod, node_name: str) -> None:
        for index, claim in enumerate(pod_devices.claims):
            new_allocation = pod_devices.reserved.get(index)
            allocation = new_allocation or claim.status.allocation
            if claim.is_reserved_for(pod.uid):
                # Since the attempt began, the reservation may have been taken back, or the claim allocated anew.
                latest = self._latest(claim)
                if has_allocation(latest, allocation) and self._stays_reserved(latest, pod):
                    continue
            is_special = index >= pod_devices.user_count
            if is_special and allocation is None:
                continue
            try:
                if is_special and new_allocation is not None:
                    await self._write_special(pod_devices, pod, pod_devices.by_node[node_name], new_allocation)
                else:
                    is_new, latest = new_allocation is not None, self._latest(claim)
                    pod_devices.claims[index] = await self._reserve(latest, allocation, pod, is_new=is_new)
                    self._devices.claims.assume(pod_devices.claims[index])
            except BaseException:
                if not self._flies_on and (uid := pod_devices.in_flight.pop(index, None)) is not None:
                    self._devices.give_up_allocation(uid, claim)
                raise
            if not self._flies_on and (uid := pod_devices.in_flight.pop(index, None)) is not None:
                self._devices.end_allocation(uid)

    async def _reserve(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: Pod, *, is_new: bool
    ) -> ResourceClaim:
        """Write the allocation, if it is new, and the reservation for the pod.

        Raises:
            PluginError: that failed, or the claim is not what it was when the node was chosen.
        """
        action = "add allocation and reservation to" if is_new else "add reservation to"
        failure: ApiError | None = None
        for attempt in range(_TRIES):
            if attempt:
                claim = await self._read_again(claim)
            if has_allocation(claim, allocation):
                # Another pod of the group has written it, or it was written and the answer was lost.
                is_new = False
                if self._stays_reserved(claim, pod):
                    return claim
                if claim.is_reserved_for(pod.uid):
                    # Once the claim has changed, a write of an earlier attempt can no longer come late.
                    claim = await self._remove_reservation(claim, pod)
            try:
                with_reservation(claim, allocation, pod, self._handle.clock.now(), is_new=is_new)
                if is_new:
                    claim = await self._protect(claim)
                target = with_reservation(claim, allocation, pod, self._handle.clock.now(), is_new=is_new)
                return await self._write_reservation(claim, target)
            except ReservationError as error:
                raise fwk.PluginError(str(error)) from error
            except Conflict as error:
                failure = error
            except ApiError as error:
                raise fwk.PluginError(f"{action} claim {claim.key}: {error}") from error
        raise fwk.PluginError(f"{action} claim {claim.key}: {failure}") from failure

    async def _write_reservation(self, claim: ResourceClaim, target: ResourceClaim) -> ResourceClaim:
        """Write allocation and reservation. If the outcome is unknown, no other claim gets the devices for now."""
        old_allocation, new_allocation = claim.status.allocation, target.status.allocation
        try:
            return await self._patch_status(claim, _reservation(claim, target))
        except BaseException as error:
            if old_allocation is None and new_allocation is not None and _may_be_written_yet(error):
                self._devices.doubt(claim, new_allocation)
            raise

    def _latest(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the claim's latest known state.

        Raises:
            PluginError: it is gone, or an earlier attempt has requested that.
        """
        latest = self._devices.claims.get(claim.key)
        if latest is None or claim.metadata.uid in self._deleted:
            raise fwk.PluginError(_DELETED.format(claim=claim.key))
        return _require_same(claim, latest)

    def _stays_reserved(self, claim: ResourceClaim, pod: Pod) -> bool:
        """Return whether the claim is reserved for the pod, and no write of an earlier attempt may still undo that."""
        return claim.is_reserved_for(pod.uid) and not self._devices.may_be_taken_back_yet(claim)

    async def _remove_reservation(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        try:
            return await self._without(claim, pod)
        except ApiError as error:
            raise fwk.PluginError(f"remove reservation from claim {claim.key}: {error}") from error

    async def _protect(self, claim: ResourceClaim) -> ResourceClaim:
        target = with_finalizer(claim)
        if target is claim:
            return claim
        change = {"metadata": {"finalizers": list(target.metadata.finalizers)}}
        try:
            return await self._handle.client.patch(RESOURCE_CLAIMS, claim, change)
        except Conflict:
            raise
        except ApiError as error:
            raise fwk.PluginError(f"add finalizer to claim {claim.key}: {error}") from error

    async def _read_again(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the claim as it is now, after a conflict."""
        import anyio

        await anyio.sleep(_PAUSE_S * (1 + _JITTER * self._handle.random.random()))
        try:
            latest = await self._handle.client.read(RESOURCE_CLAIMS, claim)
        except ApiError as error:
            raise fwk.PluginError(f"get updated claim {claim.key} after conflict: {error}") from error
        return _require_same(claim, latest)

    def _patch_status(self, claim: ResourceClaim, status: dict[str, Any]) -> Awaitable[ResourceClaim]:
        return self._handle.client.patch(RESOURCE_CLAIMS, claim, {"status": status}, "status")

    # ------------------------------------------------------------ the claim for extended resources

    async def _write_special(
        self, pod_devices: PodDevices, pod: Pod, on_node: NodeDevices, allocation: AllocationResult
    ) -> None:
        """Create the claim, allocate and reserve it, and name it in the pod's status."""
        assert on_node.special is not None
        claim = await self._create(on_node.special)
        # Noted before anything else can fail, so that the claim is deleted then.
        pod_devices.claims[-1] = claim
        pod_devices.claims[-1] = reserved_claim = await self._reserve(claim, allocation, pod, is_new=True)
        try:
            await self._tell_pod(pod, reserved_claim, on_node)
        except BaseException:
            # The claim has the devices until it is deleted, and the watch may not have shown it yet.
            self._devices.doubt(claim, allocation)
            raise
        await self._wait_until_seen(reserved_claim)

    async def _tell_pod(self, pod: Pod, claim: ResourceClaim, on_node: NodeDevices) -> None:
        if not on_node.mappings:
            raise fwk.PluginError(NO_MAPPINGS.format(pod=pod.key))
        mappings = [msgspec.to_builtins(mapping) for mapping in on_node.mappings]
        status = {"resourceClaimName": claim.metadata.name, "requestMappings": mappings}
        try:
            await self._handle.client.merge_status(pod, {"extendedResourceClaimStatus": status})
        except ApiError as error:
            raise fwk.PluginError(f"update pod {pod.key} ExtendedResourceClaimStatus: {error}") from error

    async def _create(self, special: ResourceClaim) -> ResourceClaim:
        metadata = special.metadata
        name = _generated_name(metadata.generate_name, self._handle.random)
        claim = replace(special, metadata=replace(metadata, uid="", name=name))
        manifest = {
            "apiVersion": RESOURCE_CLAIMS.api_version,
            "kind": RESOURCE_CLAIMS.kind,
            "metadata": msgspec.to_builtins(claim.metadata),
            "spec": msgspec.to_builtins(claim.spec),
        }
        try:
            created_claim = await self._handle.client.create(RESOURCE_CLAIMS, claim, manifest)
        except ApiError as error:
            self._devices.observer.claim_created(is_success=False)
            claim_key = f"{metadata.namespace}/{SPECIAL_NAME}"
            raise fwk.PluginError(f"create claim for extended resources {claim_key}: {error}") from error
        self._devices.observer.claim_created(is_success=True)
        return created_claim

    async def _wait_until_seen(self, claim: ResourceClaim) -> None:
        """Wait until the watch has shown the claim, so that its devices count as allocated from then on.

        Raises:
            PluginError: it is gone already, which no watch will show.
        """
        import anyio

        claims = self._devices.claims
        for poll in range(1, _SEEN_POLLS_MAX + 1):
            if claims.get(claim.key) is not None:
                claims.assume(claim)
                return
            await anyio.sleep(_SEEN_POLL_S)
            if poll % _SEEN_POLLS_A_READ == 0:
                try:
                    _require_same(claim, await self._handle.client.read(RESOURCE_CLAIMS, claim))
                except NotFound as error:
                    raise fwk.PluginError(_DELETED.format(claim=claim.key)) from error
                except ApiError:
                    continue
        log.warning("The watch has not shown a claim that was created", claim=claim.key)

    # ------------------------------------------------------------ after a failure

    async def clean_up(self, pod_devices: PodDevices | None, doubts: Sequence[DoubtedAllocation], pod: Pod) -> None:
        """Undo the writes of a failed attempt, and read whether allocations with an unknown outcome were written.

        Args:
            pod_devices: None if there is nothing to take back.
        """
        if pod_devices is not None:
            await self.take_back(pod_devices, pod)
        for doubt in doubts:
            try:
                claim = await self._handle.client.read(RESOURCE_CLAIMS, doubt.claim)
            except NotFound:
                self._devices.settle(doubt, None)
            except ApiError as error:
                self._try_again_soon(pod, "A claim could not be read", error, claim=doubt.claim.key)
            else:
                self._devices.settle(doubt, claim)

    async def take_back(self, pod_devices: PodDevices, pod: Pod) -> None:
        """Take back the reservations of a pod that is not bound, and carry out what PostFilter decided.

        An allocation that another attempt is about to clear is left to it.
        """
        claim = pod_devices.claim_to_deallocate
        version = None if claim is None else (claim.metadata.uid, claim.metadata.resource_version)
        if version is None or version in self._deallocating:
            pod_devices.claim_to_deallocate = None
            await self._take_back(pod_devices, pod)
            return
        self._deallocating.add(version)
        try:
            await self._take_back(pod_devices, pod)
        finally:
            self._deallocating.remove(version)

    async def _take_back(self, pod_devices: PodDevices, pod: Pod) -> None:
        async with self._turn(pod):
            is_reserved = any(claim.is_reserved_for(pod.uid) for claim in pod_devices.claims)
            if is_reserved and not await self._is_unbound(pod):
                return
            if pod_devices.is_unreserved:
                for claim in pod_devices.claims[: pod_devices.user_count]:
                    if claim.status.allocation is not None and claim.is_reserved_for(pod.uid):
                        await self._try(self._release, claim, pod)
                special = pod_devices.special
                if special is not None and special.metadata.name != SPECIAL_NAME:
                    await self._try(self._delete, special, pod)
            if pod_devices.claim_to_deallocate is not None:
                await self._try(self._deallocate, pod_devices.claim_to_deallocate, pod)
            if pod_devices.claim_to_delete is not None:
                await self._try(self._delete, pod_devices.claim_to_delete, pod)
                # The deletion of a claim without devices wakes no pod; upstream's waits until all are tried again.
                self._handle.activate([pod], _RETRY_S)

    async def _try(
        self, write: Callable[[ResourceClaim, Pod], Awaitable[None]], claim: ResourceClaim, pod: Pod
    ) -> None:
        """Make a write. If it fails, the next attempt at the pod, which follows soon, repeats it."""
        try:
            await write(claim, pod)
        except NotFound:
            log.info("A claim has already been deleted", claim=claim.key, pod=pod.key)
        except (ApiError, fwk.PluginError) as error:
            self._try_again_soon(pod, "A claim could not be taken back", error, claim=claim.key)

    async def _is_unbound(self, pod: Pod) -> bool:
        """Return whether the pod is unbound according to the API server: the watch may not show a late binding yet."""
        try:
            latest = await self._handle.client.read(PODS, pod)
        except NotFound:
            return True
        except ApiError as error:
            self._try_again_soon(pod, "A pod could not be read; it keeps its claims", error)
            return False
        return latest.uid != pod.uid or not latest.node_name

    def _try_again_soon(self, pod: Pod, message: str, error: Exception, **fields: str) -> None:
        """Retry the pod soon: it waits for events. Upstream's PostFilter fails instead, and the pod backs off."""
        log.warning(message, pod=pod.key, error=str(error), **fields)
        self._handle.activate([pod], _RETRY_S)

    async def _release(self, claim: ResourceClaim, pod: Pod) -> None:
        await self._without(claim, pod)

    async def _without(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        """Remove the pod from those that the claim is reserved for. Return the claim's new state."""
        for attempt in range(_TRIES):
            if attempt:
                claim = await self._read_again(claim)
            if not claim.is_reserved_for(pod.uid):
                return claim
            references = [
                msgspec.to_builtins(reference) for reference in claim.status.reserved_for if reference.uid != pod.uid
            ]
            try:
                return await self._clear(claim, {"reservedFor": references or None})
            except Conflict:
                continue
        raise fwk.PluginError("the claim keeps changing")

    async def _deallocate(self, claim: ResourceClaim, pod: Pod) -> None:
        """Clear the allocation, but not again after a conflict: the claim may be in use by now."""
        await self._clear(claim, {"allocation": None, "reservedFor": None, "devices": None})

    async def _clear(self, claim: ResourceClaim, status: dict[str, Any]) -> ResourceClaim:
        """Patch fields of the status away; return the claim's new state."""
        try:
            new_claim = await self._patch_status(claim, status)
        except BaseException as error:
            if _may_be_written_yet(error):
                self._devices.doubt_taking_back(claim)
            raise
        # An attempt that has begun would otherwise rely on the reservation until the watch shows that it is gone.
        self._devices.claims.assume(new_claim)
        return new_claim

    async def _delete(self, claim: ResourceClaim, pod: Pod) -> None:
        """Delete a claim for extended resources. No attempt relies on it again unless the deletion certainly failed."""
        uid = claim.metadata.uid
        was_deleted = uid in self._deleted
        self._deleted[uid] = None
        if len(self._deleted) > _DELETED_KEPT:
            del self._deleted[next(iter(self._deleted))]
        try:
            await self._delete_now(claim)
        except (ApiError, fwk.PluginError) as error:
            if not (was_deleted or isinstance(error, NotFound) or _may_be_written_yet(error)):
                self._deleted.pop(uid, None)
            raise

    async def _delete_now(self, claim: ResourceClaim) -> None:
        """Delete a claim, without the finalizer that would keep it."""
        for attempt in range(_TRIES):
            if attempt:
                claim = await self._read_again(claim)
            finalizers = [finalizer for finalizer in claim.metadata.finalizers if finalizer != DELETE_PROTECTION]
            try:
                if len(finalizers) != len(claim.metadata.finalizers):
                    claim = await self._handle.client.patch(
                        RESOURCE_CLAIMS, claim, {"metadata": {"finalizers": finalizers or None}}
                    )
                await self._handle.client.delete(RESOURCE_CLAIMS, claim)
            except Conflict:
                continue
            return
        raise fwk.PluginError("the claim keeps changing")


def _require_same(claim: ResourceClaim, latest: ResourceClaim) -> ResourceClaim:
    """Return the latest state.

    Raises:
        PluginError: that is another claim of the same name.
    """
    if latest.metadata.uid != claim.metadata.uid:
        raise fwk.PluginError(_DELETED.format(claim=claim.key))
    return latest


def _may_be_written_yet(error: BaseException) -> bool:
    """Return whether the API server may still carry out the failed write: it was cancelled, or got no answer."""
    if isinstance(error, fwk.PluginError):
        return isinstance(error.__cause__, ApiError) and error.__cause__.may_have_happened
    return not isinstance(error, ApiError) or error.may_have_happened


def _generated_name(base: str, random: Random) -> str:
    """Return the base, cut to leave room, and a suffix as API servers append it."""
    suffix = "".join(random.choices(_SUFFIX_CHARACTERS, k=_SUFFIX_LENGTH))
    return f"{base[: _NAME_LENGTH_MAX - _SUFFIX_LENGTH]}{suffix}"


def _reservation(claim: ResourceClaim, target: ResourceClaim) -> dict[str, Any]:
    """Return the changes of the status."""
    old_allocation, new_allocation = claim.status.allocation, target.status.allocation
    assert new_allocation is not None
    change: dict[str, Any] = {
        "reservedFor": [msgspec.to_builtins(reference) for reference in target.status.reserved_for]
    }
    if old_allocation is None:
        change["allocation"] = msgspec.to_builtins(new_allocation)
    elif old_allocation.allocation_timestamp is None:
        change["allocation"] = {"allocationTimestamp": new_allocation.allocation_timestamp}
    return change
