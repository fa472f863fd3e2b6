"""The shell of a long-running process: the scheduler, the provisioner, a shadow, a recording, an estimator server.

Owns what is alike in all of them: how the API server is reached, how leaders are elected, in which order a process
starts and stops, and what happens when one of its parts fails. Never knows what a process does: each hands in its
`Parts`.

Start: credentials → connections → endpoints (not ready) → informers → all synced (ready) → the lease is ours → watches
connected → `Parts.begin`. Stop on SIGTERM, SIGINT or `stop`: no new work → work under way ends → Events are written →
tasks are cancelled → the lease is released → connections close. A second signal ends the process at once, and so does
losing the lease. One root task group holds all tasks.

Source: kubernetes cmd/kube-scheduler/app/server.go, v1.36.2.
Differs: a new leader waits for a short while until all its watches are connected: it has to see what the previous
leader did last.
"""

from __future__ import annotations

import os
import platform
import signal
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias
from uuid import UUID

import anyio

import podium
from podium.binder import EventRecorder
from podium.binder.events.event import leader_election
from podium.client.credentials import Credentials, load
from podium.client.dispatcher import Requester
from podium.client.informer_set import InformerSet
from podium.client.observer import RequestObserver
from podium.client.outage import Outage
from podium.client.session import ApiSession
from podium.config import Release
from podium.lib import garbage_collection
from podium.lib.clock import Clock
from podium.lib.system_clock import SuspendAwareClock, SystemClock
from podium.server.election import (
    Elector,
    LeaseLock,
    Term,
    Timings,
    ending_if_stopped_for_too_long,
    request_deadline_s,
)
from podium.server.election.elector import METRICS_NAME, ElectionMetrics
from podium.server.serving import serve_health_and_metrics
from podium.server.supervision import Supervisor, Tasks
from podium.telemetry import flush_log

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_EVENTS_S_MAX: Final = 2.0
_CONNECTED_S_MAX: Final = 10.0
_LEASE_CONNECTIONS_MAX: Final = 2

Address = tuple[str, int]
"""A host ("" for any) and a port."""


