"""Writing a pod's claims: allocation and reservation before the pod is bound, and what takes them back afterwards.

Owns the order of writes, and what conflicts with other writers mean. Decides nothing.

Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (bindClaim, Unreserve) and
extendeddynamicresources.go, v1.36.2.
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
        self._turns: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        """Who writes the claims of a pod, by its uid."""
        self._deallocating: set[tuple[str, str]] = set()
        """The uids and versions of the claims that lose their allocation, or wait for that."""
        self._deleted: dict[str, None] = {}
        """The uids of the last claims whose deletion was requested, oldest first: they go sooner or later."""

    @asynccontextmanager
    async def _turn(self, pod: Pod) -> AsyncIterator[None]:
        """Only one attempt at the pod writes its claims: the next begins when what takes back the last has ended."""
        import anyio

        async with self._turns.setdefault(pod.uid, anyio.Lock()):
            yield

    # ------------------------------------------------------------ before the binding

    async def write(self, found: PodDevices, pod: Pod, node_name: str) -> None:
        """Allocate and reserve the pod's claims, in order, and put the written ones in place of the known ones.

        Raises:
            PluginError: a claim cannot be written.
        """
        async with self._turn(pod):
            await self._write(found, pod, node_name)

    async def _write(self, found: PodDevices, pod: Pod, node_name: str) -> None:
        for index, claim in enumerate(found.claims):
            decided = found.reserved.get(index)
            allocation = decided or claim.status.allocation
            if claim.is_reserved_for(pod.uid):
                # Since the attempt began, the reservation may have been taken back, or the claim allocated anew.
                known = self._known(claim)
                if has_allocation(known, allocation) and self._stays_reserved(known, pod):
                    continue
            is_special = index >= found.user_count
            if is_special and allocation is None:
                continue
            try:
                if is_special and decided is not None:
                    await self._write_special(found, pod, found.by_node[node_name], decided)
                else:
                    is_new, known = decided is not None, self._known(claim)
                    found.claims[index] = await self._reserve(known, allocation, pod, is_new=is_new)
                    self._devices.claims.assume(found.claims[index])
            except BaseException:
                if (uid := found.in_flight.pop(index, None)) is not None:
                    self._devices.give_up_allocation(uid, claim)
                raise
            if (uid := found.in_flight.pop(index, None)) is not None:
                self._devices.end_allocation(uid)

    async def _reserve(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: Pod, *, is_new: bool
    ) -> ResourceClaim:
        """Write the allocation, if it is new, and the reservation for the pod.

        Raises:
            PluginError: that failed, or the claim is not what it was when the node was chosen.
        """
        doing = "add allocation and reservation to" if is_new else "add reservation to"
        failure: ApiError | None = None
        for attempt in range(_TRIES):
            if attempt:
                claim = await self._again(claim)
            if has_allocation(claim, allocation):
                # Another pod of the group has written it, or it was written and the answer was lost.
                is_new = False
                if self._stays_reserved(claim, pod):
                    return claim
                if claim.is_reserved_for(pod.uid):
                    # Once the claim has changed, a write of an earlier attempt can no longer come late.
                    claim = await self._unreserved(claim, pod)
            try:
                with_reservation(claim, allocation, pod, self._handle.clock.now(), is_new=is_new)
                if is_new:
                    claim = await self._protect(claim)
                wanted = with_reservation(claim, allocation, pod, self._handle.clock.now(), is_new=is_new)
                return await self._write_reservation(claim, wanted)
            except ReservationError as error:
                raise fwk.PluginError(str(error)) from error
            except Conflict as error:
                failure = error
            except ApiError as error:
                raise fwk.PluginError(f"{doing} claim {claim.key}: {error}") from error
        raise fwk.PluginError(f"{doing} claim {claim.key}: {failure}") from failure

    async def _write_reservation(self, claim: ResourceClaim, wanted: ResourceClaim) -> ResourceClaim:
        """Write what is allocated and reserved. If the outcome is unknown, the devices of a new allocation are kept."""
        before, after = claim.status.allocation, wanted.status.allocation
        try:
            return await self._patch_status(claim, _reservation(claim, wanted))
        except BaseException as error:
            if before is None and after is not None and _may_be_written_yet(error):
                self._devices.doubt(claim, after)
            raise

    def _known(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as far as it is known to have changed since the attempt began.

        Raises:
            PluginError: it is gone, or an earlier attempt has requested that.
        """
        known = self._devices.claims.get(claim.key)
        if known is None or claim.metadata.uid in self._deleted:
            raise fwk.PluginError(_DELETED.format(claim=claim.key))
        return _same(claim, known)

    def _stays_reserved(self, claim: ResourceClaim, pod: Pod) -> bool:
        """Whether the claim is reserved for the pod, and no write of an earlier attempt may take that back yet."""
        return claim.is_reserved_for(pod.uid) and not self._devices.may_be_taken_back_yet(claim)

    async def _unreserved(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        try:
            return await self._without(claim, pod)
        except ApiError as error:
            raise fwk.PluginError(f"remove reservation from claim {claim.key}: {error}") from error

    async def _protect(self, claim: ResourceClaim) -> ResourceClaim:
        wanted = with_finalizer(claim)
        if wanted is claim:
            return claim
        change = {"metadata": {"finalizers": list(wanted.metadata.finalizers)}}
        try:
            return await self._handle.client.patch(RESOURCE_CLAIMS, claim, change)
        except Conflict:
            raise
        except ApiError as error:
            raise fwk.PluginError(f"add finalizer to claim {claim.key}: {error}") from error

    async def _again(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as it is now, after a conflict."""
        import anyio

        await anyio.sleep(_PAUSE_S * (1 + _JITTER * self._handle.random.random()))
        try:
            now = await self._handle.client.read(RESOURCE_CLAIMS, claim)
        except ApiError as error:
            raise fwk.PluginError(f"get updated claim {claim.key} after conflict: {error}") from error
        return _same(claim, now)

    def _patch_status(self, claim: ResourceClaim, status: dict[str, Any]) -> Awaitable[ResourceClaim]:
        return self._handle.client.patch(RESOURCE_CLAIMS, claim, {"status": status}, "status")

    # ------------------------------------------------------------ the claim for extended resources

    async def _write_special(
        self, found: PodDevices, pod: Pod, on_node: NodeDevices, allocation: AllocationResult
    ) -> None:
        """Create the claim, allocate and reserve it, and tell the pod about it."""
        assert on_node.special is not None
        created = await self._create(on_node.special)
        # Noted before anything else can fail, so that the claim is deleted then.
        found.claims[-1] = created
        found.claims[-1] = written = await self._reserve(created, allocation, pod, is_new=True)
        try:
            await self._tell_pod(pod, written, on_node)
        except BaseException:
            # The claim has the devices until it is deleted, and the watch may not have shown it yet.
            self._devices.doubt(created, allocation)
            raise
        await self._wait_until_seen(written)

    async def _tell_pod(self, pod: Pod, written: ResourceClaim, on_node: NodeDevices) -> None:
        if not on_node.mappings:
            raise fwk.PluginError(NO_MAPPINGS.format(pod=pod.key))
        mappings = [msgspec.to_builtins(each) for each in on_node.mappings]
        status = {"resourceClaimName": written.metadata.name, "requestMappings": mappings}
        try:
            await self._handle.client.merge_status(pod, {"extendedResourceClaimStatus": status})
        except ApiError as error:
            raise fwk.PluginError(f"update pod {pod.key} ExtendedResourceClaimStatus: {error}") from error

    async def _create(self, special: ResourceClaim) -> ResourceClaim:
        metadata = special.metadata
        name = _generated_name(metadata.generate_name, self._handle.random)
        named = replace(special, metadata=replace(metadata, uid="", name=name))
        manifest = {
            "apiVersion": RESOURCE_CLAIMS.api_version,
            "kind": RESOURCE_CLAIMS.kind,
            "metadata": msgspec.to_builtins(named.metadata),
            "spec": msgspec.to_builtins(named.spec),
        }
        try:
            created = await self._handle.client.create(RESOURCE_CLAIMS, named, manifest)
        except ApiError as error:
            self._devices.observer.claim_created(succeeded=False)
            where = f"{metadata.namespace}/{SPECIAL_NAME}"
            raise fwk.PluginError(f"create claim for extended resources {where}: {error}") from error
        self._devices.observer.claim_created(succeeded=True)
        return created

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
                    _same(claim, await self._handle.client.read(RESOURCE_CLAIMS, claim))
                except NotFound as error:
                    raise fwk.PluginError(_DELETED.format(claim=claim.key)) from error
                except ApiError:
                    continue
        log.warning("The watch has not shown a claim that was created", claim=claim.key)

    # ------------------------------------------------------------ after a failure

    async def clean_up(self, found: PodDevices | None, doubts: Sequence[DoubtedAllocation], pod: Pod) -> None:
        """Take back what the attempt leaves, and find out whether allocations that were given up have been written.

        Args:
            found: None if there is nothing to take back.
        """
        if found is not None:
            await self.take_back(found, pod)
        for doubt in doubts:
            try:
                now = await self._handle.client.read(RESOURCE_CLAIMS, doubt.claim)
            except NotFound:
                self._devices.settle(doubt, None)
            except ApiError as error:
                self._try_again_soon(pod, "A claim could not be read", error, claim=doubt.claim.key)
            else:
                self._devices.settle(doubt, now)

    async def take_back(self, found: PodDevices, pod: Pod) -> None:
        """Take back the reservations of a pod that is not bound, and what PostFilter wants to be taken back.

        An allocation that another attempt is about to clear is left to it.
        """
        claim = found.deallocated
        version = None if claim is None else (claim.metadata.uid, claim.metadata.resource_version)
        if version is None or version in self._deallocating:
            found.deallocated = None
            await self._take_back(found, pod)
            return
        self._deallocating.add(version)
        try:
            await self._take_back(found, pod)
        finally:
            self._deallocating.remove(version)

    async def _take_back(self, found: PodDevices, pod: Pod) -> None:
        async with self._turn(pod):
            is_reserved = any(claim.is_reserved_for(pod.uid) for claim in found.claims)
            if is_reserved and not await self._is_unbound(pod):
                return
            if found.is_unreserved:
                for claim in found.claims[: found.user_count]:
                    if claim.status.allocation is not None and claim.is_reserved_for(pod.uid):
                        await self._try(self._release, claim, pod)
                special = found.special
                if special is not None and special.metadata.name != SPECIAL_NAME:
                    await self._try(self._delete, special, pod)
            if found.deallocated is not None:
                await self._try(self._deallocate, found.deallocated, pod)
            if found.deleted is not None:
                await self._try(self._delete, found.deleted, pod)

    async def _try(
        self, write: Callable[[ResourceClaim, Pod], Awaitable[None]], claim: ResourceClaim, pod: Pod
    ) -> None:
        """Make a write. If it fails, the next attempt at the pod, which is made soon, comes to it again."""
        try:
            await write(claim, pod)
        except NotFound:
            log.info("A claim is gone already", claim=claim.key, pod=pod.key)
        except (ApiError, fwk.PluginError) as error:
            self._try_again_soon(pod, "A claim could not be taken back", error, claim=claim.key)

    async def _is_unbound(self, pod: Pod) -> bool:
        """Whether the API server shows that the pod is not bound. The watch may not have shown a late binding yet."""
        try:
            now = await self._handle.client.read(PODS, pod)
        except NotFound:
            return True
        except ApiError as error:
            self._try_again_soon(pod, "A pod could not be read; it keeps its claims", error)
            return False
        return now.uid != pod.uid or not now.node_name

    def _try_again_soon(self, pod: Pod, what: str, error: Exception, **fields: str) -> None:
        """Upstream's PostFilter fails then, and the pod backs off; here it waits for events already."""
        log.warning(what, pod=pod.key, error=str(error), **fields)
        self._handle.activate([pod], _RETRY_S)

    async def _release(self, claim: ResourceClaim, pod: Pod) -> None:
        await self._without(claim, pod)

    async def _without(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        """Remove the pod from those that the claim is reserved for. Returns the claim as it is then."""
        for attempt in range(_TRIES):
            if attempt:
                claim = await self._again(claim)
            if not claim.is_reserved_for(pod.uid):
                return claim
            kept = [msgspec.to_builtins(each) for each in claim.status.reserved_for if each.uid != pod.uid]
            try:
                return await self._clear(claim, {"reservedFor": kept or None})
            except Conflict:
                continue
        raise fwk.PluginError("the claim keeps changing")

    async def _deallocate(self, claim: ResourceClaim, pod: Pod) -> None:
        """Clear the allocation. Not repeated after a conflict: the claim may be in use by now."""
        await self._clear(claim, {"allocation": None, "reservedFor": None, "devices": None})

    async def _clear(self, claim: ResourceClaim, status: dict[str, Any]) -> ResourceClaim:
        """Take something out of the status."""
        try:
            written = await self._patch_status(claim, status)
        except BaseException as error:
            if _may_be_written_yet(error):
                self._devices.doubt_taking_back(claim)
            raise
        # An attempt that has begun would otherwise rely on the reservation until the watch shows that it is gone.
        self._devices.claims.assume(written)
        return written

    async def _delete(self, claim: ResourceClaim, pod: Pod) -> None:
        """Delete a claim for extended resources. From now on no attempt relies on it, unless that certainly fails."""
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
                claim = await self._again(claim)
            kept = [each for each in claim.metadata.finalizers if each != DELETE_PROTECTION]
            try:
                if len(kept) != len(claim.metadata.finalizers):
                    claim = await self._handle.client.patch(
                        RESOURCE_CLAIMS, claim, {"metadata": {"finalizers": kept or None}}
                    )
                await self._handle.client.delete(RESOURCE_CLAIMS, claim)
            except Conflict:
                continue
            return
        raise fwk.PluginError("the claim keeps changing")


def _same(claim: ResourceClaim, now: ResourceClaim) -> ResourceClaim:
    """The claim as it is now.

    Raises:
        PluginError: that is another claim of the same name.
    """
    if now.metadata.uid != claim.metadata.uid:
        raise fwk.PluginError(_DELETED.format(claim=claim.key))
    return now


def _may_be_written_yet(error: BaseException) -> bool:
    """Whether the API server may still carry out the write that ended like this: it was cancelled, or had no answer."""
    if isinstance(error, fwk.PluginError):
        return isinstance(error.__cause__, ApiError) and error.__cause__.may_have_happened
    return not isinstance(error, ApiError) or error.may_have_happened


def _generated_name(base: str, random: Random) -> str:
    """The base, cut to leave room, and a suffix as API servers append it."""
    suffix = "".join(random.choices(_SUFFIX_CHARACTERS, k=_SUFFIX_LENGTH))
    return f"{base[: _NAME_LENGTH_MAX - _SUFFIX_LENGTH]}{suffix}"


def _reservation(claim: ResourceClaim, wanted: ResourceClaim) -> dict[str, Any]:
    """The changes of the status."""
    before, after = claim.status.allocation, wanted.status.allocation
    assert after is not None
    change: dict[str, Any] = {"reservedFor": [msgspec.to_builtins(each) for each in wanted.status.reserved_for]}
    if before is None:
        change["allocation"] = msgspec.to_builtins(after)
    elif before.allocation_timestamp is None:
        change["allocation"] = {"allocationTimestamp": after.allocation_timestamp}
    return change
