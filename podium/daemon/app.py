"""Starts and stops the scheduler as a process: connection, endpoints, leadership, supervised tasks.

`daemon.scheduler` makes the components, `daemon.faces` lists what joins them.

Start: credentials → endpoints → informers → (all synced) → (leading, if leader election is on) → scheduling loop.
Stop, on SIGTERM or SIGINT: no new attempts → binding cycles under way end → Events are written → the lease is
released → connections close. One root task group holds all tasks. Losing the lease ends everything at once.

Source: kubernetes cmd/kube-scheduler/app/server.go, v1.36.2.
Differs: a new leader waits for a short while until all its watches are connected: it has to see what the previous
leader did last.
"""

from __future__ import annotations

import platform
import socket
import urllib.parse
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

import anyio
import anyio.abc

import podium
from podium.binder import EventRecorder
from podium.binder.events.event import leader_election
from podium.client.credentials import Credentials, kubeconfig_paths, load
from podium.client.informer_set import InformerSet
from podium.client.outage import Outage
from podium.client.session import ApiSession
from podium.config import AS_DEFAULT_SCHEDULER, LEASE_NAME, KubeSchedulerConfiguration
from podium.config import effective as effective_configuration
from podium.daemon.boundary import Boundary
from podium.daemon.extenders import json_to_keep, without_secrets
from podium.daemon.face import Face, MakeFace
from podium.daemon.faces import FACES
from podium.daemon.followed_kubeconfig import FollowedKubeconfig
from podium.daemon.observers import Observers
from podium.daemon.options import Options
from podium.daemon.scheduler import Scheduler
from podium.daemon.watchdog import Watchdog
from podium.daemon.writes import in_flight_max
from podium.lib import garbage_collection
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.lib.system_clock import SuspendAwareClock, SystemClock
from podium.server.election import (
    Elector,
    LeaseLock,
    Term,
    Timings,
    ending_if_stopped_for_too_long,
    request_deadline_s,
)
from podium.server.serving import (
    Access,
    Check,
    Health,
    ProbeStandIn,
    Server,
    ServingTls,
    open_access,
    ping,
    serve,
    serving_tls,
)
from podium.server.signals import stop_on_signal
from podium.server.supervision import Supervisor
from podium.telemetry import Metrics

log = get_logger("daemon")

_DRAIN_S_MAX = 6.0
_EVENTS_S_MAX = 2.0
_CONNECTED_S_MAX = 10.0
_LEASE_CONNECTIONS_MAX = 2
_CONNECTIONS_FOR_READS = 16
_LEASE_REFUSAL = (
    f"{LEASE_NAME}: this is kube-scheduler's lease; choose another name, or pass {AS_DEFAULT_SCHEDULER} to stand by "
    "until kube-scheduler ends"
)


