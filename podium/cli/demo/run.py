"""One run of the demo: start an API server, create pods, run the scheduler, and collect the result.

Everything goes over HTTP. The counts come from the API server, not from the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from typing import Any, Protocol

import anyio
import anyio.abc
import orjson

from podium.cli.demo.devices import ClaimWatcher, device_use
from podium.cli.demo.outcome import Outcome, assess, why_unschedulable
from podium.cli.demo.server import ServerError, server_process
from podium.client.credentials import load
from podium.client.informer_set import InformerSet
from podium.client.requests import LIST_BYTES_MAX
from podium.client.session import ApiSession
from podium.config import KubeSchedulerConfiguration, PodGroupRules
from podium.daemon.app import App
from podium.daemon.options import Options
from podium.framework.contract.plugin import Plugin
from podium.lib.clock import Clock
from podium.lib.system_clock import SystemClock
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, ObjectT, ResourceType
from podium.objects.wire import BrokenObject, ObjectDecoder
from podium.plugins import IN_TREE
from podium.sandbox.device_drivers import DeviceKind
from podium.sandbox.fill import gangs_and_pods, unplaceable_gang, unplaceable_pods, varied_pods
from podium.sandbox.fill_devices import device_claims_and_pods, no_such_device

_WRITERS = 16
_DEVICES = "/apis/resource.k8s.io/v1/namespaces/default"
PODS_PATH = "/api/v1/namespaces/default/pods"
_COLLECTIONS = {
    "Pod": PODS_PATH,
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "PodGroup": "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups",
    "ResourceClaim": f"{_DEVICES}/resourceclaims",
    "ResourceClaimTemplate": f"{_DEVICES}/resourceclaimtemplates",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of a run. The pods use the configuration's first profile.

    Attributes:
        gangs: the number of pod groups of three pods each, which needs `pod_groups`.
        pod_groups: how pods are scheduled in groups; None if each is scheduled alone.
    """

    nodes: int
    pods: int
    seed: int
    timeout_s: float
    config: KubeSchedulerConfiguration
    plugins: Mapping[str, type[Plugin]] = field(default_factory=lambda: IN_TREE)
    devices: tuple[DeviceKind, ...] = ()
    gangs: int = 0
    pod_groups: PodGroupRules | None = None


class Progress(Protocol):
    """The display of the run's progress."""

    def begin(self, stage: str, total: int) -> None:
        """Begin a stage with this number of steps."""

    def advance(self, step: int) -> None:
        """Report the number of the stage's finished steps."""

    def tell(self, text: str) -> None:
        """Show a line about an event."""


class StoppedEarlyError(Exception):
    """The scheduler received a signal before all pods were decided on."""


class TooSlowError(Exception):
    """The time was over before the cluster reached its goal; the message names the goal."""


async def run(plan: Plan, progress: Progress) -> Outcome:
    """Run the demo.

    Raises:
        StoppedEarlyError: SIGINT or SIGTERM arrived while scheduling.
        ServerError: the API server did not start, or ended.
        ExceptionGroup: holds the exceptions of `App.run`.
    """
    clock = SystemClock()
    progress.begin("starting an API server", 1)
    async with server_process(plan.nodes, plan.seed, plan.devices) as (kubeconfig, process):
        progress.advance(1)
        credentials = await load(str(kubeconfig), clock)
        async with ApiSession(credentials) as session:
            scheduler_name = plan.config.profiles[0].scheduler_name
            claims, pods = device_claims_and_pods(plan.devices, plan.nodes, scheduler_name)
            # Pods that fit nowhere, so that the demo also shows what is said about such pods.
            unplaceable = unplaceable_pods(scheduler_name)
            if plan.devices:
                claim, pod = no_such_device(plan.devices[0], scheduler_name)
                claims.append(claim)
                unplaceable.append(pod)
            await create(claims, "creating claims", session, progress)
            if plan.gangs:
                groups, members = gangs_and_pods(plan.gangs, scheduler_name)
                group, no_members = unplaceable_gang(scheduler_name)
                await create([*groups, group], "creating pod groups", session, progress)
                pods += members
                unplaceable += no_members
            pods += varied_pods(plan.pods, plan.seed, scheduler_name)
            await create([*pods, *unplaceable], "creating pods", session, progress)
            names = frozenset(pod["metadata"]["name"] for pod in unplaceable)
            watcher = Watcher(names, len(pods), progress, clock)
            app = App(
                without_limits(plan.config),
                Options(kubeconfig=str(kubeconfig), secure_port=0, plugins=plan.plugins, pod_groups=plan.pod_groups),
            )
            claim_watcher = ClaimWatcher(progress.tell) if plan.devices else None
            await _schedule(app, watcher, claim_watcher, session, process, plan.timeout_s)
            all_pods = await _list(PODS, session)
            outcome = assess(await _list(NODES, session), all_pods, names, watcher.duration_s)
            if not plan.devices:
                return outcome
            all_claims, slices = await _list(RESOURCE_CLAIMS, session), await _list(RESOURCE_SLICES, session)
            return replace(outcome, devices=device_use(all_claims, slices, all_pods))


