"""A scheduling loop with everything it needs, from small plugins and an API server that is a function."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import anyio
import msgspec

from podium.binder import (
    ApiClient,
    Binder,
    Event,
    ExtenderPool,
    PodsInPreBind,
    PreemptionExecutor,
    RunningPreemptions,
    WaitingPods,
)
from podium.client.consistency import Consistency
from podium.client.dispatcher import Dispatcher
from podium.cluster import Cache
from podium.config import NEWEST, PodGroupRules, Profile
from podium.config.types import Plugin as Enabled
from podium.config.types import Plugins, PluginSet
from podium.daemon.backlog import Backlog
from podium.daemon.binding_cycles import BindingCycles
from podium.daemon.boundary import Boundary
from podium.daemon.conflicts import Conflicts
from podium.daemon.decisions import DecisionExecutor
from podium.daemon.failures import FailureHandler
from podium.daemon.handlers import BrokenObjects, NodeHandler, PodGroupHandler, ResourceHandler
from podium.daemon.loop import SchedulingLoop
from podium.daemon.observers import Observers, PreemptionMetrics, QueueMetrics
from podium.daemon.pod_groups import PodGroupAttempts
from podium.daemon.pod_handler import PodHandler
from podium.daemon.status_writes import StatusWrites
from podium.engine.flight_recorder import FlightRecorder
from podium.engine.flight_recorder.recorder import MEMORY_BYTES_MIN
from podium.engine.placing import Engine
from podium.framework.contract.bind import BindPlugin
from podium.framework.contract.cluster_event import EventRegistration
from podium.framework.contract.plugin import PreEnqueuePlugin
from podium.framework.contract.status import Status, unresolvable
from podium.framework.cycle.extenders import NO_EXTENDERS, Extenders
from podium.framework.profile.runtime import Framework
from podium.lib.clock import Clock
from podium.objects.core import Node, Pod
from podium.objects.coscheduling import CoschedulingPodGroup
from podium.objects.pod_groups import PodGroup
from podium.objects.resource_types import (
    COSCHEDULING_POD_GROUPS,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    PODS,
    EventResource,
    ResourceType,
)
from podium.queues import QueuedPodGroups, QueueProfile, QueueState, SchedulingQueue, build_hint_map
from podium.server.wakeup import WakeUp
from podium.telemetry import Metrics
from tests.unit.binder.builders import Request, Wire
from tests.unit.framework.profiles import Built, Sort, node_filter
from tests.virtual_time import LoopClock

PREEMPTION = "Preempts"


class Binds(Built, BindPlugin):
    """Binds through the API, as the default plugin does."""

    name = "DefaultBinder"

    async def bind(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        await self.handle.client.bind(pod, node_name)
        return None


class HoldsBack(Built, PreEnqueuePlugin):
    """Keeps pods back for which room is being made, as the preemption plugin does."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unresolvable("making room") if self.handle.preemptions.is_preempting(pod.uid) else None


class Handle:
    """The plugins' handle."""

    def __init__(self, clock: Clock, client: ApiClient, preemptions: RunningPreemptions, bench: LoopBench) -> None:
        self.clock = clock
        self.random = Random(1)
        self.client = client
        self.preemptions = preemptions
        self.waiting_pods = bench.waiting_pods
        self.pod_groups = bench.groups
        self.release = NEWEST
        self._bench = bench

    def lister(self, resource: ResourceType[Any]) -> Objects:
        if resource is PODS:
            return self._bench.listed_pods
        return Objects(self._bench.objects_of.get(resource, {}))

    def activate(self, pods: Iterable[Pod], after_s: float = 0.0) -> None:
        self._bench.queue.activate(pods, after_s)

    def shared(self, make: Callable[[Any], Any]) -> Any:
        if make not in self._bench.shared:
            self._bench.shared[make] = make(self)
        return self._bench.shared[make]


class Objects:
    """The objects of one kind, as they are now."""

    def __init__(self, objects: dict[str, Any]) -> None:
        self._objects = objects

    def get(self, key: str) -> Any:
        return self._objects.get(key)

    def list(self) -> Iterable[Any]:
        return self._objects.values()

    def in_namespace(self, namespace: str) -> Iterable[Any]:
        raise AssertionError("nobody asks for a namespace here")


class ListedPods(Objects):
    """The pods, for plugins that follow their changes."""

    def __init__(self, objects: dict[str, Any]) -> None:
        super().__init__(objects)
        self.handlers: list[Any] = []

    def add_handler(self, handler: Any) -> None:
        self.handlers.append(handler)


class Recorder:
    """Keeps Events, and tells of them when they come."""

    def __init__(self, story: list[str]) -> None:
        self.events: list[Event] = []
        self._story = story

    def record(self, event: Event) -> None:
        self.events.append(event)
        self._story.append(event.reason)

    @property
    def notes(self) -> list[tuple[str, str]]:
        return [(event.reason, event.note) for event in self.events]


