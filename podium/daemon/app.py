"""Wires, starts and stops the scheduler: the one module that knows every component.

Start: credentials → endpoints → informers → (all synced) → (leading, if leader election is on) → scheduling loop.
Stop, on SIGTERM or SIGINT: no new attempts → binding cycles under way end → Events are written → the lease is
released → connections close. One root task group holds all tasks. Losing the lease ends everything at once.

Source: kubernetes cmd/kube-scheduler/app/server.go, v1.36.2.
Differs: a new leader waits for a short while until all its watches are connected: it has to see what the previous
leader did last.
"""

from __future__ import annotations

import os
import platform
import signal
import socket
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, field
from random import Random
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
from uuid import UUID

import anyio
import anyio.abc

import podium
from podium.binder import (
    ApiClient,
    Binder,
    EventRecorder,
    ExtenderPool,
    PodsInPreBind,
    PreemptionExecutor,
    PreemptionLoops,
    PreemptionsUnderWay,
    WaitingPods,
)
from podium.binder.events.event import leader_election
from podium.client.credentials import Credentials, load
from podium.client.dispatcher import IN_FLIGHT_MAX, Dispatcher
from podium.client.informer import Informer
from podium.client.informer_set import InformerSet
from podium.client.outage import Outage
from podium.client.rate_limit import TokenBucket
from podium.client.session import ApiSession
from podium.cluster import Cache
from podium.config import KubeSchedulerConfiguration
from podium.config import effective as effective_configuration
from podium.daemon.cache_dump import CacheDump
from podium.daemon.conflicts import Conflicts
from podium.daemon.extenders import kept_whole, without_secrets
from podium.daemon.failures import FailureHandler
from podium.daemon.handle import PluginHandle
from podium.daemon.handlers import RESOURCE_EVENTS, BrokenObjects, NodeHandler, PodHandler, ResourceHandler
from podium.daemon.loop import LoopDependencies, SchedulingLoop
from podium.daemon.observers import PluginMetrics, QueueMetrics, RequestMetrics, read_statistics
from podium.daemon.queue_page import queue_page
from podium.daemon.status_writes import StatusWrites
from podium.daemon.stray_pods import StrayPods
from podium.daemon.verdict_log import explainer_for
from podium.daemon.watchdog import Watchdog
from podium.engine.placing import Engine
from podium.framework.contract.interface import Plugin
from podium.framework.cycle.extenders import Extenders
from podium.framework.cycle.scoring import NearBest, choose
from podium.framework.profile.runtime import Framework
from podium.lib import garbage
from podium.lib.clock import Clock
from podium.lib.error_words import Worded, words_of
from podium.lib.log import get_logger
from podium.lib.system_clock import SuspendAwareClock, SystemClock
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS
from podium.plugins import IN_TREE
from podium.plugins.default_preemption import DefaultPreemption
from podium.queues import Nominator, PodBackoff, QueueProfile, QueueState, QueueTimes, SchedulingQueue, build_hint_map
from podium.service.election import (
    Elector,
    LeadershipLost,
    LeaseLock,
    Term,
    Timings,
    ending_if_stopped_for_too_long,
    request_deadline_s,
)
from podium.service.serving import (
    Access,
    AccessOptions,
    Check,
    Health,
    ProbeStandIn,
    Server,
    ServingTls,
    TlsLimits,
    open_access,
    ping,
    serve,
    serving_tls,
)
from podium.service.stall_watch import StallWatch
from podium.service.wakeup import WakeUp
from podium.telemetry import Metrics, flush_log, verbosity

log = get_logger("daemon")

_NEAR_BEST_MARGIN = 10
_DRAIN_S_MAX = 6.0
_EVENTS_S_MAX = 2.0
_CONNECTED_S_MAX = 10.0
_LEASE_CONNECTIONS_MAX = 2
_CONNECTIONS_FOR_READS = 16


class PartFailed(Worded):
    """A component of the scheduler failed because of a bug; the log names the component."""


@dataclass(frozen=True, slots=True)
class Options:
    """Settings from the command line that the configuration file lacks.

    A secure port of 0 disables the endpoints; without certificate files, a self-signed certificate is created.
    """

    kubeconfig: str | None = None
    master: str | None = None
    bind_address: str = "0.0.0.0"
    secure_port: int = 10259
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    tls_limits: TlsLimits = field(default_factory=TlsLimits)
    doors: AccessOptions = field(default_factory=AccessOptions)
    pod_max_in_unschedulable_s: float = 300.0
    preempts_pods_of_others: bool = False
    avoids_conflicts: bool = False
    plugins: Mapping[str, type[Plugin]] = field(default_factory=lambda: dict(IN_TREE))


