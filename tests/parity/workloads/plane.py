"""A real control plane in which one question after the other is carried out."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterator

import anyio.to_thread

from tests.control_plane.cleanup import empty_cluster
from tests.control_plane.client import Client
from tests.control_plane.locate import Binaries
from tests.control_plane.servers import LARGE_HEAPS, ControlPlane, Scheduler
from tests.parity.workloads.mirror import CLAIMS, JOBS, PODS, WORKLOADS, Mirror
from tests.parity.workloads.naming import Json
from tests.parity.workloads.stand_ins import StandIns

CONTROLLERS = (
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "ephemeral-volume-controller",
    "garbage-collector-controller",
    "job-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "resourceclaim-controller",
    "resourcequota-controller",
    "statefulset-controller",
)
QUIET_S = 1.3
"""For so long nothing may change at the end: longer than the second for which the Job controller gathers changes."""
SETTLE_S_MAX = 60.0
REPLACED_S_MAX = 25.0
"""For so long the pods of Jobs are waited for: a Job controller replaces a pod only 10 s after it has failed."""

_FAST = ("--kube-api-qps=1000", "--kube-api-burst=2000")
_SCHEDULER = {
    "clientConnection": {"qps": 1000, "burst": 2000},
    # Nothing else is to be waited for: the second attempts come at once.
    "podInitialBackoffSeconds": 1,
    "podMaxBackoffSeconds": 1,
}
_SCORE = re.compile(r'"Calculated node\'s final score for pod".* pod="([^"]+)" node="([^"]+)" score=(-?\d+)')
_UNFINISHED = re.compile(
    r'^scheduler_(?:pending_pods\{queue="(?:active|backoff)"|goroutines\{operation="[a-z_]+")\} (\S+)$', re.MULTILINE
)
"""Pods that are to be tried, and work on those that were, such as bindings that wait for volumes."""


class RestlessError(Exception):
    """The cluster did not come to rest."""


class Plane:
    """A running control plane with stand-ins for kubelets and provisioners."""

    def __init__(self, client: Client, scheduler: Scheduler, scheduler_client: Client, mirror: Mirror) -> None:
        self.client, self.mirror = client, mirror
        self.stand_ins = StandIns(client, mirror)
        self._scheduler, self._scheduler_client = scheduler, scheduler_client

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, binaries: Binaries) -> AsyncIterator[Plane]:
        """Starts everything, and stops it at the end."""
        plane = await anyio.to_thread.run_sync(ControlPlane.start, binaries, LARGE_HEAPS)
        with contextlib.ExitStack() as processes:
            processes.callback(plane.stop)
            controllers = await anyio.to_thread.run_sync(
                lambda: plane.start_controllers(*CONTROLLERS, more_flags=_FAST)
            )
            processes.callback(controllers.kill)
            scheduler = await anyio.to_thread.run_sync(lambda: plane.start_scheduler(_SCHEDULER, verbosity=10))
            processes.callback(scheduler.process.kill)
            unverified = ssl._create_unverified_context()
            async with (
                Client(plane.url, token=plane.admin_token, tls=plane.ssl_context()) as client,
                Client(scheduler.url, token=plane.admin_token, tls=unverified) as scheduler_client,
                asyncio.TaskGroup() as group,
            ):
                running = cls(client, scheduler, scheduler_client, Mirror(client))
                tasks = [group.create_task(running.mirror.run()), group.create_task(running.stand_ins.run())]
                try:
                    yield running
                finally:
                    for task in tasks:
                        task.cancel()

    async def empty(self) -> None:
        """Delete everything, again while controllers create something anew. Raises: RestlessError."""
        collections = (PODS, CLAIMS, *WORKLOADS)
        for _ in range(10):
            await empty_cluster(self.client)
            await asyncio.sleep(0.1)
            items_left = [item for collection in collections for item in self.mirror.items(collection)]
            if not items_left:
                return
            # Without its namespace, an object cannot be changed.
            for namespace in {item["metadata"]["namespace"] for item in items_left}:
                await self.client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        raise RestlessError("objects come back")

    async def settle(self) -> None:
        """Wait until nothing changes any more, and all pods have ended that were deleted. Raises: RestlessError."""
        # What was done just now may not have come to the mirror yet.
        begun_s = time.monotonic()
        deadline_s = begun_s + SETTLE_S_MAX
        while True:
            rest_s = max(self.mirror.changed_s, begun_s) + QUIET_S - time.monotonic()
            is_quiet = rest_s <= 0 and self.stand_ins.is_idle and self._is_observed()
            is_at_rest = is_quiet and await self._is_scheduler_idle() and not await self.stand_ins.end_pods()
            if is_at_rest and (self._are_replaced() or time.monotonic() > begun_s + REPLACED_S_MAX):
                return
            if time.monotonic() > deadline_s:
                raise RestlessError("it does not come to rest")
            await asyncio.sleep(max(rest_s, 0.1))

    def _is_observed(self) -> bool:
        """Return True if controllers have seen the workloads as they are now."""
        return all(
            item["status"].get("observedGeneration", 0) >= item["metadata"].get("generation", 0)
            for collection in WORKLOADS
            if collection != JOBS
            for item in self.mirror.items(collection)
        )

    def _are_replaced(self) -> bool:
        """Return True if no pod is terminating and each Job has as many pods as it should."""
        if any("deletionTimestamp" in pod["metadata"] for pod in self.mirror.items(PODS)):
            return False
        return all(job["status"].get("active", 0) >= _active_max(job) for job in self.mirror.items(JOBS))

    async def _is_scheduler_idle(self) -> bool:
        metrics = await self._scheduler_client.text("/metrics")
        return all(float(value) == 0 for value in _UNFINISHED.findall(metrics))

    def log_position(self) -> int:
        """Where the scheduler's log ends now."""
        return self._scheduler.process.log.stat().st_size

    def ties_since(self, position: int) -> list[str]:
        """The pods for which the scheduler chose among several best nodes, which it does by chance."""
        with self._scheduler.process.log.open(errors="replace") as log:
            log.seek(position)
            return ties_in(log)


def ties_in(log: Iterator[str]) -> list[str]:
    """The pods of attempts in which several nodes were the best."""
    return [pod for pod, scores in _attempts(log) if _is_tie(scores)]


def _active_max(job: Json) -> int:
    """Return the number of pods that a Job should have active."""
    spec, success_count = job["spec"], job["status"].get("succeeded", 0)
    if spec.get("suspend") or (success_count and "completions" not in spec):
        return 0
    parallelism = spec.get("parallelism", 1)
    return int(min(parallelism, spec.get("completions", success_count + parallelism) - success_count))


def _attempts(lines: Iterator[str]) -> Iterator[tuple[str, list[int]]]:
    """The scores of each attempt's nodes, whose lines follow each other."""
    current, nodes, scores = "", set[str](), list[int]()
    for line in lines:
        match = _SCORE.search(line)
        if match is None:
            continue
        pod, node, score = match.groups()
        if pod != current or node in nodes:
            yield current, scores
            current, nodes, scores = pod, set(), []
        nodes.add(node)
        scores.append(int(score))
    yield current, scores


def _is_tie(scores: list[int]) -> bool:
    return bool(scores) and scores.count(max(scores)) > 1


def is_bound(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName"))
