"""The scheduler as a process: its connection, its endpoints, and what it adds to the shell (`server.process`).

`daemon.scheduler` makes the components, `daemon.faces` lists what joins them.

Stop: no new attempts → binding cycles under way end → Events are written; the shell does the rest.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from podium.client.credentials import Credentials, kubeconfig_paths, load
from podium.client.session import ApiSession
from podium.config import AS_DEFAULT_SCHEDULER, LEASE_NAME, KubeSchedulerConfiguration
from podium.config import effective as effective_configuration
from podium.daemon.boundary import Boundary
from podium.daemon.companions import report_missing
from podium.daemon.extenders import json_to_keep, without_secrets
from podium.daemon.face import Face, MakeFace
from podium.daemon.faces import FACES
from podium.daemon.followed_kubeconfig import FollowedKubeconfig
from podium.daemon.observers import Observers, informer_labels
from podium.daemon.options import Options, ReleaseOrigin
from podium.daemon.scheduler import Scheduler
from podium.daemon.server_release import ServerRelease
from podium.daemon.watchdog import Watchdog
from podium.daemon.writes import in_flight_max
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.resource_types import ResourceType
from podium.server.election import Timings
from podium.server.process import Connection, Election, Parts, Process, connect
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
from podium.server.supervision import Tasks
from podium.telemetry import Metrics
from podium.telemetry.subsystems.pod_groups import OF_POD_GROUPS
from podium.telemetry.subsystems.shards import OF_SHARDS

log = get_logger("daemon")

_DRAIN_S_MAX = 6.0
_CONNECTIONS_FOR_READS = 16
_LEASE_REFUSAL = (
    f"{LEASE_NAME}: this is kube-scheduler's lease; choose another name, or pass {AS_DEFAULT_SCHEDULER} to stand by "
    "until kube-scheduler ends"
)


class App(Process):
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
        self.metrics = Metrics()
        release = config.release
        self.metrics.hide(release.hidden_metrics)
        if options.shows_deprecated_metrics:
            self.metrics.deprecate(release.deprecated_metrics, f"{release.minor}.0")
        else:
            self.metrics.hide(release.deprecated_metrics)
        if options.pod_groups is None:
            self.metrics.hide(OF_POD_GROUPS)
        if options.shards is None:
            self.metrics.hide(OF_SHARDS)
        election = _election(config, options) if config.leader_election.leader_elect else None
        super().__init__(log, "scheduler", self.metrics, clock=clock, random=random, election=election)
        self._config = config
        self._options = options
        self._make_faces = faces
        self._boundary = boundary or Boundary()
        self._watchdog = Watchdog(self.metrics) if is_watched else None

    async def run(self, on_start: Callable[[], None] = lambda: None) -> None:
        """Schedule pods until `stop`.

        Args:
            on_start: called when the caches are synced and the first pod can be scheduled.

        Raises:
            ConnectionConfigError: no API server is configured, or no credentials for it.
            ConfigError, PluginError: a profile cannot be built.
            ServingError, CertificateError: the port is in use, or a certificate cannot be used.
            LeadershipLostError: another replica may lead by now; everything else has been cancelled.
            LeaseTakenError: kube-scheduler holds the lease, and the options do not allow sharing it.
            ExceptionGroup: of `ComponentFailedError`; everything else has been cancelled.
        """
        self._prepare("Starting podium")
        kubeconfig = self._options.kubeconfig or self._config.client_connection.kubeconfig or None
        context, master = self._options.context, self._options.master
        connection = await connect(self._clock, kubeconfig, context=context, master=master)
        credentials = connection.credentials
        observers = Observers(self.metrics, _host(credentials))
        connection = replace(connection, observer=observers.requests.observer)
        async with AsyncExitStack() as stack:
            if self._watchdog is not None:
                stack.enter_context(self._watchdog.watching())
            connections_max = in_flight_max() + _CONNECTIONS_FOR_READS
            session = await stack.enter_async_context(
                connection.session(connections_max=connections_max, may_write=self._may_write)
            )
            scheduler = self._scheduler(session, observers)
            if paths := kubeconfig_paths(kubeconfig, master=master):

                def apply_new_address() -> None:
                    # Metrics and messages name the server, which a changed kubeconfig may have moved.
                    observers.request_metrics.host = _host(credentials)
                    connection.outage.server = credentials.base_url

                scheduler.kubeconfig = FollowedKubeconfig(
                    paths,
                    credentials,
                    lambda: load(kubeconfig, self._clock, context=context, master=master),
                    apply_new_address,
                )
            faces = [make(scheduler) for make in self._make_faces]
            for face in faces:
                for observer in face.observers:
                    observers.add(observer)
                for resource, handler in face.handlers.items():
                    scheduler.informers.informer(resource).add_handler(handler)
            await stack.enter_async_context(scheduler.extender_pool)
            access = await self._open(stack, credentials, scheduler, faces)
            await self._run_parts(self._parts(connection, session, scheduler, faces, access, on_start))
        log.info("Stopped")

    def _scheduler(self, session: ApiSession, observers: Observers) -> Scheduler:
        informers = self._informer_set(
            session,
            self._config.release,
            keep=json_to_keep(self._config.extenders),
            on_made=self._boundary.add_informer,
            on_delivered=self._delivery_counter,
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

    def _delivery_counter(self, resource: ResourceType[Any]) -> Callable[[float], None]:
        """Return what counts how long a part of the resource's watch took to handle."""
        labels = informer_labels(resource)
        return (lambda _: None) if labels is None else partial(self.metrics.observe_handling, *labels)

    # ------------------------------------------------------------ endpoints

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
        # While the loop hangs, the thread of the watchdog answers the probes, for which it needs the listener.
        if self._watchdog is not None and server.listener is not None:
            self._watchdog.stand_in(ProbeStandIn(server.listener, lambda: tls.context))
        return access

    def _serve(
        self, tls: ServingTls, access: Access, scheduler: Scheduler, faces: Sequence[Face]
    ) -> AbstractAsyncContextManager[Server]:
        options = self._options
        leading: dict[str, Check] = {} if self._term is None else {"leaderElection": self._term.health}
        # Names of upstream's checks, which probes and dashboards of kube-scheduler ask for.
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
            minor=self._config.release.minor,
        )

    def check_synced(self) -> str | None:
        """Return why the process is not ready while first lists are missing; None once all have arrived."""
        return None if self._is_synced else "handlers are not fully synchronized"

    def check_shutdown(self) -> str | None:
        """Return why a stopping process is not ready; None until the stop begins."""
        return "process is shutting down" if self._is_stopping else None

    # ------------------------------------------------------------ running

    def _parts(
        self,
        connection: Connection,
        session: ApiSession,
        scheduler: Scheduler,
        faces: Sequence[Face],
        access: Access | None,
        on_start: Callable[[], None],
    ) -> Parts:
        bindings = scheduler.binding_cycles.under_way

        def begin() -> Iterable[Tasks]:
            report_missing(scheduler.informers)
            log.info("Scheduling", profiles=list(scheduler.frameworks), **scheduler.cache.statistics())
            on_start()
            return [*(face.scheduling_tasks for face in faces), self._boundary.tasks(scheduler.tasks)]

        async def drain() -> None:
            """Wait for the bindings under way: none that the API server answers is left half done."""
            self._boundary.stopping()
            scheduler.loop.stop()
            await scheduler.loop.wait_ended()

        tasks: dict[str, Callable[[], Awaitable[None]]] = {} if access is None else {"client authorities": access.run}
        if (origin := self._options.release_is) is not ReleaseOrigin.ASKED_FOR:
            release = ServerRelease(session, self._config.release, is_assumed=origin is ReleaseOrigin.ASSUMED)
            tasks["server version"] = release.run
        parts = Parts(
            begin=begin,
            tasks=[*(face.tasks for face in faces), tasks],
            connection=connection,
            informers=scheduler.informers,
            leads_first=self._config.delay_cache_until_active,
            decides_as=self._config.release.minor,
            recorder=scheduler.writes.recorder,
            drain=drain,
            drain_s_max=_DRAIN_S_MAX,
            unfinished=lambda: {"bindings": len(bindings)},
            on_election=[face.on_election for face in faces if face.on_election is not None],
        )
        return parts if self._watchdog is None else replace(parts, signals_noticed=self._watchdog.handling_signals)


def _election(config: KubeSchedulerConfiguration, options: Options) -> Election:
    election = config.leader_election
    return Election(
        namespace=election.resource_namespace,
        name=election.resource_name,
        timings=Timings(election.lease_duration_s, election.renew_deadline_s, election.retry_period_s),
        activity="Scheduling",
        controller=config.profiles[0].scheduler_name,
        refusal=None if options.is_default_scheduler else _LEASE_REFUSAL,
    )


def _host(credentials: Credentials) -> str:
    return urllib.parse.urlsplit(credentials.base_url).netloc.rpartition("@")[2]


def _configz(scheduler: Scheduler) -> dict[str, Any]:
    """Return the configuration in effect, and why a later one is not."""
    # /configz is readable with few rights.
    configuration = {
        "componentconfig": effective_configuration(without_secrets(scheduler.config)),
        "decidesAs": scheduler.config.release.minor,
    }
    refusals = scheduler.refused_configuration()
    return {**configuration, "refused": refusals} if refusals else configuration
