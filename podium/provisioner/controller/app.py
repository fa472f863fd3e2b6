"""The assembled provisioner: connection, watches, leader election, loops, health and metrics, start and stop.

Start: credentials → endpoints (not ready) → informers → all synced (ready) → the lease is ours → loops.
Stop on SIGTERM or SIGINT: loops end → Events are written → the lease is released → connections close. What a loop had
begun is continued by the next process. Losing the lease ends everything at once.

Source: karpenter pkg/operator/operator.go, v1.15.0.
"""

from __future__ import annotations

import platform
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal, TypeVar
from uuid import UUID

import anyio
import anyio.to_thread

import podium
from podium.binder import ApiClient, EventRecorder
from podium.binder.events.event import leader_election
from podium.client.backoff import Backoff, BackoffPolicy
from podium.client.credentials import Credentials, load
from podium.client.dispatcher import Dispatcher
from podium.client.informer_set import InformerSet
from podium.client.outage import Outage
from podium.client.session import ApiSession
from podium.config import KubeSchedulerConfiguration
from podium.framework.contract.plugin import Plugin
from podium.lib import garbage_collection
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.lib.system_clock import SuspendAwareClock, SystemClock
from podium.provisioner.apis.objects import NodePool
from podium.provisioner.cloudprovider.catalogue import Catalogue
from podium.provisioner.controller.disruption import DisruptionLoop
from podium.provisioner.controller.events import CONTROLLER
from podium.provisioner.controller.loops import Step, run_again_and_again
from podium.provisioner.controller.metrics import ProvisionerMetrics
from podium.provisioner.controller.nominations import Nominations
from podium.provisioner.controller.provider import Provider
from podium.provisioner.controller.providers.karpenter import KarpenterProvider, demand_node_claims
from podium.provisioner.controller.providers.plan_only import PlanOnlyProvider
from podium.provisioner.controller.providers.sandbox import SandboxProvider
from podium.provisioner.controller.provisioning import ProvisioningLoop
from podium.provisioner.controller.purchasing import Purchasing
from podium.provisioner.controller.status import Status
from podium.provisioner.controller.watched import WatchedCluster
from podium.provisioner.disruption.methods import VALIDATED_AFTER_S
from podium.provisioner.planners.placing_planner import OTHERS, PlacingPlanner
from podium.provisioner.planners.planner import Planner
from podium.provisioner.provisioning.batching import IDLE_S, MAX_S, BatchingWindow
from podium.provisioner.state.settings import Settings
from podium.server.election import (
    Elector,
    LeaseLock,
    Term,
    Timings,
    ending_if_stopped_for_too_long,
    request_deadline_s,
)
from podium.server.serving import serve_health_and_metrics
from podium.server.signals import stop_on_signal
from podium.server.supervision import Supervisor

log = get_logger("provisioner")

ProviderName = Literal["plan-only", "sandbox", "karpenter"]

PERIOD_S: Final = 10.0
"""How often nodes that may go are looked for."""

NAME: Final = "podium-provisioner"
"""Of the Lease, of the ConfigMap, and of the election in metrics."""

