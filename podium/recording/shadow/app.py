"""The shadow as a process: comparison, files, and what else it adds to the shell (`server.process`).

Its task `disagreements` looks at them again once they are due. It only reads: the session refuses to send anything that
would change an object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from errno import ENOSPC
from io import FileIO
from pathlib import Path
from random import Random
from typing import Any, Final, Protocol

import anyio
import anyio.lowlevel
import orjson

from podium.client.informer_set import InformerSet
from podium.config import KubeSchedulerConfiguration
from podium.engine.cluster import Cluster
from podium.engine.errors import ManifestError
from podium.framework.contract.plugin import Plugin
from podium.lib.clock import Clock
from podium.lib.error_text import error_text
from podium.lib.log import get_logger
from podium.objects.core import Pod
from podium.objects.resource_types import KubeObject, ResourceType
from podium.objects.wire import BrokenObject
from podium.recording.shadow.comparison import Comparison
from podium.recording.shadow.metrics import ShadowMetrics
from podium.recording.shadow.report import Disagreement, Report
from podium.recording.shadow.scenarios import scenario_of
from podium.recording.shadow.shadow import SETTLED_S, Shadow
from podium.server.process import Parts, Process, connect
from podium.server.supervision import Tasks

log = get_logger("shadow")

SCENARIOS_MAX: Final = 1000
_LOOK_S: Final = 0.1
_IDLE_S: Final = 0.5
"""Watches that have shown nothing for that long have shown everything that happened before."""

CATCH_UP_S_MAX: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run.

    Attributes:
        config: the other scheduler's configuration; its pods are those that name one of the profiles.
        for_s: stop after that long; None for never.
        scenarios: the file that disagreements are written to.
        scenarios_max: how many of them at most, since each has all objects of the cluster.
        health_address, metrics_address: a host ("" for any) and a port; None for no such endpoint.
        told: who else is told of every change.
    """

    config: KubeSchedulerConfiguration
    classes: Mapping[str, type[Plugin]]
    kubeconfig: str | None = None
    context: str | None = None
    for_s: float | None = None
    settled_s: float = SETTLED_S
    scenarios: Path | None = None
    scenarios_max: int = SCENARIOS_MAX
    health_address: tuple[str, int] | None = None
    metrics_address: tuple[str, int] | None = None
    told: Collection[Told] = ()


class ShadowApp(Process):
    """One shadow, which runs until stopped."""

    def __init__(self, options: Options, *, clock: Clock | None = None, random: Random | None = None) -> None:
        self.metrics = ShadowMetrics()
        super().__init__(log, "shadow", self.metrics, clock=clock, random=random)
        self._options = options

    async def run(self, started: Callable[[], None] = lambda: None) -> Report:
        """Compare until SIGTERM, SIGINT, `stop` or the time limit, and return what has come out.

        Args:
            started: called once all objects are known.

        Raises:
            ConnectionConfigError, ServingError, PluginError, ConfigError, OSError: it cannot start.
            ExceptionGroup: of `ComponentFailedError`; everything else has been cancelled.
        """
        options = self._options
        self._log_start("Starting podium's shadow")
        connection = await connect(self._clock, options.kubeconfig, context=options.context)
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(connection.session(may_write=lambda: False))
            listeners: list[Any] = [self.metrics, _Log()]
            if options.scenarios is not None:
                listeners.append(_ScenarioFile(stack.enter_context(options.scenarios.open("wb", buffering=0)), options))
            shadow = Shadow(options.config, options.classes, self._clock, listeners, options.settled_s)
            self.metrics.read_unsettled(lambda: shadow.unsettled)
            informers = self._informer_set(session)
            for resource in shadow.resources:
                for told in (shadow, *options.told):
                    informers.informer(resource).add_handler(Teller(told, resource, informers))

            def begin() -> Iterable[Tasks]:
                shadow.synced()
                log.info("Comparing", schedulers=sorted(each.scheduler_name for each in options.config.profiles))
                started()
                return ()

            await stack.enter_async_context(self._serving(options.health_address, options.metrics_address))
            parts = Parts(
                begin=begin,
                tasks=[{"disagreements": lambda: _settle_again(shadow)}],
                connection=connection,
                informers=informers,
                run_s_max=options.for_s,
                drain=lambda: catch_up(informers),
                drain_s_max=CATCH_UP_S_MAX,
            )
            await self._run_parts(parts)
            for _ in shadow.settle(all_of_them=True):
                pass
        log.info("Stopped", compared=shadow.report.compared, agreed=shadow.report.agreed)
        return shadow.report


