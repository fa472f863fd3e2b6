"""`podium demo --autoscale`: pods come to a cluster without nodes, nodes are bought, the load goes, and nodes go.

Scheduler and provisioner run in this process, the API server in another. What is shown comes from the API server.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol

import anyio
import orjson

from podium.cli.demo.run import StoppedEarlyError, TooSlowError, unhindered
from podium.cli.demo.server import ServerError, server_process
from podium.client.credentials import load
from podium.client.informer_set import InformerSet
from podium.client.requests import MERGE_PATCH
from podium.client.session import ApiSession
from podium.config import KubeSchedulerConfiguration
from podium.daemon.app import App
from podium.daemon.options import Options as SchedulerOptions
from podium.lib.system_clock import SystemClock
from podium.objects.core import Node, Pod
from podium.objects.meta import ObjectMeta
from podium.objects.requests import node_allocatable, requests_on_node
from podium.objects.resource_names import CPU
from podium.objects.resource_types import NODES, PODS
from podium.provisioner.apis.labels import CAPACITY_TYPE, INSTANCE_CPU, INSTANCE_TYPE, ON_DEMAND
from podium.provisioner.apis.objects import (
    Disruption,
    LabelRequirement,
    NodeClaimSpec,
    NodeClaimTemplate,
    NodePool,
    NodePoolSpec,
)
from podium.provisioner.controller.app import Options, ProvisionerApp
from podium.provisioner.scheduling.taints import DISRUPTED
from podium.provisioner.state.manifests import completed_pool

_POOL: Final = "general"
_TYPES_CPU: Final = ("2", "4", "8", "16")
_WORKLOADS: Final = (("web", 60, 6, "500m", "1Gi"), ("api", 20, 4, "1", "4Gi"), ("batch", 6, 0, "4", "6Gi"))
"""Name, pods under load, pods after it, and what each requests."""

_DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
_LOOK_S: Final = 0.25
_SHOWN_S: Final = 3.0
"""How long the full cluster is shown before the load goes."""
_QUIET_S: Final = 8.0
"""After this long without a change nothing more will go: longer than a look, the second one, and a nomination."""


def counted(nodes: int) -> str:
    """A number of nodes in words."""
    return f"{nodes} node{'s' * (nodes != 1)}"


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node as it is shown.

    Attributes:
        cpu: What its pods request, as a fraction of what it has.
        cores: Those that pods can have.
    """

    name: str
    instance_type: str
    pods: int
    cpu: float
    cores: float
    is_leaving: bool


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """The cluster as it is shown."""

    nodes: tuple[NodeSeen, ...] = ()
    pods: int = 0
    bound: int = 0

    @property
    def cores(self) -> float:
        """Those of all nodes. Generic instance types have no prices that mean anything."""
        return math.fsum(node.cores for node in self.nodes)

    @property
    def text(self) -> str:
        """How many nodes, and how large they are together."""
        return f"{counted(len(self.nodes))}, {self.cores:,.0f} cores"


@dataclass(frozen=True, slots=True)
class Story:
    """How it went."""

    full: ClusterSeen
    end: ClusterSeen
    duration_s: float

    def summary(self) -> dict[str, int | float]:
        """The demo's JSON line."""
        return {
            "pods": self.full.pods,
            "nodes": len(self.full.nodes),
            "cores": round(self.full.cores, 1),
            "pods_after": self.end.pods,
            "nodes_after": len(self.end.nodes),
            "cores_after": round(self.end.cores, 1),
            "bound": self.end.bound,
            "duration_s": round(self.duration_s, 1),
        }

    @property
    def text(self) -> str:
        """The same, in a sentence."""
        return f"{self.full.pods} pods had {self.full.text}; {self.end.pods} pods have {self.end.text}."


class Screen(Protocol):
    """Shows what happens."""

    def tell(self, line: str) -> None:
        """Something has happened."""
        ...

    def show(self, seen: ClusterSeen) -> None:
        """The cluster is like this now."""
        ...