class ProcessMetrics(ElectionMetrics, Protocol):
    """The metrics of any process, as far as the shell counts them."""

    def count_unexpected_error(self, where: Literal["handler", "task"], name: str) -> None:
        """Count an unexpected exception."""
        ...

    def render(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        ...


@dataclass(frozen=True, slots=True)
class Connection:
    """An API server and the credentials for it. Its sessions share one `Outage`, so that the log reports it once.

    Attributes:
        observer: is informed of the requests of all sessions.
    """

    credentials: Credentials
    outage: Outage
    observer: RequestObserver = field(default_factory=RequestObserver)

    def session(self, **options: Any) -> ApiSession:
        """Return a new session, which is not open yet; the options are those of `ApiSession`."""
        return ApiSession(self.credentials, outage=self.outage, observer=self.observer, **options)


async def connect(
    clock: Clock, kubeconfig: str | None, *, context: str | None = None, master: str | None = None
) -> Connection:
    """Find the API server and the credentials for it. Makes no request.

    Raises: ConnectionConfigError.
    """
    credentials = await load(kubeconfig, clock, context=context, master=master)
    return Connection(credentials, Outage(credentials.base_url))


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """The settings by which the replicas of a process elect their leader.

    Attributes:
        namespace, name: of the Lease.
        activity: what the leader does, for the log, such as "Scheduling".
        controller: who reports the Events about the election.
        metrics_name: what is led, as metrics name it.
        refusal: why a Lease that kube-scheduler holds is not waited for; None if it is.
    """

    namespace: str
    name: str
    timings: Timings
    activity: str
    controller: str
    metrics_name: str = METRICS_NAME
    refusal: str | None = None


OnElection: TypeAlias = Callable[[Elector, LeaseLock, Requester, float], None]
"""Gets what an election is made of, a session for more requests about Leases, and the deadline of each in seconds."""


async def _nothing() -> None:
    """Drain nothing: the process leaves no work under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts that one process adds to the shell.

    Attributes:
        begin: called once everything is synced and this process leads. The tasks that it returns run from then on.
        tasks: what runs from the start.
        connection: the API server; None if the process has no informers of its own, or several servers.
        informers: `begin` waits for their first lists.
        leads_first: whether the informers start only when this process leads.
        decides_as: the rules that this replica decides by; other replicas are warned of others.
        recorder: writes Events; those still queued are written before the process ends.
        run_s_max: how long after `begin` the process stops by itself; None for never.
        drain: lets the work under way end, for `drain_s_max` at most.
        unfinished: how much is still under way, by what it is.
        signals_noticed: opened with the signals once they are handled.
        on_election: called with the parts of the election before it begins.
    """

    begin: Callable[[], Iterable[Tasks]]
    tasks: Iterable[Tasks] = ()
    connection: Connection | None = None
    informers: InformerSet | None = None
    leads_first: bool = False
    decides_as: str = ""
    recorder: EventRecorder | None = None
    run_s_max: float | None = None
    drain: Callable[[], Awaitable[None]] = _nothing
    drain_s_max: float = 0.0
    unfinished: Callable[[], Mapping[str, int]] = dict
    signals_noticed: Callable[..., AbstractContextManager[None]] = lambda *_: nullcontext()
    on_election: Iterable[OnElection] = ()


class Process:
    """One process of podium; a subclass adds `run`, which calls `_prepare` and then `_run_parts`.

    Args:
        log: the logger under the name of the process.
        name: what the parts are of, as the log names it, such as "scheduler".
        clock, random: used by every component; a simulation passes its own.
        election: None for a process that needs no leader.
    """

    def __init__(
        self,
        log: FilteringBoundLogger,
        name: str,
        metrics: ProcessMetrics,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
        election: Election | None = None,
    ) -> None:
        self._log = log
        self._name = name
        self._counts = metrics
        self._clock = clock or SystemClock()
        self._random = random or Random()
        # The lease runs out while the machine is suspended, too.
        self._election_clock = clock or SuspendAwareClock()
        self._election = election
        self._term: Term | None = None
        if election is not None:
            identity = f"{socket.gethostname()}_{UUID(int=self._random.getrandbits(128), version=4)}"
            self._term = Term(identity, election.timings, self._election_clock)
        self._stop = anyio.Event()
        self._is_synced = False

    def stop(self) -> None:
        """Start the shutdown; `run` returns when it is complete."""
        self._stop.set()

    @property
    def _is_stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def _may_write(self) -> Callable[[], bool] | None:
        """Return whether this process leads, for its sessions; None if it needs no leader."""
        return None if self._term is None else self._term.may_write

    def _prepare(self, title: str = "") -> None:
        """Settle the garbage collector, and log the title, if any, with the versions."""
        if title:
            self._log.info(title, version=podium.__version__, python=platform.python_version())
        garbage_collection.settle()

    def _informer_set(self, session: ApiSession, release: Release | None = None, **options: Any) -> InformerSet:
        """Return informers whose failed handlers are counted; the options are those of `InformerSet`.

        Args:
            release: of the API server, which serves some kinds at other paths.
        """
        return InformerSet(
            session,
            paths={} if release is None else release.paths,
            clock=self._clock,
            random=self._random,
            on_handler_error=lambda resource, _: self._counts.count_unexpected_error("handler", resource),
            **options,
        )

    def _serving(
        self,
        health: Address | None,
        metrics: Address | None,
        not_ready: Callable[[], str | None] | None = None,
    ) -> AbstractAsyncContextManager[None]:
        """Serve health and metrics over plain HTTP while the context is open; None for no such endpoint."""
        return serve_health_and_metrics(
            health,
            metrics,
            self._counts.render,
            not_ready=not_ready or (lambda: None if self._is_synced else "not synced yet"),
            not_live=lambda: None if self._term is None else self._term.health(),
        )

    async def _run_parts(self, parts: Parts) -> None:
        """Run everything until `stop`, a signal, or a part that fails.

        Raises:
            LeadershipLostError: another replica may lead by now; everything else has been cancelled.
            LeaseTakenError: kube-scheduler holds the lease, and the election refuses to wait for it.
            ExceptionGroup: of `ComponentFailedError`; everything else has been cancelled.
        """
        async with AsyncExitStack() as stack:
            elector = await self._elector(stack, parts)
            async with anyio.create_task_group() as group:
                count_failure = self._counts.count_unexpected_error
                supervisor = Supervisor(group, self._name, self._log, lambda part: count_failure("task", part))
                starting = anyio.CancelScope()

                async def start() -> None:
                    with starting:
                        await self._start(supervisor, parts, elector)

                supervisor.start({"signals": lambda: self._stop_on_signal(parts.signals_noticed)})
                for tasks in parts.tasks:
                    supervisor.start(tasks)
                if parts.recorder is not None:
                    supervisor.start({"event recorder": parts.recorder.run})
                supervisor.start({"start": start})
                await self._stop.wait()
                starting.cancel()
                is_finished = await self._drain(parts, elector)
                group.cancel_scope.cancel()
            # A write that was cut off may still arrive. It must not do so after the next leader has started: then the
            # lease has to expire instead.
            if elector is not None and is_finished:
                await elector.release()

    async def _elector(self, stack: AsyncExitStack, parts: Parts) -> Elector | None:
        election, term = self._election, self._term
        if election is None or term is None:
            return None
        assert parts.connection is not None, "an election needs an API server"
        assert parts.recorder is not None, "an election is reported by Events"
        stack.enter_context(ending_if_stopped_for_too_long(term))
        # A session of its own, so that a burst of other writes cannot delay a renewal of the lease.
        session = await stack.enter_async_context(parts.connection.session(connections_max=_LEASE_CONNECTIONS_MAX))
        deadline_s = request_deadline_s(term.timings.renew_deadline_s)
        lock = LeaseLock(session, election.namespace, election.name, deadline_s, parts.decides_as)
        record = parts.recorder.record

        def tell(note: str) -> None:
            record(leader_election(election.controller, lock.reference, note))

        elector = Elector(
            term,
            lock,
            self._election_clock,
            self._random,
            self._counts,
            tell,
            election.metrics_name,
            election.refusal,
        )
        for join in parts.on_election:
            join(elector, lock, session, deadline_s)
        return elector

    async def _start(self, supervisor: Supervisor, parts: Parts, elector: Elector | None) -> None:
        """Take the steps of the start in their order; cancelled by a stop before the last one."""

        async def sync() -> None:
            if parts.informers is None:
                return
            supervisor.start({"informers": parts.informers.run})
            server = {} if parts.connection is None else {"server": parts.connection.credentials.base_url}
            self._log.info("Waiting for the caches to sync", **server)
            await parts.informers.wait_synced()
            self._is_synced = True
            garbage_collection.exempt_present_objects()

        async def lead() -> None:
            if elector is not None:
                await elector.acquire()
                supervisor.start({"leader election": elector.renew})

        for step in (lead, sync) if parts.leads_first else (sync, lead):
            await step()
        if self._election is not None and parts.informers is not None:
            await self._wait_connected(parts.informers, self._election.activity)
        # A stop in the same turn of the event loop has not cancelled this task yet.
        if self._is_stopping:
            return
        for tasks in parts.begin():
            supervisor.start(tasks)
        if parts.run_s_max is not None:
            await anyio.sleep(parts.run_s_max)
            self.stop()

    async def _wait_connected(self, informers: InformerSet, activity: str) -> None:
        """Wait for watches that are disconnected at present: a new leader has to see what the previous one did."""
        with anyio.move_on_after(_CONNECTED_S_MAX) as waiting:
            await informers.wait_connected()
        if waiting.cancelled_caught:
            unconnected = list(informers.unconnected)
            self._log.warning(f"{activity} although some watches are not connected", resources=unconnected)

    async def _stop_on_signal(self, noticed: Callable[..., AbstractContextManager[None]]) -> None:
        with anyio.open_signal_receiver(*_STOP_SIGNALS) as signals, noticed(*_STOP_SIGNALS):
            async for received in signals:
                if self._is_stopping:
                    self._log.warning("Requested to terminate again, exiting at once", signal=received.name)
                    flush_log()
                    os._exit(1)
                self._log.info("Requested to terminate, exiting", signal=received.name)
                self.stop()

    async def _drain(self, parts: Parts, elector: Elector | None) -> bool:
        """Let the work under way end, within time limits, and return whether all of it has ended."""
        self._log.info("Stopping", **parts.unfinished())
        ends_s = anyio.current_time() + parts.drain_s_max + _EVENTS_S_MAX
        with anyio.move_on_after(parts.drain_s_max):
            await parts.drain()
        if elector is not None:
            elector.report_stop()
        events = 0 if parts.recorder is None else await parts.recorder.aclose(ends_s - anyio.current_time())
        unfinished = parts.unfinished()
        if events or any(unfinished.values()):
            self._log.warning("Exiting with unfinished work", events=events, **unfinished)
        return not any(unfinished.values())