async def _settle_again(shadow: Shadow) -> None:
    while True:
        for _ in shadow.settle():
            await anyio.lowlevel.checkpoint()
        await anyio.sleep(_LOOK_S)


async def catch_up(informers: InformerSet) -> None:
    """Wait until the watches have nothing more to show: changes may come faster than they are compared."""
    count = -1
    while count != (count := informers.events_total):  # noqa: ASYNC110 - idleness is no event
        await anyio.sleep(_IDLE_S)


class Told(Protocol):
    """Is told of every change; `Shadow` is one."""

    def put(self, resource: ResourceType[Any], item: Any, *, is_complete: bool = True) -> None:
        """An object was added or has changed; see `Shadow.put`."""
        ...

    def drop(self, resource: ResourceType[Any], item: KubeObject) -> None:
        """An object was deleted."""
        ...


class Teller:
    """Implements `podium.client.informer.Handler`: passes every change of one kind on."""

    def __init__(self, told: Told, resource: ResourceType[Any], informers: InformerSet) -> None:
        self._told = told
        self._resource = resource
        self._informers = informers

    def on_add(self, new: Any, /) -> None:
        """Pass on an added object."""
        is_complete = self._informers.synced and self._informers.consistency.is_consistent
        try:
            self._told.put(self._resource, new, is_complete=is_complete)
        except ManifestError as error:
            log.error("Object cannot be read", kind=self._resource.kind, object=new.key, error=str(error))

    def on_update(self, old: Any, new: Any, /) -> None:
        """Pass on a changed object."""
        del old
        self.on_add(new)

    def on_delete(self, old: Any, /) -> None:
        """Pass on a deletion."""
        self._told.drop(self._resource, old)

    def on_broken(self, broken: BrokenObject, /) -> None:
        """Log an object that cannot be read, and ignore it."""
        log.error("Object cannot be read", kind=broken.kind, object=broken.key, error=broken.detail)


class _Log:
    """Implements `podium.recording.shadow.shadow.Listener`: one line for each disagreement."""

    def compared(self, comparison: Comparison, *, evaluation_s: float, binding_s: float) -> None:
        """Log nothing: agreement is the rule."""

    def skipped(self, reason: str) -> None:
        """Log nothing: the report has the count."""

    def disagreed(self, disagreement: Disagreement, pod: Pod, states: Mapping[str, Cluster]) -> None:
        """Log the disagreement."""
        del pod, states
        said = disagreement.to_json()
        log.info("Disagreement", **{name: said[name] for name in _LOGGED if name in said})


_LOGGED: Final = ("pod", "chosen", "podium", "verdict", "gap", "plugin", "reason", "view")


class _ScenarioFile:
    """Implements `podium.recording.shadow.shadow.Listener`: writes disagreements as `podium evaluate` reads them."""

    def __init__(self, file: FileIO, options: Options) -> None:
        self._file = file
        self._config = options.config
        self._left = options.scenarios_max

    def compared(self, comparison: Comparison, *, evaluation_s: float, binding_s: float) -> None:
        """Write nothing: only disagreements are kept."""

    def skipped(self, reason: str) -> None:
        """Write nothing: there is no answer to compare."""

    def disagreed(self, disagreement: Disagreement, pod: Pod, states: Mapping[str, Cluster]) -> None:
        """Write one line for each state of the cluster, until the file has enough of them or cannot be written."""
        if self._left <= 0:
            return
        self._left -= 1
        if not self._left:
            log.warning("No more disagreements are written to the file", written=self._file.name)
        try:
            for name, state in states.items():
                line = orjson.dumps(scenario_of(disagreement, pod, name, state, self._config)) + b"\n"
                if self._file.write(line) < len(line):
                    raise OSError(ENOSPC, "not all of a line could be written")
        except OSError as error:
            log.warning("Disagreements are no longer written", file=self._file.name, error=error_text(error))
            self._left = 0