class App:
    """One scheduler: built from a configuration, runs until stopped.

    Args:
        clock, random: used by every component; a simulation passes its own.
        is_watched: whether a watchdog thread may end the process; only for a process that does nothing else.
    """

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        options: Options,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
        is_watched: bool = False,
    ) -> None:
        self._config = config
        self._options = options
        self._clock = clock or SystemClock()
        self._random = random or Random()
        self._names = frozenset(profile.scheduler_name for profile in config.profiles)
        self._election_clock = clock or SuspendAwareClock()
        self._term = self._new_term() if config.leader_election.leader_elect else None
        self._stop = anyio.Event()
        self._is_stopping = False
        self._is_synced = False
        self._loop: SchedulingLoop | None = None
        self.metrics = Metrics()
        self._strays = StrayPods(self._names, self._clock, self.metrics)
        self._watchdog = Watchdog(self.metrics) if is_watched else None

    def stop(self) -> None:
        """Start the shutdown; `run` returns when it is complete."""
        self._is_stopping = True
        self._stop.set()

    async def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Schedule pods until `stop`.

        Args:
            started: called when the caches are synced and the first pod can be scheduled.

        Raises:
            ConnectionConfigError: no API server is configured, or no credentials for it.
            ConfigError, PluginError: a profile cannot be built.
            ServingError, CertificateError: the port is in use, or a certificate cannot be used.
            LeadershipLost: another replica may lead by now; everything else has been cancelled.
            ExceptionGroup: of `PartFailed`; everything else has been cancelled.
        """
        log.info("Starting podium", version=podium.__version__, python=platform.python_version())
        garbage.settle()
        kubeconfig = self._options.kubeconfig or self._config.client_connection.kubeconfig or None
        credentials = await load(kubeconfig, self._clock, master=self._options.master)
        async with AsyncExitStack() as stack:
            if self._watchdog is not None:
                stack.enter_context(self._watchdog.watching())
            requests = RequestMetrics(
                self.metrics, urllib.parse.urlsplit(credentials.base_url).netloc.rpartition("@")[2]
            )
            may_write = None if self._term is None else self._term.may_write
            outage = Outage(credentials.base_url)
            session = await stack.enter_async_context(
                ApiSession(
                    credentials,
                    connections_max=_in_flight_max() + _CONNECTIONS_FOR_READS,
                    observer=requests,
                    may_write=may_write,
                    outage=outage,
                )
            )
            informers = InformerSet(
                session,
                clock=self._clock,
                random=self._random,
                on_handler_error=lambda resource, _: self.metrics.count_unexpected_error("handler", resource),
                keep=kept_whole(self._config.extenders),
            )
            parts, wake_up = self._wire(session, informers, requests)
            informers.consistency.when_good(wake_up.set)
            await stack.enter_async_context(parts.extender_pool)
            self._loop = SchedulingLoop(parts, wake_up)
            doors = await self._open(stack, credentials, parts.queue)
            elector = None
            if self._term is not None:
                stack.enter_context(ending_if_stopped_for_too_long(self._term))
                # A session of its own, so that a burst of bindings cannot delay a renewal of the lease.
                own = ApiSession(credentials, connections_max=_LEASE_CONNECTIONS_MAX, observer=requests, outage=outage)
                elector = self._elector(self._term, await stack.enter_async_context(own), parts.recorder)
            await self._run_tasks(credentials, informers, parts, self._loop, elector, doors, started)
        log.info("Stopped")

    # ------------------------------------------------------------ wiring

    def _new_term(self) -> Term:
        election = self._config.leader_election
        identity = f"{socket.gethostname()}_{UUID(int=self._random.getrandbits(128), version=4)}"
        timings = Timings(election.lease_duration_s, election.renew_deadline_s, election.retry_period_s)
        return Term(identity, timings, self._election_clock)

    def _elector(self, term: Term, session: ApiSession, recorder: EventRecorder) -> Elector:
        election = self._config.leader_election
        deadline_s = request_deadline_s(election.renew_deadline_s)
        lock = LeaseLock(session, election.resource_namespace, election.resource_name, deadline_s)
        controller = self._config.profiles[0].scheduler_name

        def tell(note: str) -> None:
            recorder.record(leader_election(controller, lock.reference, note))

        return Elector(term, lock, self._election_clock, self._random, self.metrics, tell)

    def _wire(
        self, session: ApiSession, informers: InformerSet, requests: RequestMetrics
    ) -> tuple[LoopDependencies, WakeUp]:
        config, clock, metrics = self._config, self._clock, self.metrics
        pods = informers.informer(PODS)
        connection = config.client_connection
        dispatcher = Dispatcher(
            session,
            clock,
            in_flight_max=_in_flight_max(),
            limiter=TokenBucket.for_client(connection.qps, connection.burst, clock),
            event_limiter=TokenBucket.for_client(connection.qps, connection.burst, clock),
            observer=requests,
        )
        client = ApiClient(dispatcher, clock)
        term = self._term
        recorder = EventRecorder(
            dispatcher,
            clock,
            hostname=socket.gethostname(),
            is_muted=lambda: term is not None and not term.is_holding,
        )
        cache = Cache(BrokenObjects(metrics))
        waiting_pods, pods_in_pre_bind = WaitingPods(clock), PodsInPreBind()
        binding_cycles: dict[str, str] = {}
        preemptions = PreemptionsUnderWay(
            pods.get,
            metrics,
            spares=self._spares,
            loops=PreemptionLoops(clock, cache.pods_on, recorder.record, metrics),
        )
        nominator = Nominator(pods.get)
        handle = PluginHandle(
            clock, self._random, client, preemptions, waiting_pods, nominator, recorder, cache, informers
        )
        plugin_metrics = PluginMetrics(metrics)
        frameworks = {
            profile.scheduler_name: Framework(profile, self._options.plugins, handle, plugin_metrics)
            for profile in config.profiles
        }
        extenders = Extenders(config.extenders, self._random)
        extender_pool = ExtenderPool(
            extenders, client, metrics, may_bind=(lambda: True) if term is None else term.may_write
        )
        wake_up = WakeUp()
        queue = self._queue(frameworks, pods, nominator, wake_up)
        conflicts = Conflicts(cache, clock, metrics, client.read_failure)
        if self._options.avoids_conflicts:
            client.bind_unless(conflicts.is_too_late)
        self._handle_events(informers, cache, queue, waiting_pods, binding_cycles, recorder, conflicts, frameworks)
        for resource in informers.resources:
            if (events := RESOURCE_EVENTS.get(resource)) is not None:
                informers.informer(resource).add_handler(ResourceHandler(events, queue, clock, metrics))
        metrics.read_pending_pods(lambda: queue.statistics().pending_pods)
        metrics.read_cache_size(cache.statistics)
        read_statistics(metrics, recorder, dispatcher, informers)
        parts = LoopDependencies(
            frameworks=frameworks,
            cache=cache,
            queue=queue,
            binder=Binder(
                clock,
                statuses=client,
                events=recorder,
                observer=plugin_metrics,
                waiting_pods=waiting_pods,
                pods_in_pre_bind=pods_in_pre_bind,
                extenders=extender_pool if extenders else None,
            ),
            preemption=PreemptionExecutor(
                client,
                recorder,
                preemptions,
                plugin=DefaultPreemption.name,
                waiting_pods=waiting_pods,
                pods_in_pre_bind=pods_in_pre_bind,
                nominated_to=queue.nominated_pods_for_node,
                activate=lambda pod: queue.activate([pod]),
                is_gated=lambda pod: queue.state_of(pod) is QueueState.GATED,
                takes_room=lambda uid: cache.pod(uid) is not None,
            ),
            engine=Engine(
                cache,
                queue.nominator,
                config.percentage_of_nodes_to_score,
                extenders,
                NearBest(self._random, _NEAR_BEST_MARGIN) if self._options.avoids_conflicts else choose,
                explainer_for(verbosity()),
            ),
            dispatcher=dispatcher,
            recorder=recorder,
            statuses=StatusWrites(client, clock),
            is_bound=client.is_bound,
            failures=FailureHandler(queue, pods.get, recorder, metrics, clock),
            conflicts=conflicts,
            metrics=metrics,
            clock=clock,
            extender_pool=extender_pool,
            binding_cycles=binding_cycles,
            consistency=informers.consistency,
            avoids_conflicts=self._options.avoids_conflicts,
        )
        return parts, wake_up

    def _spares(self, victim: Pod) -> bool:
        """Whether preemption must leave the pod alone: another scheduler's pod, unless the configuration allows it."""
        return not self._options.preempts_pods_of_others and victim.spec.scheduler_name not in self._names

    def _queue(
        self, frameworks: Mapping[str, Framework], pods: Informer[Pod], nominator: Nominator, wake_up: WakeUp
    ) -> SchedulingQueue:
        config = self._config
        profiles = [
            QueueProfile(
                name,
                framework.pre_enqueue,
                build_hint_map(framework.plugins.values(), has_extenders=bool(config.extenders), may_close_nodes=True),
            )
            for name, framework in frameworks.items()
        ]
        first = next(iter(frameworks.values()))
        return SchedulingQueue(
            profiles,
            first.queue_sort,
            self._clock,
            pods.get,
            wake=wake_up.set,
            times=QueueTimes(
                PodBackoff(config.pod_initial_backoff_s, config.pod_max_backoff_s),
                self._options.pod_max_in_unschedulable_s,
            ),
            observer=QueueMetrics(self.metrics),
            nominator=nominator,
        )

    def _handle_events(
        self,
        informers: InformerSet,
        cache: Cache,
        queue: SchedulingQueue,
        waiting_pods: WaitingPods,
        binding_cycles: Mapping[str, str],
        recorder: EventRecorder,
        conflicts: Conflicts,
        frameworks: Mapping[str, Framework],
    ) -> None:
        clock, metrics = self._clock, self.metrics
        informers.informer(NODES).add_handler(NodeHandler(cache, queue, clock, metrics))
        informers.informer(PODS).add_handler(
            PodHandler(
                cache,
                queue,
                waiting_pods,
                recorder,
                frameworks.keys(),
                conflicts,
                clock,
                metrics,
                strays=self._strays,
                saw_unbound=informers.saw_unbound,
                binding_cycles=binding_cycles,
            )
        )

    async def _open(self, stack: AsyncExitStack, credentials: Credentials, queue: SchedulingQueue) -> Access | None:
        """Serve the endpoints until the stack is closed; None if they are disabled."""
        options = self._options
        if options.secure_port == 0:
            return None
        tls = serving_tls(
            options.tls_cert_file,
            options.tls_private_key_file,
            bind_address=options.bind_address,
            limits=options.tls_limits,
        )
        doors = await stack.enter_async_context(open_access(options.doors, credentials, tls, self._clock))
        server = await stack.enter_async_context(self._serve(tls, doors, queue))
        if self._watchdog is not None and server.listener is not None:
            self._watchdog.stand_in(ProbeStandIn(server.listener, lambda: tls.context))
        return doors

    def _serve(self, tls: ServingTls, doors: Access, queue: SchedulingQueue) -> AbstractAsyncContextManager[Server]:
        options = self._options
        leading: dict[str, Check] = {} if self._term is None else {"leaderElection": self._term.health}
        checks: dict[str, Check] = {"shutdown": self._check_shutdown, "sched-handler-sync": self._check_synced}
        return serve(
            options.bind_address,
            options.secure_port,
            tls,
            Health(healthz=leading or {"ping": ping}, readyz={"ping": ping, **leading, **checks}),
            self.metrics,
            lambda: effective_configuration(without_secrets(self._config)),
            middlewares=[doors.middleware],
            pages={"/debug/queue": queue_page(queue.listing, self._leader)},
        )

    def _leader(self) -> str | None:
        """The replica that schedules in place of this one; None if this process schedules."""
        return None if self._term is None or self._term.is_holding else self._term.holder

    def _check_synced(self) -> str | None:
        return None if self._is_synced else "handlers are not fully synchronized"

    def _check_shutdown(self) -> str | None:
        return "process is shutting down" if self._is_stopping else None

    # ------------------------------------------------------------ running

    async def _run_tasks(
        self,
        credentials: Credentials,
        informers: InformerSet,
        parts: LoopDependencies,
        loop: SchedulingLoop,
        elector: Elector | None,
        doors: Access | None,
        started: Callable[[], None],
    ) -> None:
        async with anyio.create_task_group() as tasks:

            def start(part: str, run: Callable[[], Awaitable[None]]) -> None:
                tasks.start_soon(self._supervised, part, run, name=part)

            async def sync() -> None:
                start("informers", informers.run)
                log.info("Waiting for the caches to sync", server=credentials.base_url)
                await informers.wait_synced()
                self._is_synced = True
                garbage.keep_what_is_there()

            async def lead() -> None:
                if elector is not None:
                    await elector.acquire()
                    start("leader election", elector.renew)

            async def connect() -> None:
                if elector is not None:
                    await _wait_connected(informers)

            start("signals", self._stop_on_signal)
            start("cache dump", self._dump(informers, parts).run)
            start("event recorder", parts.recorder.run)
            if doors is not None:
                start("client authorities", doors.run)
            steps = (lead, sync) if self._config.delay_cache_until_active else (sync, lead)
            if await self._unless_stopped(*steps, connect):
                log.info("Scheduling", profiles=list(parts.frameworks), **parts.cache.statistics())
                started()
                start("stall watch", StallWatch(self._clock, self.metrics).run)
                start("conflicts", parts.conflicts.run)
                start("confirmations", loop.confirmations.run)
                start("stray pods", self._strays.run)
                start("preemption loops", parts.preemption.wake_released)
                start("scheduling loop", loop.run)
                await self._stop.wait()
            log.info("Stopping", bindings=loop.bindings)
            await self._drain(loop, parts, elector)
            tasks.cancel_scope.cancel()
        # A request still under way must not arrive after the next leader has started: the lease has to expire instead.
        if elector is not None and not loop.bindings:
            await elector.release()

    async def _supervised(self, part: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a component. An unexpected exception is logged and ends the process; a new one starts afresh."""
        try:
            await run()
        except LeadershipLost:
            raise
        except Exception as error:
            self.metrics.count_unexpected_error("task", part)
            log.critical("A part of the scheduler has failed, exiting", part=part, exc_info=error)
            raise PartFailed(f"the {part} failed: {words_of(error)}") from error

    async def _unless_stopped(self, *steps: Callable[[], Awaitable[None]]) -> bool:
        """Run the steps one after the other; returns whether all ended before a stop was requested."""

        async def make() -> None:
            for step in steps:
                await step()
            waiting.cancel_scope.cancel()

        async with anyio.create_task_group() as waiting:
            waiting.start_soon(make)
            await self._stop.wait()
            waiting.cancel_scope.cancel()
        return not self._is_stopping

    async def _stop_on_signal(self) -> None:
        ends = (signal.SIGTERM, signal.SIGINT)
        with (
            anyio.open_signal_receiver(*ends) as signals,
            nullcontext() if self._watchdog is None else self._watchdog.noticing(*ends),
        ):
            async for received in signals:
                if self._is_stopping:
                    log.warning("Requested to terminate again, exiting at once", signal=received.name)
                    flush_log()
                    os._exit(1)
                log.info("Requested to terminate, exiting", signal=received.name)
                self.stop()

    def _dump(self, informers: InformerSet, parts: LoopDependencies) -> CacheDump:
        pods, nodes = informers.informer(PODS), informers.informer(NODES)
        return CacheDump(parts.cache, parts.queue, nodes, pods, self._names.__contains__, self._clock)

    async def _drain(self, loop: SchedulingLoop, parts: LoopDependencies, elector: Elector | None) -> None:
        """Let the work under way end, within time limits: no binding that the API server answers is left half done."""
        loop.stop()
        with anyio.move_on_after(_DRAIN_S_MAX):
            await loop.wait_ended()
        if elector is not None:
            elector.stopped()
        left_behind = await parts.recorder.aclose(_EVENTS_S_MAX)
        if left_behind or loop.bindings:
            log.warning("Exiting with unfinished work", events=left_behind, bindings=loop.bindings)


def _in_flight_max() -> int:
    """How many writes may be in flight: fewer if file descriptors are scarce, since each write takes a connection."""
    descriptors, _ = getrlimit(RLIMIT_NOFILE)
    return IN_FLIGHT_MAX if descriptors == RLIM_INFINITY else max(8, min(IN_FLIGHT_MAX, descriptors // 2))


async def _wait_connected(informers: InformerSet) -> None:
    """Wait for watches that are disconnected at present: a new leader has to see what the previous one did."""
    with anyio.move_on_after(_CONNECTED_S_MAX) as waiting:
        await informers.wait_connected()
    if waiting.cancelled_caught:
        log.warning("Scheduling although some watches are not connected", resources=list(informers.unconnected))
