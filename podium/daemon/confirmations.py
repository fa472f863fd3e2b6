"""Looks up pods whose binding request succeeded but whose binding the watch does not confirm.

Owns the question whether these pods are bound. Never takes back a pod that the API server shows on a node.

Differs: upstream trusts the response for ever. If a proxy answers by itself, or an extender or plugin binds nothing,
the pod is never scheduled again there, and its resources stay assumed.
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
    """Looks up pods that are still assumed one to two periods after their binding.

    Args:
        binding_cycles: the uids of the pods whose binding cycle is under way.
        is_bound: asks the API server.
        take_back: called with a pod that is not bound, and the node where it is assumed.

    Cost: below 0.5 us for each pod that is bound. Remembers about twice as many pods as are assumed.
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
        """Expect the watch to confirm the pod's binding, whose request succeeded."""
        self._recent.append((pod, node_name))
        if len(self._recent) >= self._sifted_at:
            self._recent = self._still_assumed(self._recent)
            self._sifted_at = 2 * len(self._recent) + _KEPT_MIN

    async def run(self) -> None:
        """Look up unconfirmed pods until cancelled."""
        while True:
            await anyio.sleep(_PERIOD_S)
            due = self._still_assumed(self._awaited)
            self._awaited, self._recent = self._still_assumed(self._recent), []
            # If the watch lags far behind, there may be thousands of such pods, all of them bound.
            for pod, node_name in due[:_LOOKED_UP_MAX]:
                await self._look_up(pod, node_name)
            self._awaited += due[_LOOKED_UP_MAX:]

    def _still_assumed(self, bindings: list[tuple[Pod, str]]) -> list[tuple[Pod, str]]:
        return [binding for binding in bindings if self._is_still_assumed(binding[0])]

    def _is_still_assumed(self, pod: Pod) -> bool:
        """Return True if the pod is still assumed by that binding, not by a later one (after a restore of etcd)."""
        return self._cache.is_assumed(pod.uid) and pod.uid not in self._binding_cycles

    async def _look_up(self, pod: Pod, node_name: str) -> None:
        try:
            is_bound = await self._is_bound(pod, node_name)
        except ApiError as error:
            # Deleted or bound elsewhere: the watch will show it. Not readable: it is looked up again later.
            log.debug("Cannot look up a pod whose binding the watch has not confirmed", pod=pod.key, error=str(error))
            is_bound = True
        if is_bound:
            self._awaited.append((pod, node_name))
        elif self._is_still_assumed(pod):
            self._take_back(pod, node_name)