_EVENTS_S_MAX: Final = 2.0
_LEASE_CONNECTIONS_MAX: Final = 2
_WRITES_MAX: Final = 32
_CONNECTIONS_FOR_READS: Final = 16
_BACKOFF: Final = BackoffPolicy(first_s=0.5, longest_s=60.0)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Placing:
    """How podium places pods; see `PlacingPlanner`."""

    config: KubeSchedulerConfiguration
    classes: Mapping[str, type[Plugin]]
    any_scheduler: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run.

    Attributes:
        catalogue: The instance types; None for the built-in ones.
        node_pools: Those to buy from, instead of the cluster's.
        placing: How podium places pods, if its own plugins are to judge where they fit; else Karpenter's rules do.
        validated_after_s: How long after they were found they are looked at again.
        nominated_s_min: For how long at least nodes stay that pods were planned onto.
        namespace: Of the Lease and of the ConfigMap, which have the same name.
        timings: Of the leader election; None for none.
        health_address, metrics_address: A host ("" for any) and a port; None for no such endpoint.
    """

    kubeconfig: str | None = None
    context: str | None = None
    provider: ProviderName = "plan-only"
    catalogue: Catalogue | None = None
    node_pools: tuple[NodePool, ...] | None = None
    settings: Settings = field(default_factory=Settings)
    placing: Placing | None = None
    batch_idle_s: float = IDLE_S
    batch_max_s: float = MAX_S
    period_s: float = PERIOD_S
    validated_after_s: float = VALIDATED_AFTER_S
    nominated_s_min: float = 20.0
    namespace: str = "kube-system"
    name: str = NAME
    timings: Timings | None = None
    health_address: tuple[str, int] | None = None
    metrics_address: tuple[str, int] | None = None


class ProvisionerApp:
    """One provisioner, which runs until stopped."""

    def __init__(self, options: Options, *, clock: Clock | None = None, random: Random | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._random = random or Random()
        self._stop = anyio.Event()
        self._is_synced = False
        self.metrics = ProvisionerMetrics()
        self._term = None if options.timings is None else self._new_term(options.timings)

    def stop(self) -> None:
        """Begin to stop."""
        self._stop.set()

    async def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Provision until SIGTERM, SIGINT or `stop`.

        Args:
            started: called when the loops begin.

        Raises:
            ConnectionConfigError, ServingError, ProviderUnusableError, ApiError: it cannot start.
            LeadershipLostError: another replica may lead by now; everything else has been cancelled.
            ExceptionGroup: of `ComponentFailedError`; everything else has been cancelled.
        """
        options = self._options
        log.info("Starting podium's provisioner", version=podium.__version__, python=platform.python_version())
        garbage_collection.settle()
        credentials = await load(options.kubeconfig, self._clock, context=options.context)
        outage = Outage(credentials.base_url)
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(
                ApiSession(
                    credentials,
                    connections_max=_WRITES_MAX + _CONNECTIONS_FOR_READS,
                    may_write=None if self._term is None else self._term.may_write,
                    outage=outage,
                )
            )
            if options.provider == "karpenter":
                await demand_node_claims(session)
            parts = _Parts(options, session, self._clock, self._random, self.metrics, self._is_muted)
            addresses = options.health_address, options.metrics_address
            await stack.enter_async_context(
                serve_health_and_metrics(
                    *addresses,
                    self.metrics.render,
                    not_ready=lambda: None if self._is_synced else "not synced yet",
                    not_live=lambda: None if self._term is None else self._term.health(),
                )
            )
            elector = None
            if self._term is not None:
                stack.enter_context(ending_if_stopped_for_too_long(self._term))
                # A session of its own, so that other requests cannot delay a renewal of the lease.
                own = ApiSession(credentials, connections_max=_LEASE_CONNECTIONS_MAX, outage=outage)
                elector = self._elector(self._term, await stack.enter_async_context(own), parts.recorder)
            await self._run_tasks(credentials, parts, elector, started)
        log.info("Stopped")

    async def _run_tasks(
        self, credentials: Credentials, parts: _Parts, elector: Elector | None, started: Callable[[], None]
    ) -> None:
        async with anyio.create_task_group() as group:
            supervisor = Supervisor(
                group, "provisioner", lambda part: self.metrics.count_unexpected_error("task", part)
            )

            async def lead() -> None:
                log.info("Waiting for the caches to sync", server=credentials.base_url)
                await parts.informers.wait_synced()
                self._is_synced = True
                garbage_collection.exempt_present_objects()
                if elector is not None:
                    await elector.acquire()
                    supervisor.start({"leader election": elector.renew})
                    await parts.informers.wait_connected()
                supervisor.start({f"{name} loop": self._loop(name, step) for name, step in parts.loops.items()})
                supervisor.start({"status": parts.status.run})
                log.info("Provisioning", provider=self._options.provider)
                started()

            supervisor.start(
                {
                    "signals": lambda: stop_on_signal(self.stop, self._stop.is_set),
                    "event recorder": parts.recorder.run,
                    "informers": parts.informers.run,
                    "start": lead,
                }
            )
            await self._stop.wait()
            log.info("Stopping")
            if elector is not None:
                elector.stopped()
            await parts.recorder.aclose(_EVENTS_S_MAX)
            group.cancel_scope.cancel()
        if elector is not None:
            await elector.release()

    def _loop(self, name: str, step: Step) -> Callable[[], Awaitable[None]]:
        backoff = Backoff(_BACKOFF, self._random, self._clock)
        return lambda: run_again_and_again(name, step, backoff, self._clock, self.metrics)

    def _is_muted(self) -> bool:
        return self._term is not None and not self._term.is_holding

    def _new_term(self, timings: Timings) -> Term:
        identity = f"{socket.gethostname()}_{UUID(int=self._random.getrandbits(128), version=4)}"
        return Term(identity, timings, SuspendAwareClock())

    def _elector(self, term: Term, session: ApiSession, recorder: EventRecorder) -> Elector:
        options = self._options
        lock = LeaseLock(session, options.namespace, options.name, request_deadline_s(term.timings.renew_deadline_s))

        def tell(note: str) -> None:
            recorder.record(leader_election(CONTROLLER, lock.reference, note))

        return Elector(term, lock, SuspendAwareClock(), self._random, self.metrics, tell, NAME)


