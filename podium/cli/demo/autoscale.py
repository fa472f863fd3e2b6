"""`podium demo --autoscale`: pods arrive in a cluster without nodes, nodes are bought, the load goes, and nodes go.

Scheduler and provisioner run in this process, the API server in another. The screen shows the API server's objects.
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

from podium.cli.demo.run import StoppedEarlyError, TooSlowError, without_limits
from podium.cli.demo.server import ServerError, server_process
from podium.client.credentials import load
from podium.client.informer_set import InformerSet
from podium.client.requests import MERGE_PATCH
from podium.client.session import ApiSession
from podium.config import KubeSchedulerConfiguration
from podium.daemon.app import App
from podium.daemon.options import Options as SchedulerOptions
from podium.lib.plurals import count_of
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
"""Name, pods under load, pods after it, and the requests of a pod."""

_DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
_LOOK_S: Final = 0.25
_SHOWN_S: Final = 3.0
"""The time for which the full cluster is shown before the load goes."""
_QUIET_S: Final = 8.0
"""After this time without a change no more nodes will go: it exceeds two decisions and a nomination."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node on the screen.

    Attributes:
        cpu: its pods' requests as a fraction of its allocatable CPU.
        cores: its allocatable CPU.
    """

    name: str
    instance_type: str
    pods: int
    cpu: float
    cores: float
    is_leaving: bool


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster on the screen."""

    nodes: tuple[NodeView, ...] = ()
    pods: int = 0
    bound_count: int = 0

    @property
    def cores(self) -> float:
        """The allocatable cores of all nodes. Generic instance types have no meaningful prices."""
        return math.fsum(node.cores for node in self.nodes)

    @property
    def text(self) -> str:
        """The number of nodes and their cores."""
        return f"{count_of(len(self.nodes), 'node')}, {self.cores:,.0f} cores"


@dataclass(frozen=True, slots=True)
class Story:
    """The result of the demo."""

    full: ClusterView
    end: ClusterView
    duration_s: float

    def summary(self) -> dict[str, int | float]:
        """Return the demo's JSON line."""
        return {
            "pods": self.full.pods,
            "nodes": len(self.full.nodes),
            "cores": round(self.full.cores, 1),
            "pods_after": self.end.pods,
            "nodes_after": len(self.end.nodes),
            "cores_after": round(self.end.cores, 1),
            "bound": self.end.bound_count,
            "duration_s": round(self.duration_s, 1),
        }

    @property
    def text(self) -> str:
        """The result in a sentence."""
        return f"{self.full.pods} pods had {self.full.text}; {self.end.pods} pods have {self.end.text}."


class Screen(Protocol):
    """Shows the progress of the demo."""

    def tell(self, line: str) -> None:
        """Show a line about an event."""
        ...

    def show(self, cluster: ClusterView) -> None:
        """Show the cluster as it is now."""
        ...


async def run_autoscale(config: KubeSchedulerConfiguration, seed: int, timeout_s: float, screen: Screen) -> Story:
    """Run the demo.

    Raises:
        StoppedEarlyError: SIGINT or SIGTERM arrived meanwhile.
        ServerError: the API server did not start, or ended.
        TooSlowError: the demo took longer than the timeout.
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
            app = App(without_limits(config), SchedulerOptions(kubeconfig=str(kubeconfig), secure_port=0))
            provisioner = ProvisionerApp(_provisioner_options(str(kubeconfig)))
            is_over = False

            async def keep_running(run: Callable[[], Any]) -> None:
                # Either may be stopped by a signal, which the demo must not take for its own end.
                await run()
                if not is_over:
                    raise StoppedEarlyError

            async def watch_server() -> None:
                await process.wait()
                raise ServerError(f"the demo's API server ended with exit code {process.returncode}")

            async with anyio.create_task_group() as background:
                background.start_soon(cluster.informers.run)
                background.start_soon(watch_server)
                # Two groups: the server and the watches outlive scheduler and provisioner, whose last writes they show.
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
            return Story(play.full, cluster.snapshot(), clock.monotonic() - started_s)


def _provisioner_options(kubeconfig: str) -> Options:
    requirements = (
        # On demand only: a spot node could be replaced at any time, which would be hard to follow on the screen.
        LabelRequirement(key=CAPACITY_TYPE, operator="In", values=(ON_DEMAND,)),
        LabelRequirement(key=INSTANCE_CPU, operator="In", values=_TYPES_CPU),
    )
    pool = NodePool(
        metadata=ObjectMeta(name=_POOL),
        spec=NodePoolSpec(
            template=NodeClaimTemplate(spec=NodeClaimSpec(requirements=requirements)),
            # Karpenter's default of 10% would let a small cluster shrink one node at a time.
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
    """The cluster's objects in the API server."""

    def __init__(self, session: ApiSession, informers: InformerSet) -> None:
        self.session = session
        self.informers = informers
        self._nodes = informers.informer(NODES)
        self._pods = informers.informer(PODS)

    def snapshot(self) -> ClusterView:
        """Return the cluster as it is now."""
        pods: dict[str, list[Pod]] = {}
        for pod in self._pods.list():
            pods.setdefault(pod.node_name, []).append(pod)
        nodes = sorted(self._nodes.list(), key=lambda node: node.name)
        nodes_seen = tuple(self._node(node, pods.get(node.name, [])) for node in nodes)
        return ClusterView(nodes_seen, len(self._pods), len(self._pods) - len(pods.get("", ())))

    def _node(self, node: Node, pods: list[Pod]) -> NodeView:
        allocatable, _ = node_allocatable(node)
        cpu_requests = sum(requests_on_node(pod).get(CPU, 0) for pod in pods)
        labels = node.metadata.labels
        return NodeView(
            node.name,
            labels.get(INSTANCE_TYPE, ""),
            len(pods),
            cpu_requests / allocatable[CPU],
            allocatable[CPU] / 1000,
            any(taint.key == DISRUPTED.key for taint in node.spec.taints),
        )


