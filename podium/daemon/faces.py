"""podium's own faces: one function for each, and the list of those that a daemon has by default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from podium.daemon.cache_dump import CacheDump
from podium.daemon.face import Face, MakeFace
from podium.daemon.missing_devices import MissingDevices
from podium.daemon.node_metrics import node_metrics
from podium.daemon.pod_resources import pod_resources_page
from podium.daemon.profile_pages import ProfilePages
from podium.daemon.queue_page import queue_page
from podium.daemon.recorder_pages import RecorderPages
from podium.daemon.reload import configuration_reload
from podium.daemon.scheduler import Scheduler
from podium.daemon.stray_pods import StrayPods
from podium.daemon.tracing import tracing
from podium.engine.flight_recorder import FlightRecorder
from podium.engine.rejection_details import RejectionDetails
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS
from podium.server.stall_watch import StallWatch


def debug_queue(scheduler: Scheduler) -> Face:
    """Return the page /debug/queue."""
    return Face(pages={"/debug/queue": queue_page(scheduler.queue.listing, scheduler.clock, scheduler.leader)})


def pod_resources(scheduler: Scheduler) -> Face:
    """Return the page /metrics/resources."""
    pods = scheduler.informers.informer(PODS)

    def all_pods() -> Iterator[Pod]:
        return chain([*pods.list()], scheduler.pods_aside())

    return Face(pages={"/metrics/resources": pod_resources_page(all_pods, scheduler.leader, scheduler.clock)})


def cache_dump(scheduler: Scheduler) -> Face:
    """Return the dump of the scheduler's state on SIGUSR2."""
    pods, nodes = scheduler.informers.informer(PODS), scheduler.informers.informer(NODES)
    schedules = scheduler.scheduler_names.__contains__
    dump = CacheDump(scheduler.cache, scheduler.queue, nodes, pods, schedules, scheduler.clock)
    return Face(tasks={"cache dump": dump.run})


def stray_pods(scheduler: Scheduler) -> Face:
    """Return the warnings about pods with a misspelt scheduler name."""
    strays = StrayPods(scheduler.scheduler_names, scheduler.clock, scheduler.metrics)
    return Face(handlers={PODS: strays}, scheduling_tasks={"stray pods": strays.run})


def stall_watch(scheduler: Scheduler) -> Face:
    """Return the face that measures how long the event loop is blocked."""
    return Face(scheduling_tasks={"stall watch": StallWatch(scheduler.clock, scheduler.metrics).run})


def flight_recorder(scheduler: Scheduler) -> Face:
    """Return the attempts' recorder, its pages, and the live page if asked for; without memory the pages say so."""
    recorder = FlightRecorder(scheduler.options.recorder_bytes) if scheduler.options.recorder_bytes else None
    pods, nodes = scheduler.informers.informer(PODS), scheduler.informers.informer(NODES)
    pages = RecorderPages(
        recorder,
        scheduler.queue.listing,
        pods,
        nodes,
        scheduler.clock,
        scheduler.leader,
        scheduler.gang_stories.story_of,
        MissingDevices(lambda: scheduler.frameworks, nodes).on_nodes,
        lambda: scheduler.scheduler_names,
        RejectionDetails(lambda: scheduler.frameworks, scheduler.cache).on_group,
    ).pages
    if recorder is not None:
        scheduler.metrics.read_recorder(attempts=lambda: recorder.attempts, nbytes=lambda: recorder.nbytes)
    face = Face(observers=() if recorder is None else (recorder,), pages=pages)
    return _with_live_page(face, recorder, scheduler) if scheduler.options.has_live_page else face


def _with_live_page(face: Face, recorder: FlightRecorder | None, scheduler: Scheduler) -> Face:
    # Imported here: most daemons have no such page.
    from podium.daemon.fix_page import FixPage
    from podium.daemon.live_page import Contents, LivePage, NodeDevices

    devices = NodeDevices(lambda: scheduler.frameworks)
    contents = Contents(scheduler.cache, scheduler.queue.listing, recorder, scheduler.clock, scheduler.leader, devices)
    command, pods, nodes = (
        scheduler.options.fix_command,
        scheduler.informers.informer(PODS),
        scheduler.informers.informer(NODES),
    )
    fix_pages = FixPage(command, pods.get, lambda: len(nodes.by_key)).pages if command else {}
    about = {
        "schedulers": sorted(scheduler.scheduler_names),
        "recorder": recorder is not None,
        "fixes": bool(fix_pages),
    }
    page = LivePage(contents, scheduler.clock, about)
    return replace(
        face,
        pages={**face.pages, **page.pages, **fix_pages},
        open_pages=page.open_pages,
        tasks={"live page": page.run},
    )


def profiles(scheduler: Scheduler) -> Face:
    """Return the profiles below /debug/pprof/, unless the configuration turns them off."""
    return Face(pages=ProfilePages().pages) if scheduler.config.enable_profiling else Face()


def shards(scheduler: Scheduler) -> Face:
    """Return what makes the scheduler a member of a group of shards, if it is one."""
    if (identity := scheduler.options.shards) is None:
        return Face()
    # Imported here: most daemons are no shards.
    from podium.daemon.shards.face import member_of_shards

    return member_of_shards(scheduler, identity)


FACES: Final[tuple[MakeFace, ...]] = (
    debug_queue,
    pod_resources,
    flight_recorder,
    cache_dump,
    stray_pods,
    stall_watch,
    configuration_reload,
    profiles,
    node_metrics,
    tracing,
    shards,
)
