"""Replays a recording with another configuration, beyond the first decision that differs.

External events arrive at their recorded times. Consequences of podium's own writes are left out: `simulated_api`
answers the writes instead. Equal inputs give equal results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from podium.binder import ApiClient
from podium.client.dispatcher import Dispatcher
from podium.client.informer import Informer
from podium.config import KubeSchedulerConfiguration
from podium.daemon.boundary import StoresState
from podium.daemon.options import Options
from podium.daemon.scheduler import Scheduler
from podium.engine.group_decisions import MemberDecision
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.cycle.cycle import Cycle
from podium.lib import garbage_collection
from podium.lib.clock import Clock
from podium.objects.core import Pod
from podium.objects.resource_types import KubeObject, ResourceType
from podium.objects.wire import BrokenObject
from podium.recording.entries import PUT, Entry, item_of
from podium.recording.external_events import ExternalEvents, read_external_events
from podium.recording.outcomes import Outcomes, State, outcomes, state_of, typical_requests
from podium.recording.replay import checked_segments, entries_of, is_watched, recorded_options
from podium.recording.replay_boundary import ReplayBoundary, build_scheduler
from podium.recording.segments import LeftOutList, RecordingError
from podium.recording.simulated_api import PodStory, SimulatedApi, SimulatedClient
from podium.recording.timeline import UtilizationRecorder
from podium.recording.virtual_loop import VirtualLoop

_STATES: Final = 50
"""Means over time are taken over this many states, at equal intervals."""


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """The result of a replay with another configuration.

    Attributes:
        stories: the course of each pod, by uid.
        recorded_nodes: the node that the recorded scheduler chose last for each pod, by uid.
        started_s: the start of the recording, in seconds since the epoch.
        damage: why the recording could not be read to its end; "" if it could.
        left_out: the objects that the recording lacks.
    """

    outcomes: Outcomes
    stories: Mapping[str, PodStory]
    recorded_nodes: Mapping[str, str]
    started_s: float
    damage: str = ""
    left_out: LeftOutList = field(default_factory=LeftOutList)


def replay_counterfactually(
    directory: Path,
    config: KubeSchedulerConfiguration,
    plugins: Mapping[str, type[Plugin]],
    *,
    utilization: UtilizationRecorder | None = None,
    prepare: Callable[[Scheduler], None] = lambda _: None,
    is_wanted: Callable[[], bool] | None = None,
) -> Counterfactual:
    """Replay a recording to its end with any configuration.

    Args:
        utilization: records pods and nodes over time.
        prepare: called with the scheduler before any task runs.
        is_wanted: called before each step; the replay is given up once it returns False.

    Raises:
        RecordingError: there is no recording, it cannot be read, or another version of podium is needed.
        AbandonedError: it was given up.
    """
    segments = checked_segments(directory)
    if is_watched(segments):
        raise RecordingError(f"{directory} was recorded beside another scheduler, and holds no decisions of podium's")
    options = recorded_options(segments.description, plugins)
    events = read_external_events(entries_of(segments))
    with garbage_collection.rare_collections(), asyncio.Runner(loop_factory=partial(VirtualLoop, is_wanted)) as runner:
        boundary = runner.run(_replay(events, config, options, prepare, utilization))
    api = boundary.api
    numbers = outcomes(api.stories.values(), boundary.states, attempts=boundary.attempts, preemptions=api.preemptions)
    return Counterfactual(
        numbers, api.stories, events.recorded_nodes, events.wall_s, segments.damage, segments.left_out
    )


class _VirtualClock:
    def __init__(self, loop: VirtualLoop, wall_s: float) -> None:
        self.monotonic = loop.time
        self._wall_s = wall_s

    def now(self) -> float:
        """Return the wall clock's time."""
        return self._wall_s + self.monotonic()


class _ConsistentStores:
    """Implements `podium.daemon.boundary.StoresState`: no resource is listed again."""

    changes = 0
    is_consistent = True

    def wait_s(self) -> float:
        """Return 0: there is no list to wait for."""
        return 0.0