class _Parts:
    """What a provisioner consists of, wired to an API server. Starts nothing."""

    def __init__(
        self,
        options: Options,
        session: ApiSession,
        clock: Clock,
        random: Random,
        metrics: ProvisionerMetrics,
        is_muted: Callable[[], bool],
    ) -> None:
        dispatcher = Dispatcher(session, clock, in_flight_max=_WRITES_MAX)
        client = ApiClient(dispatcher, clock)
        self.recorder = EventRecorder(dispatcher, clock, hostname=socket.gethostname(), is_muted=is_muted)
        self.informers = InformerSet(
            session,
            clock=clock,
            random=random,
            on_handler_error=lambda resource, _: metrics.count_unexpected_error("handler", resource),
        )
        placing = options.placing
        in_own_words = placing is not None
        by_karpenter = Planner(options.catalogue, options.settings, in_own_words=in_own_words)
        planner: Planner | PlacingPlanner = by_karpenter
        if placing is not None:
            planner = PlacingPlanner(by_karpenter, placing.config, placing.classes, placing.any_scheduler)
        others = OTHERS if placing is not None else ()
        watched = WatchedCluster(self.informers, clock, options.node_pools, others)
        record = self.recorder.record
        drains: Mapping[str, Step] = {}
        provider: Provider
        is_karpenter = options.provider == "karpenter"
        if options.provider == "sandbox":
            provider = sandbox = SandboxProvider(client, session, watched, record, clock, in_own_words=in_own_words)
            drains = {"removal": sandbox.drain}
        elif is_karpenter:
            provider = KarpenterProvider(client, session, watched)
        else:
            provider = PlanOnlyProvider(record)
        is_real = options.provider != "plan-only"
        self.status = Status(
            client, options.namespace, options.name, record, metrics, is_real=is_real, in_own_words=in_own_words
        )
        purchasing = Purchasing(provider, watched, clock, awaits_machines=is_karpenter)
        nominations = Nominations(clock, max(2 * options.batch_max_s, options.nominated_s_min))
        window = BatchingWindow(clock, idle_s=options.batch_idle_s, max_s=options.batch_max_s)
        provisioning = ProvisioningLoop(
            watched, planner, purchasing, nominations, window, self.status, clock, _in_thread
        )
        disruption = DisruptionLoop(
            watched,
            planner,
            provider,
            purchasing,
            nominations,
            self.status,
            clock,
            _in_thread,
            period_s=options.period_s,
            validated_after_s=options.validated_after_s,
        )
        self.loops: Mapping[str, Step] = {
            "provisioning": provisioning.step,
            "disruption": disruption.step,
            **drains,
        }


async def _in_thread(compute: Callable[[], T]) -> T:
    """Run a plan in a thread, so that watches and the lease are served meanwhile."""
    return await anyio.to_thread.run_sync(compute, abandon_on_cancel=True)
