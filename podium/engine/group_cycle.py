"""What the cycles of pod groups have in common: placements, and the search for a placement that upstream misses.

Owns the search over placements. How a group is tried in one of them is up to the cycle.

Source: kubernetes pkg/scheduler/schedule_one_podgroup.go (podGroupSchedulingPlacementAlgorithm), v1.36.2 and v1.37.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, TypeAlias

from podium.cluster import Snapshot
from podium.cluster.pod_groups import PodGroupState
from podium.config import PodGroupRules
from podium.engine.group_decisions import GroupDecision, Member, MemberAttempt, Simulation
from podium.engine.group_search import Budget, GroupSearch
from podium.engine.placing import Engine
from podium.engine.simulated_cache import SimulatedCache
from podium.framework.contract.pod_groups import Placement, ProposedGroup
from podium.framework.contract.status import Code, PluginError, Status, error_status
from podium.framework.contract.steps import Steps
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.placements import best_placement, generate_placements
from podium.framework.cycle.schedule import Failed
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod
from podium.objects.pod_groups import PodGroup
from podium.plugins.gang_scheduling import GangScheduling

TryAll: TypeAlias = Callable[[Snapshot], Steps[Simulation]]
"""Tries the group on the nodes of a snapshot."""


class GroupCycle:
    """One attempt at a group.

    Args:
        frameworks: the profiles by scheduler name.
        rules: how pods are scheduled in groups.
        key, group: the group's key and its object; None if the object does not exist.
        pods: the waiting pods of the group, in the order in which they are tried.
        state: the known pods of the group.

    Attributes:
        condition_type: that of the group's condition.
        hides_terms: whether the pods of the group do not see each other's affinity terms in a simulation, in which the
            Permit plugins are asked. Otherwise they see each other as they do later.
        no_placement: what the message begins with if the group fits in none of its placements.
    """

    condition_type: ClassVar[str]
    hides_terms: ClassVar[bool]
    no_placement: ClassVar[PluginError | None]

    def __init__(
        self,
        engine: Engine,
        frameworks: Mapping[str, Framework],
        rules: PodGroupRules,
        key: str,
        group: PodGroup | None,
        pods: Sequence[Pod],
        state: PodGroupState,
    ) -> None:
        self._engine = engine
        self._frameworks = frameworks
        self._framework = frameworks[pods[0].spec.scheduler_name]
        self._rules = rules
        self._key = key
        self._group = group
        self._pods = pods
        self._state = state
        self._snapshot = engine.cache.snapshot()

    # ------------------------------------------------------------ placements

    def _algorithm(self, snapshot: Snapshot, try_all: TryAll) -> Steps[Simulation]:
        """Try the group on all nodes, or in each placement that the profile generates for it."""
        if not self._rules.are_placed_by_topology:
            return (yield from try_all(snapshot))
        placements, status = generate_placements(self._framework, self._key, self._state, snapshot)
        if status is not None:
            return Simulation([], status)
        framework = self._framework
        framework.observer.count_placements(framework.name, len(placements))
        first: Simulation | None = None
        good: list[tuple[Placement, Simulation]] = []
        for placement in placements:
            is_whole = len(placement.rows) == len(snapshot.order)
            nodes = snapshot if is_whole else snapshot.restricted_to(placement.rows)
            started_s = framework.clock.monotonic()
            simulation = yield from try_all(nodes)
            if simulation.status is not None and not simulation.status.is_rejected:
                return simulation
            first = first or simulation
            if simulation.status is None or simulation.waits_for_preemption:
                good.append((placement, simulation))
            seconds = framework.clock.monotonic() - started_s
            framework.observer.observe_placement(framework.name, seconds, is_feasible=simulation.status is None)
        assert first is not None
        if not good:
            assert first.status is not None
            problem = first.status.error or first.status.message
            text = f"0/{len(placements)} placements are available, first placement status: {problem}"
            first.status = Status(Code.UNSCHEDULABLE, (text,), error=self.no_placement)
            return first
        if len(good) == 1:
            return good[0][1]
        proposed = [ProposedGroup(self._state, placement, simulation.placed_pods) for placement, simulation in good]
        best = best_placement(self._framework, proposed, snapshot)
        return Simulation([], best) if isinstance(best, Status) else good[best][1]

    def _search(self, simulation: Simulation) -> Steps[Simulation]:
        """Search thoroughly for a placement that upstream's algorithm misses, if the profile enables that."""
        gang, group = self._framework.plugins.get(GangScheduling.name), self._group
        count = None if group is None or group.min_count is None else group.min_count - self._state.scheduled_count
        if not isinstance(gang, GangScheduling) or not gang.search_steps_max or count is None:
            return simulation
        placements = [self._snapshot]
        if self._rules.are_placed_by_topology:
            generated, _ = generate_placements(self._framework, self._key, self._state, self._snapshot)
            placements = [self._snapshot.restricted_to(placement.rows) for placement in generated]
        budget = Budget(gang.search_steps_max)
        for snapshot in placements:
            cache = self._simulated_cache(snapshot)
            engine = replace(self._engine, cache=cache, asks_permit=self.hides_terms)
            members = yield from GroupSearch(engine, cache, self._framework, self._pods, count, budget).run()
            if members is not None:
                attempts = [MemberAttempt(member.cycle, member.decision, member.placed_pod) for member in members]
                return Simulation(attempts, None)
        if budget.has_missed:
            message = f"the search for a placement ended after {gang.search_steps_max} steps"
            old_status = simulation.status
            assert old_status is not None
            simulation.status = Status(Code.UNSCHEDULABLE, (*old_status.reasons, message), error=old_status.error)
            simulation.search_ended = message
        return simulation

    def attempt(self) -> Steps[GroupDecision]:
        """Decide on the group."""
        raise NotImplementedError

    def _simulated_cache(self, snapshot: Snapshot) -> SimulatedCache:
        """Fork the nodes, for the pods of the group to take their places."""
        return SimulatedCache(snapshot, self._snapshot.pods if self.hides_terms else None, self._state)

    # ------------------------------------------------------------ groups that are not tried

    def _fail(self, problem: str, *, writes_condition: bool = True) -> GroupDecision:
        status = error_status(problem)
        members = [Member(self._cycle(pod), Failed(status)) for pod in self._pods]
        return GroupDecision(
            status,
            waits_for_preemption=False,
            members=members,
            condition_type=self.condition_type if writes_condition else "",
            status_before_help=status,
        )

    def _cycle(self, pod: Pod) -> Cycle:
        return self._engine.cycle(self._frameworks[pod.spec.scheduler_name], pod)


def other_scheduler(pods: Iterable[Pod]) -> str | None:
    """Describe the problem that the pods name different schedulers; None if all name the same."""
    names = list(dict.fromkeys(pod.spec.scheduler_name for pod in pods))
    if len(names) < 2:
        return None
    return (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        f'got: "{names[1]}" and "{names[0]}"'
    )
