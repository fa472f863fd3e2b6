"""Passes pods on that did not fit: writes into their conditions that this member has tried, or refuses a placement.

A write that fails is repeated, ever later, while there is something to write: no event would wake the pod otherwise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import anyio

from podium.binder import ApiClient
from podium.daemon.failures import still_waiting
from podium.daemon.shards.pod_handler import ShardPodHandler
from podium.engine.flight_recorder import AttemptObserver
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError, NotFound
from podium.objects.core import Pod
from podium.plugins.shared.shard_state import ShardState
from podium.server.wakeup import WakeUp
from podium.shards import Role, Visits
from podium.telemetry import Metrics

log = get_logger("shards")

_WRITERS: Final = 16
_AGAIN_S_MIN: Final = 1.0
_AGAIN_S_MAX: Final = 60.0


class PassingOn(AttemptObserver):
    """Hears of attempts that failed, and writes in tasks of its own what the other members have to know.

    Args:
        lookup: the latest version of the pod with that key that the API server has sent.
        handler: takes pods out of the queue that this member no longer decides on.
    """

    def __init__(
        self,
        shards: ShardState,
        lookup: Callable[[str], Pod | None],
        handler: ShardPodHandler,
        client: ApiClient,
        metrics: Metrics,
    ) -> None:
        self._shards = shards
        self._lookup = lookup
        self._handler = handler
        self._client = client
        self._metrics = metrics
        self._failed: deque[tuple[Pod, float]] = deque()
        self._wake_up = WakeUp()

    def on_failure(self, pod: Pod, result: str, message: str, seconds: float | Callable[[], float]) -> None:
        """Note a pod that another member may have to decide on now."""
        del message, seconds
        role = self._shards.role(pod)
        if role in (Role.NONE, Role.TARGET) or (role is Role.HOME and result == "unschedulable"):
            self._note(pod, _AGAIN_S_MIN)

    async def run(self) -> None:
        """Write until cancelled, a few pods at a time."""
        writers = anyio.Semaphore(_WRITERS)
        async with anyio.create_task_group() as tasks:
            while True:
                await self._wake_up.wait()
                while self._failed:
                    await writers.acquire()
                    tasks.start_soon(self._pass_on_until_written, *self._failed.popleft(), writers)

    def _note(self, pod: Pod, again_s: float) -> None:
        self._failed.append((pod, again_s))
        self._wake_up.set()

    async def _pass_on_until_written(self, pod: Pod, again_s: float, writers: anyio.Semaphore) -> None:
        """Pass the pod on with the slot of a writer; if that fails, note it again once the pause is over."""
        try:
            await self._pass_on(pod)
            return
        except ApiError as error:
            # A pod that is gone is not found; the watch will show it.
            if not isinstance(error, NotFound):
                log.warning("Pod could not be passed to the next shard", pod=pod.key, error=str(error), again_s=again_s)
        finally:
            writers.release()
        await anyio.sleep(again_s)
        self._note(pod, min(2.0 * again_s, _AGAIN_S_MAX))

    async def _pass_on(self, pod: Pod) -> None:
        current = still_waiting(self._lookup, pod)
        if current is None or self._handler.is_decided(current):
            return
        role, visits = self._shards.role(current), Visits.of(current)
        if role is Role.NONE:
            await self._handler.divide_again([current])
        elif role is Role.TARGET:
            await self._write(current, replace(visits, node=""))
        elif role is Role.HOME and visits == Visits.of(pod):
            await self._write(current, visits.after(self._shards.ownership.member))
            self._metrics.count_shard_pass()

    async def _write(self, pod: Pod, visits: Visits) -> None:
        await self._client.patch_status(pod, condition=visits.condition())
