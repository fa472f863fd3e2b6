"""The provisioner as a process: its loops, and what else it adds to the shell (`server.process`).

When it stops, what a loop had begun is continued by the next process.

Source: karpenter pkg/operator/operator.go, v1.15.0.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

import anyio.to_thread

from podium.binder import ApiClient, EventRecorder
from podium.client.backoff import Backoff, BackoffPolicy
from podium.client.dispatcher import Dispatcher
from podium.client.informer_set import InformerSet
from podium.client.session import ApiSession
from podium.config import KubeSchedulerConfiguration
from podium.engine.gangs import GROUPS
from podium.framework.contract.plugin import Plugin
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.provisioner.apis.objects import NodePool
from podium.provisioner.cloudprovider.catalogue import Catalogue
from podium.provisioner.controller.consolidatable import ConsolidatableWriter
from podium.provisioner.controller.disruption import DisruptionLoop
from podium.provisioner.controller.events import CONTROLLER
from podium.provisioner.controller.loops import Step, run_again_and_again
from podium.provisioner.controller.metrics import ProvisionerMetrics
from podium.provisioner.controller.nominations import Nominations
from podium.provisioner.controller.provider import Provider
from podium.provisioner.controller.providers.karpenter import KarpenterProvider, demand_node_claims
from podium.provisioner.controller.providers.plan_only import PlanOnlyProvider
from podium.provisioner.controller.providers.removal import NodeRemoval
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
from podium.server.election import Timings
from podium.server.process import Connection, Election, Parts, Process, connect
from podium.server.supervision import Tasks

log = get_logger("provisioner")

ProviderName = Literal["plan-only", "sandbox", "karpenter"]

PERIOD_S: Final = 10.0
"""How often nodes that may go are looked for."""

NAME: Final = "podium-provisioner"
"""Of the Lease, of the ConfigMap, and of the election in metrics."""

_WRITES_MAX: Final = 32
_CONNECTIONS_FOR_READS: Final = 16
# Not longer: a node that is refused for good must not keep others waiting for theirs.
_BACKOFF: Final = BackoffPolicy(first_s=0.5, longest_s=5.0)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Placing:
    """The profiles by which podium places pods; see `PlacingPlanner`."""

    config: KubeSchedulerConfiguration
    classes: Mapping[str, type[Plugin]]
    any_scheduler: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a provisioner that runs.

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


class ProvisionerApp(Process):
    """One provisioner, which runs until stopped."""

    def __init__(self, options: Options) -> None:
        self.metrics = ProvisionerMetrics()
        election = None if options.timings is None else _election(options, options.timings)
        super().__init__(log, "provisioner", self.metrics, election=election)
        self._options = options

    async def run(self, on_start: Callable[[], None] = lambda: None) -> None:
        """Provision until SIGTERM, SIGINT or `stop`.

        Args:
            on_start: called when the loops begin.

        Raises:
            ConnectionConfigError, ServingError, ProviderUnusableError, ApiError: it cannot start.
            LeadershipLostError: another replica may lead by now; everything else has been cancelled.
            ExceptionGroup: of `ComponentFailedError`; everything else has been cancelled.
        """
        options = self._options
        self._prepare("Starting podium's provisioner")
        connection = await connect(self._clock, options.kubeconfig, context=options.context)
        connections_max = _WRITES_MAX + _CONNECTIONS_FOR_READS
        # Reads have connections of their own, so that a list is not queued behind many writes.
        async with connection.session(connections_max=connections_max, may_write=self._may_write) as session:
            if options.provider == "karpenter":
                await demand_node_claims(session)
            informers = self._informer_set(session, options.placing.config.release if options.placing else None)
            loops = _Loops(options, session, informers, self._clock, self.metrics, self._is_muted)
            async with self._serving(options.health_address, options.metrics_address):
                await self._run_parts(self._parts(connection, informers, loops, on_start))
        log.info("Stopped")

    def _parts(
        self, connection: Connection, informers: InformerSet, loops: _Loops, on_start: Callable[[], None]
    ) -> Parts:
        def begin() -> Iterable[Tasks]:
            log.info("Provisioning", provider=self._options.provider)
            on_start()
            return [
                {f"{name} loop": self._loop(name, step) for name, step in loops.steps.items()},
                {"status": loops.status.run, **loops.tasks},
            ]

        return Parts(
            begin=begin,
            connection=connection,
            informers=informers,
            recorder=loops.recorder,
            unfinished=lambda: {"writes": loops.dispatcher.statistics().in_flight},
        )

    def _loop(self, name: str, step: Step) -> Callable[[], Awaitable[None]]:
        backoff = Backoff(_BACKOFF, self._random, self._clock)
        return lambda: run_again_and_again(name, step, backoff, self._clock, self.metrics)

    def _is_muted(self) -> bool:
        return self._term is not None and not self._term.is_holding


def _election(options: Options, timings: Timings) -> Election:
    return Election(
        namespace=options.namespace,
        name=options.name,
        timings=timings,
        activity="Provisioning",
        controller=CONTROLLER,
        metrics_name=NAME,
    )


class _Loops:
    """The loops of a provisioner and what they work with, wired to an API server. Starts nothing."""

    def __init__(
        self,
        options: Options,
        session: ApiSession,
        informers: InformerSet,
        clock: Clock,
        metrics: ProvisionerMetrics,
        is_muted: Callable[[], bool],
    ) -> None:
        self.tasks: Tasks = {}
        self.dispatcher = Dispatcher(session, clock, in_flight_max=_WRITES_MAX)
        # An object that is refused must not hold up the others of a plan: each loop tries again by itself.
        client = ApiClient(self.dispatcher, clock, retries_max=0)
        self.recorder = EventRecorder(self.dispatcher, clock, hostname=socket.gethostname(), is_muted=is_muted)
        placing = options.placing
        in_own_words = placing is not None
        # Karpenter's words are what its users search for; by podium's own rules they would be wrong.
        by_karpenter = Planner(options.catalogue, options.settings, in_own_words=in_own_words)
        planner: Planner | PlacingPlanner = by_karpenter
        if placing is not None:
            planner = PlacingPlanner(by_karpenter, placing.config, placing.classes, placing.any_scheduler)
        other_resources = OTHERS if placing is not None else GROUPS
        removes_own_only = options.provider == "sandbox"
        cluster = WatchedCluster(
            informers,
            clock,
            options.node_pools,
            other_resources,
            removes_own_only=removes_own_only,
            has_overlays=options.settings.uses_overlays,
        )
        record = self.recorder.record
        provider: Provider
        if options.provider == "sandbox":
            provider = SandboxProvider(client, session, record, clock, in_own_words=in_own_words)
            removal = NodeRemoval(client, session, cluster, clock, metrics)
            self.tasks = {"removal": removal.run}
        elif options.provider == "karpenter":
            provider = KarpenterProvider(client, session, cluster)
            self.tasks = {"conditions": ConsolidatableWriter(client, cluster, clock).run}
        else:
            provider = PlanOnlyProvider(record, in_own_words=in_own_words)
        is_real = options.provider != "plan-only"
        self.status = Status(
            client, options.namespace, options.name, record, metrics, is_real=is_real, in_own_words=in_own_words
        )
        purchasing = Purchasing(provider, cluster, clock)
        # Upstream's formula: longer than a batch may take, since the pods of the next one count on the node.
        nominations = Nominations(clock, max(2 * options.batch_max_s, options.nominated_s_min))
        window = BatchingWindow(clock, idle_s=options.batch_idle_s, max_s=options.batch_max_s)
        provisioning = ProvisioningLoop(
            cluster, planner, purchasing, nominations, window, self.status, clock, _in_thread
        )
        disruption = DisruptionLoop(
            cluster,
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
        self.steps: Mapping[str, Step] = {
            "provisioning": provisioning.step,
            "disruption": disruption.step,
        }


async def _in_thread(compute: Callable[[], T]) -> T:
    """Run a plan in a thread, so that watches and the lease are served meanwhile."""
    # A plan that is given up ends by itself; waiting for it would hold up the stop of the process by as long.
    return await anyio.to_thread.run_sync(compute, abandon_on_cancel=True)