async def run_autoscale(config: KubeSchedulerConfiguration, seed: int, timeout_s: float, screen: Screen) -> Story:
    """Run the demo.

    Raises:
        StoppedEarlyError: SIGINT or SIGTERM arrived meanwhile.
        ServerError: the API server did not start, or ended.
        TooSlowError: it took longer than the timeout.
        ExceptionGroup: holds the exceptions of `App.run` and `ProvisionerApp.run`.
    """
    clock = SystemClock()
    started_s = clock.monotonic()
    screen.tell("Starting an API server without nodes")
    async with server_process(0, seed) as (kubeconfig, process):
        credentials = await load(str(kubeconfig), clock)
        async with ApiSession(credentials) as session:
            cluster = _Cluster(session, InformerSet(session, clock=clock, random=Random()))
            play = _Play(cluster, screen, config.profiles[0].scheduler_name)
            app = App(unhindered(config), SchedulerOptions(kubeconfig=str(kubeconfig), secure_port=0))
            provisioner = ProvisionerApp(_provisioner_options(str(kubeconfig)))
            is_over = False

            async def keep_running(run: Callable[[], Any]) -> None:
                await run()
                if not is_over:
                    raise StoppedEarlyError

            async def watch_server() -> None:
                await process.wait()
                raise ServerError(f"the demo's API server ended with exit code {process.returncode}")

            async with anyio.create_task_group() as background:
                background.start_soon(cluster.informers.run)
                background.start_soon(watch_server)
                async with anyio.create_task_group() as running:
                    running.start_soon(keep_running, app.run)
                    running.start_soon(keep_running, provisioner.run)
                    with anyio.move_on_after(timeout_s) as limit:
                        await play.play()
                    is_over = True
                    app.stop()
                    provisioner.stop()
                background.cancel_scope.cancel()
            if limit.cancelled_caught or play.full is None:
                raise TooSlowError(f"after {timeout_s:g} s still waiting: {play.waits_for}")
            return Story(play.full, cluster.seen(), clock.monotonic() - started_s)


def _provisioner_options(kubeconfig: str) -> Options:
    requirements = (
        LabelRequirement(key=CAPACITY_TYPE, operator="In", values=(ON_DEMAND,)),
        LabelRequirement(key=INSTANCE_CPU, operator="In", values=_TYPES_CPU),
    )
    pool = NodePool(
        metadata=ObjectMeta(name=_POOL),
        spec=NodePoolSpec(
            template=NodeClaimTemplate(spec=NodeClaimSpec(requirements=requirements)),
            disruption=Disruption(budgets=[{"nodes": "100%"}]),
        ),
    )
    return Options(
        kubeconfig=kubeconfig,
        provider="sandbox",
        node_pools=(completed_pool(pool),),
        period_s=1.0,
        validated_after_s=2.0,
        nominated_s_min=2.0,
        batch_max_s=2.0,
    )


class _Cluster:
    """What the API server says."""

    def __init__(self, session: ApiSession, informers: InformerSet) -> None:
        self.session = session
        self.informers = informers
        self._nodes = informers.informer(NODES)
        self._pods = informers.informer(PODS)

    def seen(self) -> ClusterSeen:
        """The cluster now."""
        pods: dict[str, list[Pod]] = {}
        for pod in self._pods.list():
            pods.setdefault(pod.node_name, []).append(pod)
        nodes = sorted(self._nodes.list(), key=lambda each: each.name)
        shown = tuple(self._node(each, pods.get(each.name, [])) for each in nodes)
        return ClusterSeen(shown, len(self._pods), len(self._pods) - len(pods.get("", ())))

    def _node(self, node: Node, pods: list[Pod]) -> NodeSeen:
        allocatable, _ = node_allocatable(node)
        used = sum(requests_on_node(pod).get(CPU, 0) for pod in pods)
        labels = node.metadata.labels
        return NodeSeen(
            node.name,
            labels.get(INSTANCE_TYPE, ""),
            len(pods),
            used / allocatable[CPU],
            allocatable[CPU] / 1000,
            any(each.key == DISRUPTED.key for each in node.spec.taints),
        )