class _SimulatedBoundary(ReplayBoundary):
    """The boundary of a scheduler with a simulated API server."""

    def __init__(
        self,
        events: ExternalEvents,
        loop: VirtualLoop,
        scheduler_names: frozenset[str],
        utilization: UtilizationRecorder | None,
    ) -> None:
        self.api = SimulatedApi(events, loop.time, scheduler_names)
        self.attempts = 0
        self.states: list[State] = []
        self._attempt_s = events.attempt_s
        self._loop = loop
        self._utilization = utilization

    def api_client(self, dispatcher: Dispatcher, clock: Clock) -> ApiClient:
        """Return a client of the simulated API."""
        return SimulatedClient(self.api, dispatcher, clock)

    def stores(self, state: StoresState) -> StoresState:
        """Return stores that are always consistent."""
        return _ConsistentStores()

    def add_informer(self, informer: Informer[Any]) -> None:
        """Let the simulated API change the informer's store."""
        self.api.add_informer(informer)
        if self._utilization is not None:
            informer.add_handler(_UtilizationHandler(self._utilization, informer.resource, self._loop.time))

    def on_decision(
        self, info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision, started_s: float, seconds: float
    ) -> None:
        """Let an attempt take its typical time."""
        self.attempts += 1
        # Virtual time stands still while Python computes, so an attempt's typical duration is added.
        self._loop.spend(self._attempt_s)

    def on_failure(self, pod: Pod, result: str, message: str, seconds: float) -> None:
        """Do nothing: the decision was counted."""


class _UtilizationHandler:
    """Implements `podium.client.informer.Handler`: records the objects of one kind."""

    def __init__(self, recorder: UtilizationRecorder, resource: ResourceType[Any], clock: Callable[[], float]) -> None:
        self._recorder, self._resource, self._clock = recorder, resource, clock

    def on_add(self, new: KubeObject, /) -> None:
        """Record an added object."""
        self._recorder.advance_to(self._clock())
        self._recorder.put(self._resource, new)

    def on_update(self, old: KubeObject, new: KubeObject, /) -> None:
        """Record a changed object."""
        self.on_add(new)

    def on_delete(self, old: KubeObject, /) -> None:
        """Record a deletion."""
        self._recorder.advance_to(self._clock())
        self._recorder.drop(self._resource, old)

    def on_broken(self, item: BrokenObject, /) -> None:
        """Do nothing: a recording holds no such object."""


async def _replay(
    events: ExternalEvents,
    config: KubeSchedulerConfiguration,
    options: Options,
    prepare: Callable[[Scheduler], None],
    utilization: UtilizationRecorder | None,
) -> _SimulatedBoundary:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    names = frozenset(profile.scheduler_name for profile in config.profiles)
    boundary = _SimulatedBoundary(events, loop, names, utilization)
    scheduler = build_scheduler(boundary, config, options, _VirtualClock(loop, events.wall_s))
    prepare(scheduler)
    for entry in events.initial:
        boundary.api.apply(entry)
    tasks = [asyncio.ensure_future(run()) for run in scheduler.tasks.values()]
    # The scheduler's tasks never end but by an error; the feed ends with the recording.
    scheduling = asyncio.gather(*tasks)
    feed = asyncio.gather(_feed(boundary.api, events), _sample(boundary, events))
    try:
        await asyncio.wait((scheduling, feed), return_when=asyncio.FIRST_COMPLETED)
        if scheduling.done():
            scheduling.result()
    finally:
        scheduling.cancel()
        await asyncio.gather(scheduling, return_exceptions=True)
    await feed
    return boundary


async def _feed(api: SimulatedApi, events: ExternalEvents) -> None:
    """Apply each event at its time; at the end, wait for bindings in flight."""
    loop = asyncio.get_running_loop()
    for change in events.changes:
        if change.at_s > loop.time():
            await asyncio.sleep(change.at_s - loop.time())
        api.apply(change.entry)
    # Long enough for the last binding to be seen.
    await asyncio.sleep(max(events.ended_s - loop.time(), 0.0) + 2 * events.bound_after_s)


async def _sample(boundary: _SimulatedBoundary, events: ExternalEvents) -> None:
    """Note the cluster's state at equal intervals."""
    first = [item for entry in events.initial if isinstance(item := _item(entry), Pod)]
    later = [item for change in events.changes if isinstance(item := _item(change.entry), Pod)]
    # Over all pods of the recording, so that every configuration is measured by one yardstick.
    typical = typical_requests(list({pod.uid: pod for pod in (*first, *later)}.values()))
    for _ in range(_STATES):
        await asyncio.sleep(events.ended_s / _STATES)
        boundary.states.append(state_of(boundary.api.nodes, boundary.api.pods, typical))


def _item(entry: Entry) -> Any:
    return item_of(entry) if entry[0] == PUT else None
