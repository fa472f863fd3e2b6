"""Pods whose binding was answered with success, and that the watch does not show bound.

Owns the question what has become of them. Never takes a pod back that the API server has on a node.

Differs: upstream believes the answer for ever. A proxy that answers by itself, an extender or a plugin that binds
nothing, and the pod is never scheduled again while its room stays taken.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container
from typing import Final

import anyio

from podium.cluster import Cache
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError
from podium.objects.core import Pod

log = get_logger("scheduler")

_PERIOD_S: Final = 15.0
_LOOKED_UP_MAX: Final = 16
_KEPT_MIN: Final = 1000


class Confirmations:
    """Looks pods up that are still assumed one to two periods after their binding.

    Args:
        binding_cycles: the uids of the pods whose binding is under way.
        is_bound: asks the API server.
        take_back: called with a pod that is not bound, and the node where it is assumed.

    Cost: below 0.5 us for each pod that is bound. Kept are about twice as many as are assumed.
    """

    def __init__(
        self,
        cache: Cache,
        binding_cycles: Container[str],
        is_bound: Callable[[Pod, str], Awaitable[bool]],
        take_back: Callable[[Pod, str], None],
    ) -> None:
        self._cache = cache
        self._binding_cycles = binding_cycles
        self._is_bound = is_bound
        self._take_back = take_back
        self._recent: list[tuple[Pod, str]] = []
        self._awaited: list[tuple[Pod, str]] = []
        self._sifted_at = _KEPT_MIN

    def expect(self, pod: Pod, node_name: str) -> None:
        """The binding of the pod was answered with success."""
        self._recent.append((pod, node_name))
        if len(self._recent) >= self._sifted_at:
            self._recent = self._still_assumed(self._recent)
            self._sifted_at = 2 * len(self._recent) + _KEPT_MIN

    async def run(self) -> None:
        """Look up until cancelled."""
        while True:
            await anyio.sleep(_PERIOD_S)
            due = self._still_assumed(self._awaited)
            self._awaited, self._recent = self._still_assumed(self._recent), []
            # Where the watch is far behind there may be thousands, and all of them bound.
            for pod, node_name in due[:_LOOKED_UP_MAX]:
                await self._look_up(pod, node_name)
            self._awaited += due[_LOOKED_UP_MAX:]

    def _still_assumed(self, bound: list[tuple[Pod, str]]) -> list[tuple[Pod, str]]:
        return [each for each in bound if self._is_still_assumed(each[0])]

    def _is_still_assumed(self, pod: Pod) -> bool:
        """Whether it is by that binding that the pod is assumed: not by one under way, after a restore of etcd."""
        return self._cache.is_assumed(pod.uid) and pod.uid not in self._binding_cycles

    async def _look_up(self, pod: Pod, node_name: str) -> None:
        try:
            is_bound = await self._is_bound(pod, node_name)
        except ApiError as error:
            # Gone or elsewhere: the watch will tell. Not readable: it is asked again.
            log.debug("A pod that is not seen bound cannot be looked up", pod=pod.key, error=str(error))
            is_bound = True
        if is_bound:
            self._awaited.append((pod, node_name))
        elif self._is_still_assumed(pod):
            self._take_back(pod, node_name)