async def _list(resource: ResourceType[ObjectT], session: ApiSession) -> Sequence[ObjectT]:
    body = await session.request("GET", resource.path, answer_bytes_max=LIST_BYTES_MAX)
    return ObjectDecoder(resource).page(body).items


def without_limits(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Remove rate limits, so that the demo shows podium's speed, and leader election: there is only one replica."""
    return replace(
        config,
        client_connection=replace(config.client_connection, qps=-1.0),
        leader_election=replace(config.leader_election, leader_elect=False),
    )


async def create(objects: list[dict[str, Any]], stage: str, session: ApiSession, progress: Progress) -> None:
    """Create the objects as one stage of the progress."""
    if not objects:
        return
    progress.begin(stage, len(objects))
    waiting = iter(objects)
    count_up = count(1)

    async def write() -> None:
        for manifest in waiting:
            await session.post(_COLLECTIONS[manifest["kind"]], orjson.dumps(manifest))
            # One iterator for all writers: each takes the next object when it is free.
            progress.advance(next(count_up))

    async with anyio.create_task_group() as tasks:
        for _ in range(_WRITERS):
            tasks.start_soon(write)


async def _schedule(
    app: App,
    watcher: Watcher,
    claims: ClaimWatcher | None,
    session: ApiSession,
    process: anyio.abc.Process,
    timeout_s: float,
) -> None:
    """Run the scheduler until every pod is bound or reported unschedulable, or the timeout expires."""
    informers = InformerSet(session, clock=watcher.clock, random=Random())
    # Asked of the API server, not of podium, so that the demo also checks what was really bound.
    informers.informer(PODS).add_handler(watcher)
    if claims is not None:
        informers.informer(RESOURCE_CLAIMS).add_handler(claims)

    async def keep_scheduling() -> None:
        await app.run(on_start=watcher.start)
        if not watcher.is_stopped:
            raise StoppedEarlyError

    async def watch_server() -> None:
        await process.wait()
        raise ServerError(f"the demo's API server ended with exit code {process.returncode}")

    async with anyio.create_task_group() as background:
        background.start_soon(informers.run)
        background.start_soon(watch_server)
        await informers.wait_synced()
        async with anyio.create_task_group() as scheduling:
            scheduling.start_soon(keep_scheduling)
            with anyio.move_on_after(timeout_s):
                await watcher.completion.wait()
            watcher.stop()
            app.stop()
        background.cancel_scope.cancel()


@dataclass(slots=True)
class Watcher:
    """Counts the pods that the API server reports bound or unschedulable, and measures the time.

    Args:
        unplaceable: the names of the pods that fit nowhere.
        pods: the number of all other pods.
    """

    unplaceable: frozenset[str]
    pods: int
    progress: Progress
    clock: Clock
    is_stopped: bool = False
    completion: anyio.Event = field(default_factory=anyio.Event)
    _bound: set[str] = field(default_factory=set)
    _decided: set[str] = field(default_factory=set)
    _started_s: float | None = None
    _ended_s: float | None = None

    @property
    def duration_s(self) -> float:
        """The time from the start to the last binding of a pod that can fit, or to the stop if a binding is missing."""
        if self._started_s is None or self._ended_s is None:
            return 0.0
        return self._ended_s - self._started_s

    def start(self) -> None:
        """Start the clock: the scheduler has seen the pods and begins."""
        self._started_s = self.clock.monotonic()
        self.progress.begin("binding pods", self.pods)

    def stop(self) -> None:
        """Stop the clock and let the scheduler end."""
        self.is_stopped = True
        if self._ended_s is None:
            self._ended_s = self.clock.monotonic()

    def on_add(self, new: Pod, /) -> None:
        """Do nothing: no pod is bound yet when the watch begins."""
        self._look_at(new)

    def on_update(self, old: Pod, new: Pod, /) -> None:
        """Count a pod that was bound or reported unschedulable."""
        del old
        self._look_at(new)

    def on_delete(self, old: Pod, /) -> None:
        """Do nothing: the demo deletes no pods."""

    def on_broken(self, broken_object: BrokenObject, /) -> None:
        """Do nothing: the demo creates no unreadable pods."""

    def _look_at(self, pod: Pod) -> None:
        name = pod.metadata.name
        if name in self.unplaceable:
            # Both count as decided: this pod must have been bound by mistake, and the outcome then says so.
            if pod.node_name or why_unschedulable(pod) is not None:
                self._decided.add(name)
        elif pod.node_name and name not in self._bound:
            self._bound.add(name)
            self.progress.advance(len(self._bound))
            if len(self._bound) == self.pods:
                self._ended_s = self.clock.monotonic()
        if len(self._bound) == self.pods and len(self._decided) == len(self.unplaceable):
            self.completion.set()
