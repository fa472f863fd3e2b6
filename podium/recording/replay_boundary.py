"""Builds the daemon's scheduler with recorded inputs instead of an API server. It sends nothing anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, NoReturn

from podium.client.informer import Informer
from podium.client.informer_set import InformerSet
from podium.config import KubeSchedulerConfiguration
from podium.daemon.boundary import Boundary
from podium.daemon.observers import Observers
from podium.daemon.options import Options
from podium.daemon.scheduler import Scheduler
from podium.engine.flight_recorder import AttemptObserver
from podium.lib.clock import Clock
from podium.telemetry import Metrics


class ReplayBoundary(Boundary, AttemptObserver):
    """The boundary of a scheduler without an API server; also observes its attempts."""

    writes_events = False

    async def compute(self, work: Callable[[], None]) -> None:
        """Do the work at once: no other task waits meanwhile."""
        work()
        await asyncio.sleep(0)

    def add_informer(self, informer: Informer[Any]) -> None:
        """Take an informer of the scheduler's; the watch events of its resource belong to it."""
        raise NotImplementedError


def build_scheduler(
    boundary: ReplayBoundary, config: KubeSchedulerConfiguration, options: Options, clock: Clock
) -> Scheduler:
    """Build a scheduler whose tasks are not started yet.

    Args:
        clock: the clock of what is only measured.
    """
    metrics, session = _unread_metrics(), _NoServer()
    observers = Observers(metrics, "recording", measures=False)
    observers.add(boundary)
    informers = InformerSet(session, clock=clock, random=Random(0), on_made=boundary.add_informer)  # type: ignore[arg-type]
    return Scheduler(
        config,
        options,
        session,
        informers,
        observers,
        clock=clock,
        random=Random(0),
        metrics=metrics,
        boundary=boundary,
    )


def _unread_metrics() -> Metrics:
    """Return metrics that drop their observations, since no exporter reads them."""
    metrics = Metrics()
    for name in dir(metrics):
        if name.startswith(("observe_", "count_", "add_")):
            setattr(metrics, name, _drop)
    return metrics


def _drop(*_: object, **__: object) -> None:
    """Drop an observation."""


class _NoServer:
    """Takes the place of the session to an API server; every use of it is an error."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"a replay has asked the API server: {name}")
