"""Decides a recording again with another configuration, beyond the first decision that differs.

What came from outside comes at its recorded time; what followed from podium's own writes is left
out, and `simulated_api` answers instead. The same input gives the same result.
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
from podium.engine.pod_group_cycle import MemberDecision
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.cycle.cycle import Cycle
from podium.lib import garbage_collection
from podium.lib.clock import Clock
from podium.objects.core import Pod
from podium.objects.resource_types import KubeObject, ResourceType
from podium.objects.wire import BrokenObject
from podium.recording import tape
from podium.recording.outcomes import Outcomes, State, outcomes, state_of, typical_requests
from podium.recording.outside import Outside, read_outside
from podium.recording.replay import checked_segments, entries_of, is_watched, recorded_options
from podium.recording.segments import LeftOutList, RecordingError
from podium.recording.simulated_api import PodStory, SimulatedApi, SimulatedClient
from podium.recording.surroundings import Surroundings, scheduler_within
from podium.recording.timeline import Onlooker
from podium.recording.virtual_loop import VirtualLoop

_STATES: Final = 50
"""So many states, at equal intervals, are what means over time are of."""


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """What another configuration would have come to.

    Attributes:
        stories: what has become of each pod, by uid.
        recorded_nodes: the node that the recorded scheduler chose last for each pod, by uid.
        started_s: when it began, in seconds since the epoch.
        damage: why the recording was not read to its end; "" if it was.
        left_out: what the recording lacks.
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
    onlooker: Onlooker | None = None,
    prepare: Callable[[Scheduler], None] = lambda _: None,
    is_wanted: Callable[[], bool] | None = None,
) -> Counterfactual:
    """Replay a recording to its end with any configuration.

    Args:
        is_wanted: asked again and again; the replay is given up once it says no.
        onlooker: is told of pods and nodes.
        prepare: called with the scheduler before anything runs.

    Raises:
        RecordingError: there is no recording, it cannot be read, or another version of podium is needed.
        AbandonedError: it was given up.
    """
    segments = checked_segments(directory)
    if is_watched(segments):
        raise RecordingError(f"{directory} was recorded beside another scheduler, and holds no decisions of podium's")
    options = recorded_options(segments.description, plugins)
    outside = read_outside(entries_of(segments))
    with garbage_collection.rare_collections(), asyncio.Runner(loop_factory=partial(VirtualLoop, is_wanted)) as runner:
        world = runner.run(_play(outside, config, options, prepare, onlooker))
    api = world.api
    numbers = outcomes(api.stories.values(), world.states, attempts=world.attempts, preemptions=api.preemptions)
    return Counterfactual(numbers, api.stories, outside.placed, outside.wall_s, segments.damage, segments.left_out)


class _VirtualClock:
    def __init__(self, loop: VirtualLoop, wall_s: float) -> None:
        self.monotonic = loop.time
        self._wall_s = wall_s

    def now(self) -> float:
        """The wall clock."""
        return self._wall_s + self.monotonic()


class _Consistent:
    """Implements `podium.daemon.boundary.StoresState`: nothing is listed again."""

    changes = 0
    is_consistent = True

    def wait_s(self) -> float:
        """Nothing is waited for."""
        return 0.0


class _World(Surroundings):
    """A scheduler's surroundings."""

    def __init__(
        self, outside: Outside, loop: VirtualLoop, scheduler_names: frozenset[str], onlooker: Onlooker | None
    ) -> None:
        self.api = SimulatedApi(outside, loop.time, scheduler_names)
        self.attempts = 0
        self.states: list[State] = []
        self._attempt_s = outside.attempt_s
        self._loop = loop
        self._onlooker = onlooker

    def api_client(self, dispatcher: Dispatcher, clock: Clock) -> ApiClient:
        """A client of the simulated API."""
        return SimulatedClient(self.api, dispatcher, clock)

    def stores(self, state: StoresState) -> StoresState:
        """They are always consistent."""
        del state
        return _Consistent()

    def watched(self, informer: Informer[Any]) -> None:
        """Let the API show changes to it."""
        self.api.watched(informer)
        if self._onlooker is not None:
            informer.add_handler(_Shown(self._onlooker, informer.resource, self._loop.time))

    def on_decision(
        self, info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision, started_s: float, seconds: float
    ) -> None:
        """Let an attempt take its typical time."""
        del info, cycle, decision, started_s, seconds
        self.attempts += 1
        self._loop.spend(self._attempt_s)

    def on_failure(self, pod: Pod, result: str, message: str, seconds: float) -> None:
        """It has been counted."""


class _Shown:
    """Implements `podium.client.informer.Handler`: tells an onlooker of the objects of one kind."""

    def __init__(self, onlooker: Onlooker, resource: ResourceType[Any], now: Callable[[], float]) -> None:
        self._onlooker, self._resource, self._now = onlooker, resource, now

    def on_add(self, new: KubeObject, /) -> None:
        """It was added."""
        self._onlooker.reach(self._now())
        self._onlooker.put(self._resource, new)

    def on_update(self, old: KubeObject, new: KubeObject, /) -> None:
        """It has changed."""
        del old
        self.on_add(new)

    def on_delete(self, old: KubeObject, /) -> None:
        """It was deleted."""
        self._onlooker.reach(self._now())
        self._onlooker.drop(self._resource, old)

    def on_broken(self, broken: BrokenObject, /) -> None:
        """No object of a recording is."""


async def _play(
    outside: Outside,
    config: KubeSchedulerConfiguration,
    options: Options,
    prepare: Callable[[Scheduler], None],
    onlooker: Onlooker | None,
) -> _World:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    world = _World(outside, loop, frozenset(each.scheduler_name for each in config.profiles), onlooker)
    scheduler = scheduler_within(world, config, options, _VirtualClock(loop, outside.wall_s))
    prepare(scheduler)
    for entry in outside.initial:
        world.api.take_in(entry)
    tasks = [asyncio.ensure_future(run()) for run in scheduler.tasks.values()]
    feeding = [_feed(world.api, outside), _look(world, outside)]
    failed = asyncio.gather(*tasks)
    both = asyncio.gather(*feeding)
    try:
        await asyncio.wait((failed, both), return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()
    finally:
        failed.cancel()
        await asyncio.gather(failed, return_exceptions=True)
    await both
    return world


async def _feed(api: SimulatedApi, outside: Outside) -> None:
    """Show each change at its time, and wait for what is under way at the end."""
    loop = asyncio.get_running_loop()
    for change in outside.changes:
        if change.at_s > loop.time():
            await asyncio.sleep(change.at_s - loop.time())
        api.take_in(change.entry)
    await asyncio.sleep(max(outside.ended_s - loop.time(), 0.0) + 2 * outside.bound_after_s)


async def _look(world: _World, outside: Outside) -> None:
    """Note the cluster's state at equal intervals."""
    first = [item for entry in outside.initial if isinstance(item := _item(entry), Pod)]
    later = [item for change in outside.changes if isinstance(item := _item(change.entry), Pod)]
    typical = typical_requests(list({pod.uid: pod for pod in (*first, *later)}.values()))
    for _ in range(_STATES):
        await asyncio.sleep(outside.ended_s / _STATES)
        world.states.append(state_of(world.api.nodes, world.api.pods, typical))


def _item(entry: tape.Entry) -> Any:
    return tape.item_of(entry) if entry[0] == tape.PUT else None
