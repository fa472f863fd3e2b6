"""Passes pods on that did not fit: writes into their conditions that this member has tried, or refuses a placement."""

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
        self._failed: deque[Pod] = deque()
        self._wake_up = WakeUp()

    def on_failure(self, pod: Pod, result: str, message: str, seconds: float | Callable[[], float]) -> None:
        """Note a pod that another member may have to decide on now."""
        del message, seconds
        role = self._shards.role(pod)
        if role in (Role.NONE, Role.TARGET) or (role is Role.HOME and result == "unschedulable"):
            self._failed.append(pod)
            self._wake_up.set()

    async def run(self) -> None:
        """Write until cancelled, a few pods at a time."""
        writers = anyio.Semaphore(_WRITERS)
        async with anyio.create_task_group() as tasks:
            while True:
                await self._wake_up.wait()
                while self._failed:
                    await writers.acquire()
                    tasks.start_soon(self._pass_on_and_release, self._failed.popleft(), writers)

    async def _pass_on_and_release(self, pod: Pod, writers: anyio.Semaphore) -> None:
        try:
            await self._pass_on(pod)
        finally:
            writers.release()

    async def _pass_on(self, pod: Pod) -> None:
        current = still_waiting(self._lookup, pod)
        if current is None:
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
        try:
            await self._client.patch_status(pod, condition=visits.condition())
        except NotFound:
            pass
        except ApiError as error:
            log.warning("Pod could not be passed to the next shard", pod=pod.key, error=str(error))
