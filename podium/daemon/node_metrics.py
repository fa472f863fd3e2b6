"""Reads the metrics sources that plugins ask for: one task for all of them, outside of the scheduling path.

Owns when a source is read, and how long after a failure. A new report enters scheduling like a watched object, so it is
recorded, and a replay has it again. The last report stays in use for as long as its source cannot be read.

Source: sigs.k8s.io/scheduler-plugins pkg/trimaran/collector.go (2026-08), for the period of 30 s.
Differs: failed readings are repeated sooner, at growing intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Final

import anyio

from podium.client.backoff import Backoff, BackoffPolicy
from podium.daemon.face import Face
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.node_metrics import NODE_METRICS, MetricsSource, NodeMetricsReport
from podium.objects.resource_types import NODES

if TYPE_CHECKING:
    from podium.client.dispatcher import Requester
    from podium.client.informer import Informer
    from podium.daemon.scheduler import Scheduler
    from podium.objects.core import Node

log = get_logger("metrics")

READ_EVERY_S: Final = 30.0
_LOOK_EVERY_S: Final = 1.0
_BACKOFF: Final = BackoffPolicy(first_s=1.0, longest_s=READ_EVERY_S)


class MetricsTask:
    """Keeps the reports of all sources current.

    Args:
        sources: by name; more may come while it runs.
        api: for metrics-server.
    """

    def __init__(
        self,
        sources: Mapping[str, MetricsSource],
        reports: Informer[NodeMetricsReport],
        nodes: Informer[Node],
        api: Requester,
        clock: Clock,
        random: Random,
    ) -> None:
        self._sources = sources
        self._reports = reports
        self._nodes = nodes
        self._api = api
        self._clock = clock
        self._random = random
        self.failures: Counter[str] = Counter()
        self.readings: Counter[str] = Counter()

    def ages_s(self) -> dict[str, float]:
        """Return the age of the last report of each source that has been read."""
        now_s = self._clock.now()
        ages = {report.metadata.name: report.age_s(now_s) for report in self._reports.list()}
        return {name: age_s for name, age_s in ages.items() if age_s is not None}

    async def run(self) -> None:
        """Read all sources until cancelled."""
        async with anyio.create_task_group() as tasks:
            source_names: set[str] = set()
            while True:
                for name, source in list(self._sources.items()):
                    if name not in source_names:
                        source_names.add(name)
                        tasks.start_soon(self._follow, source, name=f"node metrics of {name}")
                await anyio.sleep(_LOOK_EVERY_S)

    async def _follow(self, source: MetricsSource) -> None:
        # Imported here: it loads aiohttp, which replays and many schedulers do not need.
        from podium.client.metrics_answers import MetricsError
        from podium.client.metrics_reader import MetricsReader

        reader = MetricsReader(source, self._api, self._nodes.list, self._clock.now)
        backoff = Backoff(_BACKOFF, self._random, self._clock)
        trouble = ""
        await self._nodes.wait_synced()
        while True:
            try:
                report, problems = await reader.read()
            except MetricsError as error:
                self.failures[source.name] += 1
                if str(error) != trouble:
                    trouble = str(error)
                    log.warning("Node metrics cannot be read", source=source.name, error=trouble)
                await anyio.sleep(backoff.delay_s())
                continue
            self.readings[source.name] += 1
            if problems != trouble:
                trouble = problems
                message = "Node metrics lack something" if trouble else "Node metrics are complete again"
                log.warning(message, source=source.name, error=trouble)
            backoff.reset()
            self._reports.set(report)
            await anyio.sleep(READ_EVERY_S)


def node_metrics(scheduler: Scheduler) -> Face:
    """The task that reads node metrics, if a plugin has asked for any before the start."""
    if NODE_METRICS not in scheduler.informers.resources:
        return Face()
    task = MetricsTask(
        scheduler.metrics_sources,
        scheduler.informers.informer(NODE_METRICS),
        scheduler.informers.informer(NODES),
        scheduler.session,
        scheduler.clock,
        Random(),
    )
    scheduler.metrics.read_node_metrics(
        ages_s=task.ages_s, readings=lambda: task.readings, failures=lambda: task.failures
    )
    return Face(tasks={"node metrics": task.run})