class _Play:
    """Plays the demo step by step."""

    def __init__(self, cluster: _Cluster, screen: Screen, scheduler_name: str) -> None:
        self._cluster = cluster
        self._screen = screen
        self._scheduler_name = scheduler_name
        self._known: dict[str, NodeView] = {}
        self.full: ClusterView | None = None
        self.waits_for = ""

    async def play(self) -> None:
        """Play from the first pod to the last node that goes."""
        await self._cluster.informers.wait_synced()
        pod_count = sum(count for _, count, *_ in _WORKLOADS)
        for name, count, _, cpu, memory in _WORKLOADS:
            body = _deployment(name, count, cpu, memory, self._scheduler_name)
            await self._cluster.session.post(_DEPLOYMENTS, orjson.dumps(body))
        self._screen.tell(f"Load comes: {pod_count} pods in {len(_WORKLOADS)} Deployments, and no node")
        await self._wait_for("pods and nodes", lambda cluster: cluster.pods == pod_count and bool(cluster.nodes))
        # Later pods may move to cheaper nodes, and old and new nodes would both count.
        await self._wait_for("all pods to be bound", lambda cluster: cluster.pods == cluster.bound_count == pod_count)
        self.full = self._cluster.snapshot()
        self._screen.tell(f"All pods are bound: {self.full.text}")
        await self._quiet(_SHOWN_S)
        remaining_count = sum(count for _, _, count, *_ in _WORKLOADS)
        for name, _, count, *_ in _WORKLOADS:
            change = orjson.dumps({"spec": {"replicas": count}})
            path = f"{_DEPLOYMENTS}/{name}"
            await self._cluster.session.request("PATCH", path, change, content_type=MERGE_PATCH)
        self._screen.tell(f"Load goes: {remaining_count} pods are left")
        await self._wait_for("pods to go", lambda cluster: cluster.pods == remaining_count)
        # Pods go at once, nodes only after two decisions; without this wait the quiet would begin too early.
        await self._wait_for("nodes to go", lambda cluster: cluster.cores < self._full_cores)
        while not await self._quiet(_QUIET_S):
            pass
        end = self._cluster.snapshot()
        self._screen.tell(f"Nothing more can go: {end.text}")

    @property
    def _full_cores(self) -> float:
        return self.full.cores if self.full is not None else 0.0

    async def _wait_for(self, goal: str, is_reached: Callable[[ClusterView], bool]) -> None:
        self.waits_for = goal
        while not is_reached(self._look()):  # noqa: ASYNC110 - it also draws
            await anyio.sleep(_LOOK_S)

    async def _quiet(self, seconds: float) -> bool:
        """Watch for this time; return whether no node has changed, and no pod or node is moving."""
        self.waits_for = "the last nodes to go"
        start = self._look()
        for _ in range(round(seconds / _LOOK_S)):
            await anyio.sleep(_LOOK_S)
            current = self._look()
            is_moving = current.bound_count < current.pods or any(node.is_leaving for node in current.nodes)
            if is_moving or [node.name for node in current.nodes] != [node.name for node in start.nodes]:
                return False
        return True

    def _look(self) -> ClusterView:
        """Show the cluster, and say which nodes have come and gone."""
        cluster = self._cluster.snapshot()
        self._screen.show(cluster)
        nodes_by_name = {node.name: node for node in cluster.nodes}
        new_nodes = [node for name, node in nodes_by_name.items() if name not in self._known]
        removed_nodes = [node for name, node in self._known.items() if name not in nodes_by_name]
        going = [
            node
            for name, node in nodes_by_name.items()
            if node.is_leaving and name in self._known and not self._known[name].is_leaving
        ]
        for action, nodes in (("Bought", new_nodes), ("Draining", going), ("Removed", removed_nodes)):
            if nodes:
                self._screen.tell(f"{action} {_text(nodes)}")
        self._known = nodes_by_name
        return cluster


def _text(nodes: list[NodeView]) -> str:
    types = Counter(node.instance_type.removesuffix("-amd64-linux") for node in nodes)
    type_counts = ", ".join(f"{count} {name}" for name, count in sorted(types.items()))
    return f"{count_of(len(nodes), 'node')} ({type_counts})"


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
