"""Writes the status of pods that were not bound, and of pod groups, to the API server.

Owns the order of the writes for each object, and sends only the latest. Never decides what to write.

Source: kubernetes pkg/scheduler/backend/api_dispatcher/call_queue.go, v1.36.2: a waiting call for a pod is replaced by
its next one, and dropped when the pod is bound. Upstream has this behind a feature gate that is off by default.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, TypeAlias

import anyio

from podium.binder import ApiClient, changes_status, pod_group_status_patch, status_patch
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError, NotFound
from podium.objects.core import Pod, PodCondition
from podium.objects.pod_groups import PodGroup
from podium.objects.resource_types import POD_GROUPS, PODS, ResourceType

log = get_logger("scheduler")

_NOT_WRITTEN: Final = {
    PODS.kind: "Pod status could not be written",
    POD_GROUPS.kind: "PodGroup status could not be written",
}


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """A write into a pod's status. A nominated node of None leaves the field unchanged; "" clears it."""

    pod: Pod
    condition: PodCondition
    nominated_node_name: str | None
    resource: ClassVar[ResourceType[Any]] = PODS

    @property
    def item(self) -> Pod:
        """The object whose status is written."""
        return self.pod

    def in_place_of(self, earlier: AnyStatusWrite | None) -> StatusWrite:
        """Return this write, merged with the parts of an earlier unsent write that it does not overwrite."""
        if not isinstance(earlier, StatusWrite) or self.nominated_node_name is not None:
            return self
        return replace(self, nominated_node_name=earlier.nominated_node_name)

    def is_needed(self) -> bool:
        """Return whether the write changes anything. Cost: a tenth of the patch."""
        return changes_status(self.pod, condition=self.condition, nominated_node_name=self.nominated_node_name)

    def patch(self, now_s: float) -> bytes | None:
        """Return the patch to send, or None if it would change nothing."""
        return status_patch(self.pod, now_s, condition=self.condition, nominated_node_name=self.nominated_node_name)


@dataclass(frozen=True, slots=True)
class PodGroupStatusWrite:
    """The condition to write into a pod group's status."""

    item: PodGroup
    condition: PodCondition
    resource: ResourceType[Any] = POD_GROUPS

    def in_place_of(self, earlier: AnyStatusWrite | None) -> AnyStatusWrite:
        """Return this write, or an earlier unsent one that says that the group is scheduled: it is never taken back."""
        return earlier if earlier is not None and earlier.condition.status == "True" else self

    def is_needed(self) -> bool:
        """Return whether the write changes anything."""
        return self.patch(0.0) is not None

    def patch(self, now_s: float) -> bytes | None:
        """Return the patch to send, or None if it would change nothing."""
        return pod_group_status_patch(self.item, now_s, self.condition)


AnyStatusWrite: TypeAlias = StatusWrite | PodGroupStatusWrite


@dataclass(slots=True, eq=False)
class _OnItsWay:
    """The writes of one object: `waiting` can still be replaced; `has_begun` may have reached the API server.

    `is_dropped` tells the cancellation of its task by `settle` from any other. A scope would cost 5 us.
    """

    waiting: AnyStatusWrite | None
    task: asyncio.Task[Any]
    has_begun: bool = False
    is_dropped: bool = False
    ended: anyio.Event | None = None
    """Set at the end, if anything waits for it."""


class StatusWrites:
    """Sends status patches, one at a time for each object.

    Invariant: a patch not yet started when the next one arrives, or when the pod is to be bound, is never sent.
    """

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._on_their_way: dict[str, _OnItsWay] = {}

    async def write(self, write: AnyStatusWrite) -> None:
        """Send a status. Returns at once if an earlier write for the object is under way; this one is sent after it.

        An error is logged and otherwise ignored: the next attempt writes the status again. An object deleted meanwhile
        is not an error.
        """
        uid = write.item.metadata.uid
        earlier = self._on_their_way.get(uid)
        if earlier is not None:
            earlier.waiting = write.in_place_of(earlier.waiting)
            return
        # Of most pods that still do not fit, the condition says so already.
        if not write.is_needed():
            return
        task = asyncio.current_task()
        assert task is not None, "writes are sent by tasks"
        pending_write = self._on_their_way[uid] = _OnItsWay(write, task)
        try:
            await self._send(pending_write, write)
            while pending_write.waiting is not None and pending_write.waiting.is_needed():
                await self._send(pending_write, pending_write.waiting)
        except asyncio.CancelledError:
            # Another cancellation may have come at the same time.
            if not pending_write.is_dropped or task.uncancel():
                raise
        finally:
            if self._on_their_way.get(uid) is pending_write:
                del self._on_their_way[uid]
            if pending_write.ended is not None:
                pending_write.ended.set()

    async def settle(self, uid: str) -> None:
        """Drop the waiting write and await the end of the one under way; return at once if no write is under way."""
        pending_write = self._on_their_way.get(uid)
        if pending_write is None:
            return
        pending_write.waiting = None
        if pending_write.has_begun:
            pending_write.ended = pending_write.ended or anyio.Event()
            await pending_write.ended.wait()
        else:
            del self._on_their_way[uid]
            pending_write.is_dropped = True
            pending_write.task.cancel()

    async def _send(self, pending_write: _OnItsWay, write: AnyStatusWrite) -> None:
        last_write: AnyStatusWrite | None = None

        def compose() -> bytes | None:
            nonlocal last_write
            pending_write.has_begun = True
            if pending_write.waiting is not None:
                last_write, pending_write.waiting = pending_write.waiting.in_place_of(last_write), None
            return last_write.patch(self._clock.now()) if last_write is not None else None

        try:
            await self._client.send_status(write.item, compose, write.resource)
        except NotFound:
            log.debug("Object was deleted, its status is not written", kind=write.resource.kind, object=write.item.key)
        except ApiError as error:
            log.warning(_NOT_WRITTEN[write.resource.kind], object=write.item.key, error=str(error))
        finally:
            pending_write.has_begun = False
