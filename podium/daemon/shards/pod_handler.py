"""The event handler of pods of one shard: the queue holds only those pods that this member decides on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from podium.daemon.pod_handler import PodHandler
from podium.framework.contract.handle import Handle
from podium.lib.turns import Turns
from podium.objects.core import Pod
from podium.plugins.shared.shard_state import ShardState
from podium.shards import Role


class ShardPodHandler(PodHandler):
    """As `PodHandler`; pending pods of other members count only with the node that they are nominated to.

    Args:
        share: returns what plugins share, of which `ShardState` says which pods this member decides on.
    """

    def __init__(
        self, share: Callable[[Callable[[Handle], ShardState]], ShardState], *parts: Any, **settings: Any
    ) -> None:
        super().__init__(*parts, **settings)
        self._shards = share(ShardState)

    async def divide_again(self, pods: Iterable[Pod]) -> None:
        """Take in the pending pods among these that this member decides on now, and let go of the others."""
        turns = Turns(self._clock)
        for pod in pods:
            if not pod.node_name and self._is_ours(pod):
                self._update_pending(pod, pod)
            if turns.is_over():
                await turns.next()

    def is_decided(self, pod: Pod) -> bool:
        """Return whether this member has chosen a node for the pending pod, and may be binding it."""
        return self._cache.is_assumed(pod.uid) or pod.uid in self._binding_cycles

    def _add_pending(self, pod: Pod) -> None:
        if self._shards.holds(pod):
            super()._add_pending(pod)
        else:
            self._queue.nominator.add(pod)

    def _update_pending(self, old: Pod, new: Pod) -> None:
        if self.is_decided(new) or self._shards.holds(new):
            super()._update_pending(old, new)
            if self._shards.role(old) not in (Role.NONE, self._shards.role(new)):
                # It was rejected in another role, as by an overseer that was the last to try its own nodes; no event
                # of the cluster has to follow that would wake it.
                self._queue.activate([new])
            return
        self._leave_group(old)
        self._queue.delete(old)
        # Nobody else may take the room that another member has made for it here.
        self._queue.nominator.add(new)
