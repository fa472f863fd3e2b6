"""Puts the daemon's own scheduler together without an API server: what surrounds it is played to it.

Owns how that is wired. Nothing is sent anywhere.
"""

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


class Surroundings(Boundary, AttemptObserver):
    """What a scheduler without an API server sees and reads, and what hears of its decisions."""

    writes_events = False

    async def compute(self, work: Callable[[], None]) -> None:
        """Do the work at once: nobody waits meanwhile."""
        work()
        await asyncio.sleep(0)

    def watched(self, informer: Informer[Any]) -> None:
        """The scheduler watches a resource; what its watch brings is to be told to this informer."""
        raise NotImplementedError


def scheduler_within(
    surroundings: Surroundings, config: KubeSchedulerConfiguration, options: Options, clock: Clock
) -> Scheduler:
    """A scheduler of which nothing runs yet.

    Args:
        clock: what is read where the surroundings do not put their own in its place.
    """
    metrics, nowhere = _unread_metrics(), _NoServer()
    observers = Observers(metrics, "recording", measures=False)
    observers.add(surroundings)
    informers = InformerSet(nowhere, clock=clock, random=Random(0), on_made=surroundings.watched)  # type: ignore[arg-type]
    return Scheduler(
        config,
        options,
        nowhere,
        informers,
        observers,
        clock=clock,
        random=Random(0),
        metrics=metrics,
        boundary=surroundings,
    )


def _unread_metrics() -> Metrics:
    """Metrics that drop what is reported to them, since nobody reads them."""
    metrics = Metrics()
    for name in dir(metrics):
        if name.startswith(("observe_", "count_", "add_")):
            setattr(metrics, name, _drop)
    return metrics


def _drop(*_: object, **__: object) -> None:
    """What a metric is told."""


class _NoServer:
    """Stands where a session to an API server would be; nothing may be asked of it."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"a replay has asked the API server: {name}")