class App:
    """One scheduler: built from a configuration, runs until stopped.

    Args:
        clock, random: used by every component; a simulation passes its own.
        is_watched: whether a watchdog thread may end the process; only for a process that does nothing else.
        faces: what joins the scheduler; by default podium's own.
        boundary: what the scheduling path gets from outside passes through it.
    """

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        options: Options,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
        is_watched: bool = False,
        faces: Sequence[MakeFace] = FACES,
        boundary: Boundary | None = None,
    ) -> None:
        self._config = config
        self._options = options
        self._clock = clock or SystemClock()
        self._random = random or Random()
        self._election_clock = clock or SuspendAwareClock()
        self._term = self._new_term() if config.leader_election.leader_elect else None
        self._stop = anyio.Event()
        self._is_stopping = False
        self._is_synced = False
        self._make_faces = faces
        self._boundary = boundary or Boundary()
        self.metrics = Metrics()
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
            LeadershipLostError: another replica may lead by now; everything else has been cancelled.
            LeaseTakenError: kube-scheduler holds the lease, and the options do not allow sharing it.
            ExceptionGroup: of `ComponentFailedError`; everything else has been cancelled.
        """
        log.info("Starting podium", version=podium.__version__, python=platform.python_version())
        garbage_collection.settle()
        kubeconfig = self._options.kubeconfig or self._config.client_connection.kubeconfig or None
        master = self._options.master
        credentials = await load(kubeconfig, self._clock, master=master)
        async with AsyncExitStack() as stack:
            if self._watchdog is not None:
                stack.enter_context(self._watchdog.watching())
            observers = Observers(self.metrics, _host(credentials))
            requests = observers.requests.observer
            outage = Outage(credentials.base_url)
            session = await stack.enter_async_context(
                ApiSession(
                    credentials,
                    connections_max=in_flight_max() + _CONNECTIONS_FOR_READS,
                    observer=requests,
                    may_write=None if self._term is None else self._term.may_write,
                    outage=outage,
                )
            )
            scheduler = self._scheduler(session, observers)
            if paths := kubeconfig_paths(kubeconfig, master=master):

                def moved() -> None:
                    observers.request_metrics.host, outage.server = _host(credentials), credentials.base_url

                scheduler.kubeconfig = FollowedKubeconfig(
                    paths, credentials, lambda: load(kubeconfig, self._clock, master=master), moved
                )
            faces = [make(scheduler) for make in self._make_faces]
            for face in faces:
                for observer in face.observers:
                    observers.add(observer)
                for resource, handler in face.handlers.items():
                    scheduler.informers.informer(resource).add_handler(handler)
            await stack.enter_async_context(scheduler.extender_pool)
            access = await self._open(stack, credentials, scheduler, faces)
            elector = None
            if self._term is not None:
                stack.enter_context(ending_if_stopped_for_too_long(self._term))
                # A session of its own, so that a burst of bindings cannot delay a renewal of the lease.
                own = ApiSession(credentials, connections_max=_LEASE_CONNECTIONS_MAX, observer=requests, outage=outage)
                elector = self._elector(self._term, await stack.enter_async_context(own), scheduler.writes.recorder)
            await self._run_tasks(credentials, scheduler, faces, elector, access, started)
        log.info("Stopped")

    def _scheduler(self, session: ApiSession, observers: Observers) -> Scheduler:
        informers = InformerSet(
            session,
            clock=self._clock,
            random=self._random,
            on_handler_error=lambda resource, _: self.metrics.count_unexpected_error("handler", resource),
            keep=json_to_keep(self._config.extenders),
            on_made=self._boundary.watched,
        )
        return Scheduler(
            self._config,
            self._options,
            session,
            informers,
            observers,
            clock=self._clock,
            random=self._random,
            metrics=self.metrics,
            term=self._term,
            boundary=self._boundary,
        )

    # ------------------------------------------------------------ leadership and endpoints

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

        refusal = None if self._options.is_default_scheduler else _LEASE_REFUSAL
        return Elector(term, lock, self._election_clock, self._random, self.metrics, tell, refusal=refusal)

    async def _open(
        self, stack: AsyncExitStack, credentials: Credentials, scheduler: Scheduler, faces: Sequence[Face]
    ) -> Access | None:
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
        open_paths = (
            *options.access.authorization_always_allow_paths,
            *(path for face in faces for path in face.open_pages),
        )
        access_options = replace(options.access, authorization_always_allow_paths=open_paths)
        access = await stack.enter_async_context(open_access(access_options, credentials, tls, self._clock))
        server = await stack.enter_async_context(self._serve(tls, access, scheduler, faces))
        if self._watchdog is not None and server.listener is not None:
            self._watchdog.stand_in(ProbeStandIn(server.listener, lambda: tls.context))
        return access

    def _serve(
        self, tls: ServingTls, access: Access, scheduler: Scheduler, faces: Sequence[Face]
    ) -> AbstractAsyncContextManager[Server]:
        options = self._options
        leading: dict[str, Check] = {} if self._term is None else {"leaderElection": self._term.health}
        checks: dict[str, Check] = {"shutdown": self.check_shutdown, "sched-handler-sync": self.check_synced}
        return serve(
            options.bind_address,
            options.secure_port,
            tls,
            Health(healthz=leading or {"ping": ping}, readyz={"ping": ping, **leading, **checks}),
            self.metrics,
            lambda: _configz(scheduler),
            middlewares=[access.middleware],
            pages={path: page for face in faces for path, page in (*face.pages.items(), *face.open_pages.items())},
            flags=options.flags,
        )

    def check_synced(self) -> str | None:
        """What is wrong while the first lists have not all arrived; a check of readiness."""
        return None if self._is_synced else "handlers are not fully synchronized"

    def check_shutdown(self) -> str | None:
        """What is wrong once the process stops; a check of readiness."""
        return "process is shutting down" if self._is_stopping else None

    # ------------------------------------------------------------ running

    async def _run_tasks(
        self,
        credentials: Credentials,
        scheduler: Scheduler,
        faces: Sequence[Face],
        elector: Elector | None,
        access: Access | None,
        started: Callable[[], None],
    ) -> None:
        informers = scheduler.informers
        async with anyio.create_task_group() as tasks:
            supervisor = Supervisor(tasks, "scheduler", lambda part: self.metrics.count_unexpected_error("task", part))

            async def sync() -> None:
                supervisor.start({"informers": informers.run})
                log.info("Waiting for the caches to sync", server=credentials.base_url)
                await informers.wait_synced()
                self._is_synced = True
                garbage_collection.exempt_present_objects()

            async def lead() -> None:
                if elector is not None:
                    await elector.acquire()
                    supervisor.start({"leader election": elector.renew})

            async def connect() -> None:
                if elector is not None:
                    await _wait_connected(informers)

            supervisor.start({"signals": self._stop_on_signal})
            for face in faces:
                supervisor.start(face.tasks)
            supervisor.start({"event recorder": scheduler.writes.recorder.run})
            if access is not None:
                supervisor.start({"client authorities": access.run})
            steps = (lead, sync) if self._config.delay_cache_until_active else (sync, lead)
            if await self._unless_stopped(*steps, connect):
                log.info("Scheduling", profiles=list(scheduler.frameworks), **scheduler.cache.statistics())
                started()
                for face in faces:
                    supervisor.start(face.scheduling_tasks)
                supervisor.start(self._boundary.tasks(scheduler.tasks))
                await self._stop.wait()
            self._boundary.stopping()
            log.info("Stopping", bindings=len(scheduler.binding_cycles.under_way))
            await self._drain(scheduler, elector)
            tasks.cancel_scope.cancel()
        # A request still under way must not arrive after the next leader has started: the lease has to expire instead.
        if elector is not None and not scheduler.binding_cycles.under_way:
            await elector.release()

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
        noticed_by = () if self._watchdog is None else (self._watchdog.handling_signals,)
        await stop_on_signal(self.stop, lambda: self._is_stopping, *noticed_by)

    async def _drain(self, scheduler: Scheduler, elector: Elector | None) -> None:
        """Let the work under way end, within time limits: no binding that the API server answers is left half done."""
        scheduler.loop.stop()
        ends_s = anyio.current_time() + _DRAIN_S_MAX + _EVENTS_S_MAX
        with anyio.move_on_after(_DRAIN_S_MAX):
            await scheduler.loop.wait_ended()
        if elector is not None:
            elector.stopped()
        left_behind = await scheduler.writes.recorder.aclose(ends_s - anyio.current_time())
        bindings = len(scheduler.binding_cycles.under_way)
        if left_behind or bindings:
            log.warning("Exiting with unfinished work", events=left_behind, bindings=bindings)


def _host(credentials: Credentials) -> str:
    return urllib.parse.urlsplit(credentials.base_url).netloc.rpartition("@")[2]


def _configz(scheduler: Scheduler) -> dict[str, Any]:
    """The configuration in effect, and why a later one is not."""
    shown = {"componentconfig": effective_configuration(without_secrets(scheduler.config))}
    refused = scheduler.refused_configuration()
    return {**shown, "refused": refused} if refused else shown


async def _wait_connected(informers: InformerSet) -> None:
    """Wait for watches that are disconnected at present: a new leader has to see what the previous one did."""
    with anyio.move_on_after(_CONNECTED_S_MAX) as waiting:
        await informers.wait_connected()
    if waiting.cancelled_caught:
        log.warning("Scheduling although some watches are not connected", resources=list(informers.unconnected))