class LoopBench:
    """Informer, cache, queue, loop. `story` tells in which order plugins and Events came.

    `put` and `delete` are what a watch brings; `wire` is where requests end.
    """

    def __init__(
        self,
        *classes: type[Any],
        clock: Clock | None = None,
        names: tuple[str, ...] = ("podium",),
        extenders: Extenders = NO_EXTENDERS,
        pool: Any = None,
        avoids_conflicts: bool = False,
        rules: PodGroupRules | None = None,
        sort: type[Any] = Sort,
    ) -> None:
        self.groups = None if rules is None else QueuedPodGroups(rules)
        self.objects: dict[str, PodGroup] = {}
        self.coscheduled: dict[str, CoschedulingPodGroup] = {}
        self.objects_of: dict[Any, dict[str, Any]] = {
            POD_GROUPS: self.objects,
            COSCHEDULING_POD_GROUPS: self.coscheduled,
            POD_DISRUPTION_BUDGETS: {},
        }
        self.shared: dict[Callable[..., Any], Any] = {}
        self.story: list[str] = []
        self.clock = clock or LoopClock()
        self.metrics = Metrics()
        self.observers = Observers(self.metrics, "")
        self.known: dict[str, Pod] = {}
        self.listed_pods = ListedPods(self.known)
        self.nodes: dict[str, Node] = {}
        self.wire = Wire()
        self.dispatcher = Dispatcher(self.wire, self.clock)
        self.client = ApiClient(self.dispatcher, self.clock)
        self.recorder = Recorder(self.story)
        self.cache = Cache(BrokenObjects(self.metrics), pod_groups=self.groups.states if self.groups else None)
        self.conflicts = Conflicts(self.cache, self.clock, self.metrics, self.client.read_failure)
        self.waiting_pods, self.pods_in_pre_bind = WaitingPods(self.clock), PodsInPreBind()
        self.preemptions = RunningPreemptions(self.known.get, PreemptionMetrics(self.metrics))
        every = (sort, HoldsBack, *classes, Binds)
        self.frameworks = {name: self._framework(name, every) for name in names}
        self.wake_up = WakeUp()
        self.consistency = Consistency(self.clock)
        self.consistency.on_consistent(self.wake_up.set)
        self.queue = self._queue()
        if self.groups is not None:
            self.groups.use_queue(self.queue)
        self.unbound: list[Pod] = []
        recorder: Any = self.recorder
        if avoids_conflicts:
            self.client.refuse_bindings_if(self.conflicts.is_too_late)
        ask = pool or ExtenderPool(extenders, self.client, self.metrics)
        self.backlog = Backlog(
            lambda: self.dispatcher.backlog() + ask.backlog(),
            self.conflicts.unconfirmed_count,
            avoids_conflicts=avoids_conflicts,
        )
        self.conflicts.on_confirmed(self.backlog.tell_progress)
        self.statuses = StatusWrites(self.client, self.clock)
        self.flight_recorder = FlightRecorder(MEMORY_BYTES_MIN)
        self.observers.add(self.flight_recorder)
        self.failures = FailureHandler(
            self.queue, self.known.get, recorder, self.metrics, self.clock, self.observers.attempts.observer
        )
        self.binding_cycles = self._binding_cycles(pool)
        self.pods = PodHandler(
            self.cache,
            self.queue,
            self.waiting_pods,
            recorder,
            self.frameworks.keys(),
            self.conflicts,
            self.clock,
            self.metrics,
            saw_unbound=self.unbound.append,
            binding_cycles=self.binding_cycles.under_way,
            pod_groups=self.groups,
        )
        self.group_handler = PodGroupHandler(EventResource.POD_GROUP, self.queue, self.clock, self.metrics)
        self.coscheduling_handler = ResourceHandler(
            EventResource.COSCHEDULING_POD_GROUP, self.queue, self.clock, self.metrics
        )
        self.node_handler = NodeHandler(self.cache, self.queue, self.clock, self.metrics)
        engine = Engine(self.cache, self.queue.nominator, 0, extenders, keeps_scores=True)
        self.loop = SchedulingLoop(
            self.frameworks,
            self.queue,
            self.cache,
            engine,
            self._executor(engine),
            self.failures,
            self.backlog,
            self.consistency,
            recorder,
            self.metrics,
            self.clock,
            ask=ask.answer,
            compute=Boundary().compute,
            wake_up=self.wake_up,
            groups=PodGroupAttempts(engine, self.frameworks, self.groups, Objects(self.objects))
            if self.groups
            else None,
        )

    def _framework(self, name: str, every: tuple[type[Any], ...]) -> Framework:
        profile = Profile(
            name, None, Plugins(multi_point=PluginSet(tuple(Enabled(plugin.name, 0) for plugin in every)))
        )
        handle: Any = Handle(self.clock, self.client, self.preemptions, self)
        return Framework(profile, {plugin.name: plugin for plugin in every}, handle, self.observers.plugins.observer)

    def _queue(self) -> SchedulingQueue:
        return SchedulingQueue(
            [
                QueueProfile(
                    name, framework.pre_enqueue, build_hint_map(framework.plugins.values(), has_extenders=True)
                )
                for name, framework in self.frameworks.items()
            ],
            next(iter(self.frameworks.values())).queue_sort,
            self.clock,
            self.known.get,
            wake=self.wake_up.set,
            observer=QueueMetrics(self.metrics),
            groups=None if self.groups is None else self.groups.rules,
        )

    def _binding_cycles(self, pool: Any) -> BindingCycles:
        binder = Binder(
            self.clock,
            statuses=self.client,
            events=self.recorder,
            observer=self.observers.plugins.observer,
            waiting_pods=self.waiting_pods,
            pods_in_pre_bind=self.pods_in_pre_bind,
            extenders=pool,
        )
        return BindingCycles(
            binder,
            self.cache,
            self.queue,
            self.failures,
            self.statuses,
            self.conflicts,
            self.backlog,
            self.metrics,
            self.observers.attempts.observer,
            is_bound=self.client.is_bound,
        )

    def _executor(self, engine: Engine) -> DecisionExecutor:
        preemption = PreemptionExecutor(
            self.client,
            self.recorder,
            self.preemptions,
            plugin=PREEMPTION,
            waiting_pods=self.waiting_pods,
            pods_in_pre_bind=self.pods_in_pre_bind,
            nominated_to=self.queue.nominated_pods_for_node,
            activate=lambda pod: self.queue.activate([pod]),
            is_gated=lambda pod: self.queue.state_of(pod) is QueueState.GATED,
            takes_room=lambda uid: self.cache.pod(uid) is not None,
        )
        return DecisionExecutor(
            engine,
            self.binding_cycles,
            preemption,
            self.failures,
            self.statuses,
            self.backlog,
            self.metrics,
            self.clock,
            self.observers.attempts.observer,
        )

    # ------------------------------------------------------------ the cluster

    def put(self, *items: Node | Pod | PodGroup | CoschedulingPodGroup) -> None:
        """Store these objects, as an API server does, and call the handlers."""
        for item in items:
            if isinstance(item, PodGroup):
                self._put(self.objects, item, self.group_handler)
            elif isinstance(item, CoschedulingPodGroup):
                self._put(self.coscheduled, item, self.coscheduling_handler)
            elif isinstance(item, Node):
                self._put(self.nodes, item, self.node_handler)
            else:
                self._put(self.known, item, *self.listed_pods.handlers, self.pods)

    @staticmethod
    def _put(objects: dict[str, Any], item: Any, *handlers: Any) -> None:
        former = objects.get(item.key)
        objects[item.key] = item
        for handler in handlers:
            if former is None:
                handler.on_add(item)
            elif former.metadata.uid == item.metadata.uid:
                handler.on_update(former, item)
            else:
                handler.on_delete(former)
                handler.on_add(item)

    def delete(self, pod: Pod) -> None:
        """The pod is gone."""
        stored_pod = self.known.pop(pod.key)
        for handler in (*self.listed_pods.handlers, self.pods):
            handler.on_delete(stored_pod)

    # ------------------------------------------------------------ running

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Schedule, until the block ends."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.loop.run)
            await settle()
            yield
            self.loop.stop()
            await self.loop.wait_ended()

    # ------------------------------------------------------------ questions

    def place(self, pod: Pod) -> QueueState:
        return self.queue.state_of(pod)

    def attempts(self, result: str) -> float:
        return self.metrics.value("scheduler_schedule_attempts_total", result=result, profile="podium")

    def requests_sent(self, method: str, ending: str = "") -> list[Request]:
        """The requests of that method to paths with that ending."""
        return [request for request in self.wire.requests if request.method == method and request.path.endswith(ending)]

    @property
    def bindings(self) -> list[tuple[str, str]]:
        """Pod and node of each binding that was asked for."""
        return [
            (request.path.split("/")[-2], request.body["target"]["name"])
            for request in self.requests_sent("POST", "/binding")
        ]

    @property
    def conditions(self) -> list[tuple[str, str]]:
        """Reason and message of each condition that was written, in order."""
        return [
            (condition["reason"], condition["message"])
            for request in self.requests_sent("PATCH", "/status")
            for condition in request.body["status"].get("conditions", ())
        ]


async def settle() -> None:
    """Let everything happen that needs no time to pass."""
    await anyio.sleep(0.001)


def with_changes(pod: Pod, *, terminating: bool = False, nominated_node: str | None = None, **metadata: Any) -> Pod:
    """The pod with other metadata or another nomination."""
    if terminating:
        metadata["deletion_timestamp"] = "2026-01-01T00:00:00Z"
    status = pod.status
    if nominated_node is not None:
        status = msgspec.structs.replace(status, nominated_node_name=nominated_node)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **metadata), status=status)


def fits(judge: Callable[[str], Any], *registrations: EventRegistration, name: str = "Fits") -> type[Any]:
    """A filter that answers by node name; without registrations, every event may help a pod that it rejected."""
    methods: Mapping[str, Any] = {"events_to_register": lambda self: registrations} if registrations else {}
    return node_filter(name, judge, **methods)
