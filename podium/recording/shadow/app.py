"""The process of a shadow: what it adds to the shell (`server.process`).

Its task `disagreements` examines them again once they are due. It only reads: the session refuses to send anything that
would change an object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from errno import ENOSPC
from io import FileIO
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
import anyio.lowlevel
import orjson

from podium.client.informer_set import InformerSet
from podium.config import KubeSchedulerConfiguration
from podium.engine.cluster import Cluster
from podium.engine.errors import ManifestError
from podium.framework.contract.plugin import Plugin
from podium.lib.error_text import error_text
from podium.lib.log import get_logger
from podium.objects.core import Pod
from podium.objects.resource_types import KubeObject, ResourceType
from podium.objects.wire import BrokenObject
from podium.recording.shadow.metrics import ShadowMetrics
from podium.recording.shadow.report import Disagreement, Report
from podium.recording.shadow.scenarios import scenario_of
from podium.recording.shadow.shadow import SETTLED_S, Listener, Shadow
from podium.server.process import Parts, Process, connect
from podium.server.supervision import Tasks

log = get_logger("shadow")

SCENARIOS_MAX: Final = 1000
_LOOK_S: Final = 0.1
_IDLE_S: Final = 0.5
"""Watches without an event for that long have delivered everything that happened before."""

CATCH_UP_S_MAX: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a shadow.

    Attributes:
        config: the other scheduler's configuration; its pods are those that name one of the profiles.
        for_s: the time limit; None for no limit.
        scenarios: the file to write disagreements to.
        scenarios_max: the most disagreements written, since each holds all objects of the cluster.
        health_address, metrics_address: a host ("" for any) and a port; None for no such endpoint.
        change_listeners: further listeners of every change.
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
    change_listeners: Collection[ChangeListener] = ()


class ShadowApp(Process):
    """One shadow, which runs until stopped."""

    def __init__(self, options: Options) -> None:
        self.metrics = ShadowMetrics()
        super().__init__(log, "shadow", self.metrics)
        self._options = options

    async def run(self, on_start: Callable[[], None] = lambda: None) -> Report:
        """Compare until SIGTERM, SIGINT, `stop` or the time limit, and return the report.

        Args:
            on_start: called once all objects are listed.

        Raises:
            ConnectionConfigError, ServingError, PluginError, ConfigError, OSError: it cannot start.
            ExceptionGroup: of `ComponentFailedError`; everything else has been cancelled.
        """
        options = self._options
        self._prepare("Starting podium's shadow")
        connection = await connect(self._clock, options.kubeconfig, context=options.context)
        async with AsyncExitStack() as stack:
            # Read-only, so that a shadow can be tried beside any scheduler.
            session = await stack.enter_async_context(connection.session(may_write=lambda: False))
            listeners: list[Listener] = [self.metrics, _Log()]
            if options.scenarios is not None:
                listeners.append(_ScenarioFile(stack.enter_context(options.scenarios.open("wb", buffering=0)), options))
            shadow = Shadow(options.config, options.classes, self._clock, listeners, options.settled_s)
            self.metrics.read_unsettled(lambda: shadow.unsettled_count)
            informers = self._informer_set(session, options.config.release)
            for resource in shadow.resources:
                for listener in (shadow, *options.change_listeners):
                    informers.informer(resource).add_handler(InformerAdapter(listener, resource, informers))

            def begin() -> Iterable[Tasks]:
                shadow.on_synced()
                log.info("Comparing", schedulers=sorted(profile.scheduler_name for profile in options.config.profiles))
                on_start()
                return ()

            await stack.enter_async_context(self._serving(options.health_address, options.metrics_address))
            parts = Parts(
                begin=begin,
                tasks=[{"disagreements": lambda: _settle(shadow)}],
                connection=connection,
                informers=informers,
                run_s_max=options.for_s,
                drain=lambda: catch_up(informers),
                drain_s_max=CATCH_UP_S_MAX,
            )
            await self._run_parts(parts)
            for _ in shadow.settle(is_final=True):
                pass
        log.info("Stopped", compared=shadow.report.compared_count, agreed=shadow.report.agreed_count)
        return shadow.report


async def _settle(shadow: Shadow) -> None:
    while True:
        for _ in shadow.settle():
            # One comparison can take long; watches are served in between.
            await anyio.lowlevel.checkpoint()
        await anyio.sleep(_LOOK_S)


async def catch_up(informers: InformerSet) -> None:
    """Wait until the watches are idle: events may arrive faster than they are compared."""
    count = -1
    while count != (count := informers.events_total):  # noqa: ASYNC110 - idleness is no event
        await anyio.sleep(_IDLE_S)


class ChangeListener(Protocol):
    """Receives every watched change."""

    def put(self, resource: ResourceType[Any], item: Any, *, is_complete: bool = True) -> None:
        """Take an added or changed object; see `Shadow.put`."""

    def drop(self, resource: ResourceType[Any], item: KubeObject) -> None:
        """Take a deletion."""


class InformerAdapter:
    """Implements `podium.client.informer.Handler`: passes every change of one kind to a listener."""

    def __init__(self, listener: ChangeListener, resource: ResourceType[Any], informers: InformerSet) -> None:
        self._listener = listener
        self._resource = resource
        self._informers = informers

    def on_add(self, new: Any, /) -> None:
        """Pass on an added object."""
        is_complete = self._informers.is_synced and self._informers.consistency.is_consistent
        try:
            self._listener.put(self._resource, new, is_complete=is_complete)
        except ManifestError as error:
            log.error("Object cannot be read", kind=self._resource.kind, object=new.key, error=str(error))

    def on_update(self, old: Any, new: Any, /) -> None:
        """Pass on a changed object."""
        self.on_add(new)

    def on_delete(self, old: Any, /) -> None:
        """Pass on a deletion."""
        self._listener.drop(self._resource, old)

    def on_broken(self, item: BrokenObject, /) -> None:
        """Log an object that cannot be read, and ignore it."""
        log.error("Object cannot be read", kind=item.kind, object=item.key, error=item.detail)


class _Log(Listener):
    """Logs one line per disagreement."""

    def on_disagreement(self, disagreement: Disagreement, pod: Pod, states: Mapping[str, Cluster]) -> None:
        """Log the disagreement."""
        members = disagreement.to_json()
        log.info("Disagreement", **{name: members[name] for name in _LOGGED if name in members})


_LOGGED: Final = ("pod", "chosen", "podium", "verdict", "gap", "plugin", "reason", "view")


class _ScenarioFile(Listener):
    """Writes disagreements as `podium evaluate` reads them."""

    def __init__(self, file: FileIO, options: Options) -> None:
        self._file = file
        self._config = options.config
        self._lines_left = options.scenarios_max

    def on_disagreement(self, disagreement: Disagreement, pod: Pod, states: Mapping[str, Cluster]) -> None:
        """Write one line per state of the cluster, until the limit or an error."""
        if self._lines_left <= 0:
            return
        self._lines_left -= 1
        if not self._lines_left:
            log.warning("No more disagreements are written to the file", written=self._file.name)
        try:
            for name, state in states.items():
                line = orjson.dumps(scenario_of(disagreement, pod, name, state, self._config)) + b"\n"
                # Unbuffered: a full disk shows here, and not when the file is closed.
                if self._file.write(line) < len(line):
                    raise OSError(ENOSPC, "not all of a line could be written")
        except OSError as error:
            log.warning("Disagreements are no longer written", file=self._file.name, error=error_text(error))
            self._lines_left = 0
