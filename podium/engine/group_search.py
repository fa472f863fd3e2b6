"""The search for a placement of a whole gang: it tries every node, and every set of devices, for every pod.

Owns the order of the search and its end. Looks for one placement in which as many pods have a node as the gang needs;
the others are placed afterwards where possible. Pods are tried in upstream's order, and nodes in that of an attempt;
scores do not matter here.

Cost: exponential in the worst case, limited by a number of steps: one for each place of a pod that is tried. A state
that has failed is not tried again with equal pods in each other's places.
Differs: upstream tries each pod once, on its best node and with the first devices that suit it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from podium.engine.placing import Engine, PlacedPod
from podium.engine.simulated_cache import SimulatedCache
from podium.framework.contract.choosing import ChoosingPlugin
from podium.framework.contract.pod_groups import SimulatedGroup, ThoroughSearch
from podium.framework.contract.status import ScheduleError, Status
from podium.framework.contract.steps import PAUSE, Steps, run_unasked
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import FitError
from podium.framework.cycle.filter_chain import FilterChain
from podium.framework.cycle.pre_filter import run_pre_filter
from podium.framework.cycle.schedule import DoesNotFit, Suggested
from podium.framework.cycle.search import Rotation, Sampling, search_around
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod

_ALL_NODES: Final = 100
_WAYS_MAX: Final = 1000


@dataclass(slots=True)
class Budget:
    """The steps that are left. `has_missed`: some placements were not tried, for want of steps or as too many."""

    steps_left: int
    has_missed: bool = False

    @property
    def is_spent(self) -> bool:
        """True if a step was asked for when none was left."""
        return self.steps_left < 0

    def step(self) -> bool:
        """Take one step; return False if none is left."""
        self.steps_left -= 1
        self.has_missed = self.has_missed or self.is_spent
        return not self.is_spent


class MemberPlacement(NamedTuple):
    """One pod of the group's placement; `placed_pod` is None if the pod was left out."""

    cycle: Cycle
    decision: Suggested | DoesNotFit
    placed_pod: PlacedPod | None


@dataclass(slots=True)
class _Frame:
    """One level of the search: a pod, its present place, and the places that are left to try."""

    cycle: Cycle
    places: Iterator[tuple[int, str, int]]
    state: Hashable
    skips: int
    placement: MemberPlacement | None = None
    takes: Hashable = None
    has_been_left_out: bool = False


@dataclass(slots=True)
class GroupSearch:
    """One search, in a simulation that nothing else uses.

    Args:
        min_count: how many of the pods have to get a node.
    """

    engine: Engine
    cache: SimulatedCache
    framework: Framework
    pods: Sequence[Pod]
    min_count: int
    budget: Budget
    _stack: list[_Frame] = field(default_factory=list)
    _failed_states: set[Hashable] = field(default_factory=set)

    def run(self) -> Steps[Sequence[MemberPlacement] | None]:
        """Return the placement; None if there is no solution or the budget is spent. The simulation stays unchanged."""
        # An extender cannot be asked about a cluster that exists only in the simulation.
        if self.min_count > len(self.pods) or self.engine.extenders.have_a_say:
            return None
        try:
            self._descend(0)
            while self._stack:
                yield PAUSE
                frame = self._stack[-1]
                self._take_back(frame)
                if not self._next(frame):
                    if self.budget.is_spent:
                        return None
                    self._failed_states.add(frame.state)
                    self._stack.pop()
                elif len(self._stack) == len(self.pods):
                    return [frame.placement for frame in self._stack if frame.placement is not None]
                else:
                    self._descend(frame.skips + (frame.placement is None or frame.placement.placed_pod is None))
            return None
        finally:
            for frame in reversed(self._stack):
                # The simulation is given back as it was, also if the caller stops asking.
                self._take_back(frame, keeps=True)

    def _descend(self, skips: int) -> None:
        """Continue with the next pod."""
        pod = self.pods[len(self._stack)]
        take_counts = Counter(frame.takes for frame in self._stack)
        # As a set: whichever of several equal pods has a place, the rest of the search is the same.
        state = len(self._stack), skips, frozenset(take_counts.items())
        self.cache.show_to(pod)
        cycle = self.engine.cycle(self.framework, pod)
        # Evicting pods is the group's business as a whole, once no placement without that was found.
        cycle.makes_room = False
        cycle.state.write(SimulatedGroup(self.cache.group))
        cycle.state.write(ThoroughSearch(_WAYS_MAX))
        places = iter(()) if state in self._failed_states else self._places(cycle)
        frame = _Frame(cycle, places, state, skips)
        frame.has_been_left_out = state in self._failed_states
        self._stack.append(frame)

    def _places(self, cycle: Cycle) -> Iterator[tuple[int, str, int]]:
        """Yield each row, node name and way in which the pod fits."""
        try:
            names = run_pre_filter(cycle)
            if isinstance(names, Status):
                return
            search = search_around(cycle, FilterChain.of(cycle), names, Sampling(Rotation(), _ALL_NODES))
            rows = run_unasked(search).rows.tolist()
        except ScheduleError:
            # A search for devices that ended, or a plugin that failed: this pod has no place here.
            self.budget.has_missed = True
            return
        for row in rows:
            name = cycle.snapshot.name(row)
            counts = [plugin.ways(cycle.state, name) for plugin in self._choosing]
            self.budget.has_missed |= max(counts, default=1) >= _WAYS_MAX
            for way in range(max(counts, default=1)):
                yield row, name, way

    @property
    def _choosing(self) -> list[ChoosingPlugin]:
        return [plugin for plugin in self.framework.plugins.values() if isinstance(plugin, ChoosingPlugin)]

    def _next(self, frame: _Frame) -> bool:
        """Give the pod its next place, or leave it out if enough others remain; return False if nothing is left."""
        pod = frame.cycle.pod
        for row, name, way in frame.places:
            if not self.budget.step():
                return False
            takes = tuple(plugin.choose(frame.cycle.state, name, way) for plugin in self._choosing)
            placed_pod = self.engine.place(frame.cycle, name)
            if placed_pod.status is not None:
                self.engine.take_back(placed_pod)
                continue
            frame.placement = MemberPlacement(frame.cycle, Suggested(name, row, 0, 0), placed_pod)
            frame.takes = (row, id(pod.spec), frozenset(pod.metadata.labels.items()), takes)
            return True
        if frame.has_been_left_out or frame.skips >= len(self.pods) - self.min_count:
            return False
        frame.has_been_left_out = True
        cycle = frame.cycle
        error = FitError(len(cycle.snapshot.order), cycle.diagnosis)
        frame.placement = MemberPlacement(cycle, DoesNotFit(error, None), None)
        frame.takes = None
        return True

    def _take_back(self, frame: _Frame, *, keeps: bool = False) -> None:
        if frame.placement is not None and frame.placement.placed_pod is not None:
            self.engine.take_back(frame.placement.placed_pod)
        if not keeps:
            frame.placement = None
