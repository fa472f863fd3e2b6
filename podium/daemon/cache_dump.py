"""Dumps the scheduler's state to the log on SIGUSR2: nodes with their pods, the queue, and any difference from the API
server's objects.

Source: kubernetes pkg/scheduler/backend/cache/debugger, v1.36.2.
Differs: one line for each node and for each hundred pods of the queue, as values instead of text; pods in flight are
listed with those of the queue; other schedulers' unbound pods are not expected in the cache. Lines are not written
faster than the log accepts them.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import anyio

from podium.client.informer import Informer
from podium.cluster import Cache
from podium.cluster.pod_states import PodState
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.lib.turns import Turns
from podium.objects.core import Node, Pod
from podium.queues import SchedulingQueue
from podium.server.wakeup import WakeUp
from podium.telemetry import lines_waiting

log = get_logger("debugger")

_PODS_IN_LINE: Final = 100
_LOG_FILL_MAX: Final = 0.5
_LOG_WAIT_S: Final = 0.05
_LOG_WAITS_MAX: Final = 600

_Json: TypeAlias = dict[str, Any]


class CacheDump:
    """Writes the dump.

    Args:
        nodes, pods: the informers, which hold what the API server has sent.
        schedules: whether podium schedules pods with that scheduler name.
    """

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        nodes: Informer[Node],
        pods: Informer[Pod],
        schedules: Callable[[str], bool],
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._nodes = nodes
        self._pods = pods
        self._schedules = schedules
        self._clock = clock

    async def run(self) -> None:
        """Write a dump whenever the signal arrives, until cancelled; signals during a dump cause one more dump."""
        dump_request, loop = WakeUp(), asyncio.get_running_loop()
        # Not a handler of the loop's: when that is removed, SIGUSR2 kills the process until the signal is ignored.
        signal.signal(signal.SIGUSR2, lambda *_: loop.call_soon_threadsafe(dump_request.set))
        try:
            while True:
                await dump_request.wait()
                await self.write()
        finally:
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)

    async def write(self) -> None:
        """Write one dump."""
        turns = Turns(self._clock)
        await self._compare(turns)
        for name in list(self._cache.known_node_names()):
            log.info("Dump of cached NodeInfo", **self._node(name))
            if not await self._may_go_on(turns):
                return
        waiting = [info.pod for info in self._queue.listing.infos()]
        summary = self._queue.statistics().pending_pods
        for first in range(0, max(1, len(waiting)), _PODS_IN_LINE):
            pods = _pods_json(waiting[first : first + _PODS_IN_LINE])
            log.info("Dump of scheduling queue", summary=summary, pods=pods)
            if not await self._may_go_on(turns):
                return

    def _node(self, name: str) -> _Json:
        node = self._cache.dump_node(name)
        return {
            "node": name,
            "deleted": node.is_deleted,
            "requested": node.requested,
            "allocatable": node.allocatable,
            "pods": _pods_json(node.pods),
            "nominated": _pods_json(self._queue.nominated_pods_for_node(name)),
        }

    async def _compare(self, turns: Turns) -> None:
        """Log which objects the cache lacks, and which it holds that no longer exist."""
        actual_nodes = {node.name for node in self._nodes.list()}
        cached_nodes = set(self._cache.node_names())
        _tell_mismatch("Nodes", actual_nodes, cached_nodes)
        actual, cached_keys = dict[str, str](), dict[str, str]()
        for pod in list(self._pods.list()):
            if self._is_expected(pod):
                actual[pod.uid] = pod.key
            if turns.is_over():
                await turns.next()
        for name in list(self._cache.known_node_names()):
            cached_keys.update((pod.uid, pod.key) for pod in self._cache.pods_on(name))
            if turns.is_over():
                await turns.next()
        for info in self._queue.listing.infos():
            cached_keys[info.pod.uid] = info.pod.key
            if turns.is_over():
                await turns.next()
        # Pods have come and gone in between, so each difference is looked at once more, without an await.
        differing = {
            uid: key for uid, key in (*actual.items(), *cached_keys.items()) if (uid in actual) != (uid in cached_keys)
        }
        _tell_mismatch(
            "Pods",
            {uid for uid, key in differing.items() if self._exists(uid, key)},
            {uid for uid, key in differing.items() if self._is_cached(uid, key)},
        )

    def _is_expected(self, pod: Pod) -> bool:
        return bool(pod.node_name) or self._schedules(pod.spec.scheduler_name)

    def _exists(self, uid: str, key: str) -> bool:
        pod = self._pods.get(key)
        return pod is not None and pod.uid == uid and self._is_expected(pod)

    def _is_cached(self, uid: str, key: str) -> bool:
        if self._cache.state_of(uid) is not PodState.UNKNOWN:
            return True
        info = self._queue.listing.info_of(key)
        return info is not None and info.pod.uid == uid

    async def _may_go_on(self, turns: Turns) -> bool:
        """Wait until the log accepts more lines, and return True; return False if it is not being read."""
        if turns.is_over():
            await turns.next()
        for _ in range(_LOG_WAITS_MAX):
            if lines_waiting() <= _LOG_FILL_MAX:
                return True
            await anyio.sleep(_LOG_WAIT_S)
        log.warning("The dump is incomplete: the log is not being read")
        return False


def _pods_json(pods: Iterable[Pod]) -> list[_Json]:
    return [
        {
            "name": pod.metadata.name,
            "namespace": pod.metadata.namespace,
            "uid": pod.uid,
            "phase": pod.status.phase,
            "nominatedNode": pod.status.nominated_node_name,
        }
        for pod in pods
    ]


def _tell_mismatch(kind: str, actual: set[str], cached_names: set[str]) -> None:
    if actual != cached_names:
        values = {f"missed{kind}": sorted(actual - cached_names), f"redundant{kind}": sorted(cached_names - actual)}
        log.info("Cache mismatch", **values)
