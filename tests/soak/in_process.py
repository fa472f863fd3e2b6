"""A million pods through the daemon's own parts, with an API server that is a few lines: no HTTP, no pauses."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Final

import msgspec

from podium.client.informer_set import InformerSet
from podium.config import load
from podium.daemon.observers import Observers
from podium.daemon.options import Options
from podium.daemon.scheduler import Scheduler
from podium.lib.system_clock import SystemClock
from podium.objects.resource_types import NODES, PODS, ResourceType
from podium.objects.wire import ObjectDecoder
from podium.telemetry import Metrics
from tests.soak import pods
from tests.soak.growth import Sample, sample
from tests.unit.binder.builders import Request, regular_answer

_ALIVE: Final = 2_000
_WAITING_MAX: Final = 200
_NODE_EVERY: Final = 2_000
_SETTLE_S: Final = 1.0
_BOUND_S_MAX: Final = 60.0
_CONFIGURATION: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {qps: 1000000, burst: 1000000}
leaderElection: {leaderElect: false}
profiles: [{schedulerName: podium}]
"""


class InProcess:
    """The daemon's parts, wired to `Server`."""

    def __init__(self) -> None:
        clock, random, metrics = SystemClock(), Random(1), Metrics()
        self.server = Server()
        server: Any = self.server
        self.informers = InformerSet(server, clock=clock, random=random)
        observers = Observers(metrics, "server")
        config = load(_CONFIGURATION).config
        self.scheduler = Scheduler(
            config, Options(), server, self.informers, observers, clock=clock, random=random, metrics=metrics
        )
        self._decoders = {resource_type: ObjectDecoder(resource_type) for resource_type in (PODS, NODES)}
        self._version = 0

    def send(self, resource: ResourceType[Any], change: str, item: pods.Json) -> None:
        """One line of a watch."""
        self._version += 1
        item["metadata"] |= {"uid": item["metadata"]["name"], "resourceVersion": str(self._version)}
        event: Any = self._decoders[resource].event(msgspec.json.encode({"type": change, "object": item}))
        informer = self.informers.informer(resource)
        (informer.drop if change == "DELETED" else informer.put)(event.object)


class Server:
    """Takes every request for good, and knows the bindings."""

    def __init__(self) -> None:
        self.bound: deque[tuple[str, str]] = deque()

    async def request(self, method: str, path: str, body: bytes | None = None, **_: Any) -> bytes:
        """As `ApiSession.request`."""
        if path.endswith("/binding"):
            assert body is not None
            self.bound.append((path.split("/")[-2], msgspec.json.decode(body)["target"]["name"]))
        return msgspec.json.encode(regular_answer(Request(method, path, body)))


async def run(count: int, every: int, tell: Callable[[Sample], None]) -> list[Sample]:
    """Let that many pods come, be bound and go; a sample each so many."""
    app = InProcess()
    samples: list[Sample] = []
    started_s = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        scheduler = app.scheduler
        tasks.create_task(scheduler.loop.run())
        tasks.create_task(scheduler.writes.recorder.run())
        confirming = tasks.create_task(scheduler.binding_cycles.confirmations.run())
        churn = _Churn(app)
        while churn.made < count:
            await churn.some(every)
            gc.collect()
            seconds = time.monotonic() - started_s
            samples.append(sample(os.getpid(), seconds=seconds, pods=churn.made, tasks=len(asyncio.all_tasks())))
            tell(samples[-1])
        scheduler.loop.stop()
        await scheduler.loop.wait_ended()
        confirming.cancel()
        await scheduler.writes.recorder.aclose(1.0)
    return samples


class _Churn:
    """As many pods as a cluster of this size has, always others."""

    def __init__(self, app: InProcess) -> None:
        self.made = 0
        self._app = app
        self._waiting = 0
        self._alive: deque[tuple[int, str]] = deque()
        """The number of each pod and the name of its node, the oldest first."""
        self._nodes = deque(range(pods.NODES))
        for number in self._nodes:
            app.send(NODES, "ADDED", pods.numbered_node(number))

    async def some(self, count: int) -> None:
        """That many more; returns when all that fit are bound, and all is at rest."""
        for _ in range(count):
            self._app.send(PODS, "ADDED", pods.numbered_pod(self.made))
            if pods.fits_nowhere(self.made):
                self._alive.append((self.made, ""))
            else:
                self._waiting += 1
            self.made += 1
            if self.made % _NODE_EVERY == 0:
                self._replace_node()
            await self._until_waiting(_WAITING_MAX)
        await self._until_waiting(0)
        # Events, and the conditions of pods that fit nowhere, follow.
        await asyncio.sleep(_SETTLE_S)

    async def _until_waiting(self, at_most: int) -> None:
        ends_s = time.monotonic() + _BOUND_S_MAX
        while self._waiting > at_most:
            assert time.monotonic() < ends_s, f"{self._waiting} pods are not bound"
            await asyncio.sleep(0)
            self._watch_bindings()

    def _watch_bindings(self) -> None:
        bindings = self._app.server.bound
        while bindings:
            name, node_name = bindings.popleft()
            number = int(name.removeprefix("pod-"))
            self._app.send(PODS, "MODIFIED", _on_node(number, node_name))
            self._alive.append((number, node_name))
            self._waiting -= 1
        while len(self._alive) > _ALIVE:
            self._app.send(PODS, "DELETED", _on_node(*self._alive.popleft()))

    def _replace_node(self) -> None:
        """The oldest node goes with its pods, and a new one comes."""
        oldest = self._nodes.popleft()
        name = f"node-{oldest}"
        for number, node_name in self._alive:
            if node_name == name:
                self._app.send(PODS, "DELETED", _on_node(number, name))
        self._alive = deque(entry for entry in self._alive if entry[1] != name)
        self._app.send(NODES, "DELETED", pods.numbered_node(oldest))
        self._nodes.append(self._nodes[-1] + 1)
        self._app.send(NODES, "ADDED", pods.numbered_node(self._nodes[-1]))


def _on_node(number: int, node_name: str) -> pods.Json:
    numbered_pod = pods.numbered_pod(number)
    numbered_pod["spec"]["nodeName"] = node_name
    return numbered_pod
