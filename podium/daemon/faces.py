"""podium's own faces: one function for each, and the list of those that a daemon has unless it is told otherwise."""

from __future__ import annotations

from typing import Final

from podium.daemon.cache_dump import CacheDump
from podium.daemon.coscheduling import coscheduling
from podium.daemon.face import Face, MakeFace
from podium.daemon.queue_page import queue_page
from podium.daemon.recorder_pages import RecorderPages
from podium.daemon.scheduler import Scheduler
from podium.daemon.stray_pods import StrayPods
from podium.engine.flight_recorder import FlightRecorder
from podium.objects.resource_types import NODES, PODS
from podium.service.stall_watch import StallWatch


def debug_queue(scheduler: Scheduler) -> Face:
    """The page /debug/queue."""
    return Face(pages={"/debug/queue": queue_page(scheduler.queue.listing, scheduler.leader)})


def cache_dump(scheduler: Scheduler) -> Face:
    """The dump of the scheduler's state on SIGUSR2."""
    pods, nodes = scheduler.informers.informer(PODS), scheduler.informers.informer(NODES)
    schedules = scheduler.scheduler_names.__contains__
    dump = CacheDump(scheduler.cache, scheduler.queue, nodes, pods, schedules, scheduler.clock)
    return Face(tasks={"cache dump": dump.run})


def stray_pods(scheduler: Scheduler) -> Face:
    """The warnings about pods with a misspelt scheduler name."""
    strays = StrayPods(scheduler.scheduler_names, scheduler.clock, scheduler.metrics)
    return Face(handlers={PODS: strays}, scheduling_tasks={"stray pods": strays.run})


def stall_watch(scheduler: Scheduler) -> Face:
    """The measurement of how long the event loop is blocked."""
    return Face(scheduling_tasks={"stall watch": StallWatch(scheduler.clock, scheduler.metrics).run})


def flight_recorder(scheduler: Scheduler) -> Face:
    """The recorder of attempts, and its pages; without memory for it the pages say that it is off."""
    recorder = FlightRecorder(scheduler.options.recorder_bytes) if scheduler.options.recorder_bytes else None
    pods, nodes = scheduler.informers.informer(PODS), scheduler.informers.informer(NODES)
    pages = RecorderPages(recorder, scheduler.queue.listing, pods, nodes, scheduler.clock, scheduler.leader).pages
    if recorder is None:
        return Face(pages=pages)
    scheduler.metrics.read_recorder(attempts=lambda: recorder.attempts, nbytes=lambda: recorder.nbytes)
    return Face(observers=(recorder,), pages=pages)


FACES: Final[tuple[MakeFace, ...]] = (debug_queue, flight_recorder, cache_dump, stray_pods, stall_watch, coscheduling)
