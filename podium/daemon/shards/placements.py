"""Hands pods to the members that own their nodes: a member that sees all nodes chooses, and the owner binds.

The chosen node is written into the pod's condition. Until the watch shows the pod bound there, or refused, it stays
assumed where it was placed, so that the next decisions count it. If the node goes to another member meanwhile, the pod
is decided on again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import anyio

from podium.binder import ApiClient
from podium.daemon.failures import still_waiting
from podium.framework import contract as fwk
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError
from podium.objects.core import Pod
from podium.objects.wire import BrokenObject
from podium.plugins.shared.shard_state import ShardState
from podium.shards import Visits
from podium.telemetry import Metrics

log = get_logger("shards")

PLACED_S_MAX: Final = 30.0
"""An owner that has not answered after this time may not be alive."""
_CHANGED: Final = "the node has changed its shard"


@dataclass(slots=True, eq=False)
class _Placement:
    node_name: str
    owner: str
    is_written: bool = False
    is_withdrawn: bool = False
    failure: str = ""
    end_event: anyio.Event = field(default_factory=anyio.Event)

    def end(self, failure: str = "") -> None:
        self.failure = failure
        self.end_event.set()

    def withdraw(self, failure: str) -> None:
        self.is_withdrawn = True
        # A condition that the watch has not shown yet could not be taken back.
        if self.is_written and not self.end_event.is_set():
            self.end(failure)


class Placements:
    """The pods that other members have been asked to bind. A handler of the pods' informer.

    Args:
        lookup: the latest version of the pod with that key that the API server has sent.
    """

    def __init__(
        self, shards: ShardState, lookup: Callable[[str], Pod | None], client: ApiClient, metrics: Metrics
    ) -> None:
        self._shards = shards
        self._lookup = lookup
        self._client = client
        self._metrics = metrics
        self._under_way: dict[str, _Placement] = {}

    async def place(self, pod: Pod, node_name: str) -> fwk.Status | None:
        """Have the owner of the node bind the pod there; return None once it is bound, or why it is not."""
        owner = self._shards.owner_of(node_name)
        if owner in ("", self._shards.ownership.member):
            return fwk.unschedulable(f'node "{node_name}" was about to change its shard')
        placement = self._under_way[pod.uid] = _Placement(node_name, owner)
        try:
            if not await self._write(pod, node_name):
                return fwk.unschedulable("pod was deleted or bound meanwhile")
            with anyio.move_on_after(PLACED_S_MAX):
                await placement.end_event.wait()
            if not placement.end_event.is_set():
                placement.is_withdrawn = True
                placement.end(f"it has not answered for {PLACED_S_MAX:.0f} s")
            if placement.is_withdrawn:
                await self._write(pod, "")
        except ApiError as error:
            failure = fwk.PluginError(f"handing the pod to shard {owner}: {error.message}")
            failure.__cause__ = error
            return fwk.error_status(failure)
        finally:
            del self._under_way[pod.uid]
        self._metrics.count_shard_placement("refused" if placement.failure else "bound")
        if placement.failure:
            return fwk.unschedulable(f'shard {owner} did not bind the pod to node "{node_name}": {placement.failure}')
        return None

    def is_under_way(self, pod: Pod) -> bool:
        """Return whether another member has been asked to bind the pod."""
        return pod.uid in self._under_way

    def withdraw_stale(self) -> None:
        """End the placements on nodes that have gone to another member: the old owner may not be alive."""
        for placement in self._under_way.values():
            if self._shards.owner_of(placement.node_name) != placement.owner:
                placement.withdraw(_CHANGED)

    def on_add(self, new: Pod) -> None:
        """Handle an added pod: a list may show one that was recreated."""

    def on_update(self, old: Pod, new: Pod) -> None:
        """Handle an updated pod, which may have been bound or refused."""
        del old
        placement = self._under_way.get(new.uid)
        if placement is None:
            return
        if new.node_name:
            is_there = new.node_name == placement.node_name
            placement.end("" if is_there else f'it was bound to "{new.node_name}"')
        elif Visits.of(new).node == placement.node_name:
            placement.is_written = True
            if placement.is_withdrawn:
                placement.withdraw(_CHANGED)
        elif placement.is_written and not placement.end_event.is_set():
            placement.end("the node has no room for it any more")

    def on_delete(self, old: Pod) -> None:
        """Handle a deleted pod."""
        if (placement := self._under_way.get(old.uid)) is not None:
            placement.end("the pod was deleted")

    def on_broken(self, item: BrokenObject) -> None:
        """Leave a pod that cannot be decoded to the handler of pods."""

    async def _write(self, pod: Pod, node_name: str) -> bool:
        current = still_waiting(self._lookup, pod)
        if current is None:
            return False
        visits = replace(Visits.of(current), node=node_name)
        await self._client.patch_status(current, condition=visits.condition())
        return True