class _Play:
    """The story, step by step."""

    def __init__(self, cluster: _Cluster, screen: Screen, scheduler_name: str) -> None:
        self._cluster = cluster
        self._screen = screen
        self._scheduler_name = scheduler_name
        self._known: dict[str, NodeSeen] = {}
        self.full: ClusterSeen | None = None
        self.waits_for = ""

    async def play(self) -> None:
        """From the first pod to the last node that goes."""
        await self._cluster.informers.wait_synced()
        wanted = sum(count for _, count, *_ in _WORKLOADS)
        for name, count, _, cpu, memory in _WORKLOADS:
            body = _deployment(name, count, cpu, memory, self._scheduler_name)
            await self._cluster.session.post(_DEPLOYMENTS, orjson.dumps(body))
        self._screen.tell(f"Load comes: {wanted} pods in {len(_WORKLOADS)} Deployments, and no node")
        await self._until("pods and nodes", lambda seen: seen.pods == wanted and bool(seen.nodes))
        # From now on pods may move to cheaper nodes: while they do, the old ones and the new ones would both count.
        await self._until("all pods to be bound", lambda seen: seen.pods == seen.bound == wanted)
        self.full = self._cluster.seen()
        self._screen.tell(f"All pods are bound: {self.full.text}")
        await self._quiet(_SHOWN_S)
        left = sum(count for _, _, count, *_ in _WORKLOADS)
        for name, _, count, *_ in _WORKLOADS:
            change = orjson.dumps({"spec": {"replicas": count}})
            path = f"{_DEPLOYMENTS}/{name}"
            await self._cluster.session.request("PATCH", path, change, content_type=MERGE_PATCH)
        self._screen.tell(f"Load goes: {left} pods are left")
        await self._until("pods to go", lambda seen: seen.pods == left)
        await self._until("nodes to go", lambda seen: seen.cores < self._full_cores)
        while not await self._quiet(_QUIET_S):
            pass
        seen = self._cluster.seen()
        self._screen.tell(f"Nothing more can go: {seen.text}")

    @property
    def _full_cores(self) -> float:
        return self.full.cores if self.full is not None else 0.0

    async def _until(self, what: str, is_reached: Callable[[ClusterSeen], bool]) -> None:
        self.waits_for = what
        while not is_reached(self._look()):  # noqa: ASYNC110 - it also draws
            await anyio.sleep(_LOOK_S)

    async def _quiet(self, seconds: float) -> bool:
        """Look for that long; returns whether nothing has changed, and nothing is under way."""
        self.waits_for = "the last nodes to go"
        before = self._look()
        for _ in range(round(seconds / _LOOK_S)):
            await anyio.sleep(_LOOK_S)
            now = self._look()
            is_moving = now.bound < now.pods or any(each.is_leaving for each in now.nodes)
            if is_moving or [each.name for each in now.nodes] != [each.name for each in before.nodes]:
                return False
        return True

    def _look(self) -> ClusterSeen:
        """Show the cluster, and tell which nodes have come and gone."""
        seen = self._cluster.seen()
        self._screen.show(seen)
        now = {each.name: each for each in seen.nodes}
        come = [each for name, each in now.items() if name not in self._known]
        gone = [each for name, each in self._known.items() if name not in now]
        going = [
            each
            for name, each in now.items()
            if each.is_leaving and name in self._known and not self._known[name].is_leaving
        ]
        for what, nodes in (("Bought", come), ("Draining", going), ("Removed", gone)):
            if nodes:
                self._screen.tell(f"{what} {_text(nodes)}")
        self._known = now
        return seen


def _text(nodes: list[NodeSeen]) -> str:
    types = Counter(each.instance_type.removesuffix("-amd64-linux") for each in nodes)
    listed = ", ".join(f"{count} {name}" for name, count in sorted(types.items()))
    return f"{counted(len(nodes))} ({listed})"


def _deployment(name: str, count: int, cpu: str, memory: str, scheduler_name: str) -> Mapping[str, Any]:
    labels = {"app": name}
    container = {"name": name, "image": name, "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    pod = {"schedulerName": scheduler_name, "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
