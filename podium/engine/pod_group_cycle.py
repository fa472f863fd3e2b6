"""The pod-group cycle: tries all waiting pods of a group on one snapshot, and decides on each of them.

Owns the simulation in which the pods take their places one after the other, and the decision that follows for each pod.
Only the rotation outlives it: whatever plugins reserve in it is taken back, and the caller places the pods for good,
one by one, on the nodes of the decision.

Source: kubernetes pkg/scheduler/schedule_one_podgroup.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias

from podium.cluster import Snapshot
from podium.cluster.pod_groups import PodGroupState
from podium.config import PodGroupRules
from podium.engine.group_search import Budget, GroupSearch
from podium.engine.placing import Engine, PlacedPod
from podium.engine.simulated_cache import SimulatedCache
from podium.framework.contract.pod_groups import Placement, ProposedGroup, SimulatedGroup
from podium.framework.contract.post_filter import GroupHelp, PostFilterResult
from podium.framework.contract.status import Code, PluginError, Status, error_status, unschedulable
from podium.framework.contract.steps import PAUSE, Steps
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import rejected_on
from podium.framework.cycle.placements import best_placement, generate_placements
from podium.framework.cycle.schedule import Decision, DoesNotFit, Failed, Suggested
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod, PodCondition
from podium.objects.pod_groups import POD_GROUP_SCHEDULED, PodGroup
from podium.plugins.gang_scheduling import GangScheduling

_UNSCHEDULABLE: Final = PluginError("pod group is unschedulable")
_REJECTED: Final = Status(Code.UNSCHEDULABLE, error=_UNSCHEDULABLE)
_WAITING: Final = "pod group is waiting for preemption to complete"
_NO_NOMINATION: Final = PostFilterResult("")


@dataclass(frozen=True, slots=True)
class RejectedWithGroup:
    """The pod itself may have a node, but its group is not scheduled.

    A nominated node of None keeps the nomination, "" clears it.
    """

    status: Status
    nominated_node_name: str | None = ""


MemberDecision: TypeAlias = Suggested | DoesNotFit | Failed | RejectedWithGroup


class Member(NamedTuple):
    """The decision on one pod of the group. `cycle` is its attempt, which continues if the pod has a node."""

    cycle: Cycle
    decision: MemberDecision


class Eviction(NamedTuple):
    """The result of PostFilter for one pod: the victims, and the node where they make room."""

    pod: Pod
    help: PostFilterResult


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """The decision on a group.

    Attributes:
        status: why the group is not scheduled; None if it is.
        waits_for_preemption: whether the group will fit once victims are gone.
        members: the decisions in the order of the pods. If the group is scheduled, those with a node are to be placed.
        evictions: the victims for single pods of the group, which are evicted even if the group is not scheduled.
        victims: the pods to evict for the group as a whole.
    """

    status: Status | None
    waits_for_preemption: bool
    members: Sequence[Member]
    evictions: Sequence[Eviction] = ()
    victims: tuple[Pod, ...] = ()

    @property
    def result(self) -> Literal["scheduled", "unschedulable", "waiting_on_preemption", "error"]:
        """The label of the group's metrics."""
        if self.status is None:
            return "scheduled"
        if not self.status.is_rejected:
            return "error"
        return "waiting_on_preemption" if self.waits_for_preemption else "unschedulable"

    def condition(self, group: PodGroup) -> PodCondition | None:
        """Return the group's new condition; None if it stays, because a group that was scheduled once remains so."""
        status, old_condition = self.status, group.condition(POD_GROUP_SCHEDULED)
        if status is not None and old_condition is not None and old_condition.status == "True":
            return None
        reason = "Scheduled" if status is None else "Unschedulable" if status.is_rejected else "SchedulerError"
        return PodCondition(
            type=POD_GROUP_SCHEDULED,
            status="True" if status is None else "False",
            reason=reason,
            message="" if status is None else status.message,
            observed_generation=group.metadata.generation,
        )


@dataclass(frozen=True, slots=True)
class _MemberAttempt:
    """The attempt at one pod in a simulation.

    Attributes:
        decision: without victims, which are in `eviction`.
        placed_pod: the placement; None if no node fits, or Reserve or Permit rejected the pod.
        requires_preemption: whether victims would have to leave its node first.
    """

    cycle: Cycle
    decision: Decision
    placed_pod: PlacedPod | None = None
    requires_preemption: bool = False
    eviction: Eviction | None = None

    @property
    def error(self) -> Status | None:
        """The status of an attempt that failed with an error, not a rejection."""
        decision = self.decision
        return decision.status if isinstance(decision, Failed) and not decision.status.is_rejected else None


@dataclass(slots=True)
class Simulation:
    """One simulation of the whole group; `status` is that of `GroupDecision`.

    `search_ended` says that the search for another placement ran out of steps; "" if it did not.
    """

    attempts: list[_MemberAttempt]
    status: Status | None = _REJECTED
    waits_for_preemption: bool = False
    search_ended: str = ""

    @property
    def placed_pods(self) -> Sequence[Pod]:
        """The pods that have a place."""
        return [attempt.cycle.pod for attempt in self.attempts if attempt.placed_pod is not None]


class PodGroupCycle:
    """One attempt at a group.

    Args:
        frameworks: the profiles by scheduler name.
        rules: how pods are scheduled in groups.
        key, group: the group's key and its object; None if the object does not exist.
        pods: the waiting pods of the group, in the order in which they are tried.
        state: the known pods of the group.
    """

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

    def attempt(self) -> Steps[GroupDecision]:
        """Decide on the group."""
        # A group has one profile, because its placements and its preemption are those of one set of plugins.
        names = list(dict.fromkeys(pod.spec.scheduler_name for pod in self._pods))
        if len(names) > 1:
            return self._fail(
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{names[1]}" and "{names[0]}"'
            )
        simulation = yield from self._algorithm(self._snapshot)
        # Only a rejection is worth a search: after an error, the plugins would fail again.
        if simulation.status is not None and simulation.status.code is Code.UNSCHEDULABLE:
            simulation = yield from self._search(simulation)
        victims: tuple[Pod, ...] = ()
        status = simulation.status
        if self._rules.are_preempted_for and status is not None and status.code is Code.UNSCHEDULABLE:
            result = yield from self._preempt()
            if isinstance(result, GroupHelp):
                victims, simulation.waits_for_preemption = result.victims, True
            elif result.is_rejected:
                simulation.status = Status(status.code, (*status.reasons, result.message), error=status.error)
            else:
                simulation.status = result
        return self._decision(simulation, victims)

    # ------------------------------------------------------------ placements and preemption

    def _algorithm(self, snapshot: Snapshot, *, makes_room: bool = True) -> Steps[Simulation]:
        """Try the group on all nodes, or in each placement that the profile generates for it."""
        if not self._rules.are_placed_by_topology:
            return (yield from self._try_all(snapshot, makes_room=makes_room))
        placements, status = generate_placements(self._framework, self._key, self._state, snapshot)
        if status is not None:
            return Simulation([], status)
        first: Simulation | None = None
        good: list[tuple[Placement, Simulation]] = []
        for placement in placements:
            # A restricted snapshot copies the columns, which the placement on all nodes does not need.
            is_whole = len(placement.rows) == len(snapshot.order)
            nodes = snapshot if is_whole else snapshot.restricted_to(placement.rows)
            simulation = yield from self._try_all(nodes, makes_room=makes_room)
            if simulation.status is not None and not simulation.status.is_rejected:
                return simulation
            # Upstream's message for a group that fits nowhere quotes the first placement alone.
            first = first or simulation
            if simulation.status is None or simulation.waits_for_preemption:
                good.append((placement, simulation))
        assert first is not None
        if not good:
            text = f"0/{len(placements)} placements are available, first placement status: {_UNSCHEDULABLE}"
            first.status = Status(Code.UNSCHEDULABLE, (text,))
            return first
        if len(good) == 1:
            return good[0][1]
        proposed = [ProposedGroup(self._state, placement, simulation.placed_pods) for placement, simulation in good]
        best = best_placement(self._framework, proposed, snapshot)
        return Simulation([], best) if isinstance(best, Status) else good[best][1]

    def _search(self, simulation: Simulation) -> Steps[Simulation]:
        """Search thoroughly for a placement that upstream's algorithm misses, if the profile enables that."""
        gang, group = self._framework.plugins.get(GangScheduling.name), self._group
        # Members that have a node count for the gang already, so that many fewer must be found.
        count = None if group is None or group.min_count is None else group.min_count - self._state.scheduled_count
        if not isinstance(gang, GangScheduling) or not gang.search_steps_max or count is None:
            return simulation
        placements = [self._snapshot]
        if self._rules.are_placed_by_topology:
            generated, _ = generate_placements(self._framework, self._key, self._state, self._snapshot)
            placements = [self._snapshot.restricted_to(placement.rows) for placement in generated]
        budget = Budget(gang.search_steps_max)
        for snapshot in placements:
            cache = SimulatedCache(snapshot, self._snapshot.pods, self._state)
            engine = replace(self._engine, cache=cache)
            members = yield from GroupSearch(engine, cache, self._framework, self._pods, count, budget).run()
            if members is not None:
                attempts = [_MemberAttempt(member.cycle, member.decision, member.placed_pod) for member in members]
                return Simulation(attempts, None)
        if budget.has_missed:
            message = f"the search for a placement ended after {gang.search_steps_max} steps"
            old_status = simulation.status
            assert old_status is not None
            simulation.status = Status(Code.UNSCHEDULABLE, (*old_status.reasons, message), error=old_status.error)
            simulation.search_ended = message
        return simulation

    def _preempt(self) -> Steps[GroupHelp | Status]:
        """Look for pods that can be evicted for the group as a whole."""
        plugins = self._framework.pod_group_post_filter
        if not plugins:
            return unschedulable("default preemption plugin is not registered, workload aware preemption is disabled")
        group = self._group
        # The group may be deleted while its pods are tried; this is the error of upstream's lister.
        if group is None:
            name = self._key.partition("/")[2]
            return error_status(f'failed to get pod group object: podgroup.scheduling.k8s.io "{name}" not found')
        if group.topology_key is not None:
            return unschedulable(
                "workload aware preemption is not supported for pod groups with scheduling constraints"
            )
        return (yield from plugins[0].pod_group_post_filter(group, self._pods, self._snapshot, self._fits))

    def _fits(self, snapshot: Snapshot) -> Steps[Status | None]:
        """Try the group on a fork, without making room for single pods."""
        return (yield from self._algorithm(snapshot, makes_room=False)).status

    # ------------------------------------------------------------ the simulation

    def _try_all(self, snapshot: Snapshot, *, makes_room: bool = True) -> Steps[Simulation]:
        """Try one pod after the other. Placed pods count for those that follow, and are all taken back at the end."""
        cache = SimulatedCache(snapshot, self._snapshot.pods, self._state)
        engine = replace(self._engine, cache=cache)
        simulation = Simulation([])
        requires_preemption = False
        try:
            for pod in self._pods:
                yield PAUSE
                attempt = yield from self._try(engine, cache, pod, makes_room=makes_room)
                simulation.attempts.append(attempt)
                if attempt.error is not None:
                    # As upstream: one error fails the whole group, and the pods that follow are not tried.
                    message = f"failed to schedule other pod from a pod group: {attempt.error.message}"
                    simulation.status = error_status(message)
                    simulation.waits_for_preemption = False
                    break
                if attempt.placed_pod is None:
                    continue
                requires_preemption |= attempt.requires_preemption
                if attempt.placed_pod.waits:
                    continue
                # Permit lets one pod through, so the group is complete.
                simulation.waits_for_preemption = requires_preemption
                simulation.status = (
                    Status(Code.UNSCHEDULABLE, (_WAITING,), error=_UNSCHEDULABLE) if requires_preemption else None
                )
        finally:
            # In reverse, so that each plugin finds the state that its own Reserve left.
            for attempt in reversed(simulation.attempts):
                if attempt.placed_pod is not None:
                    engine.take_back(attempt.placed_pod)
        return simulation

    def _try(self, engine: Engine, cache: SimulatedCache, pod: Pod, *, makes_room: bool) -> Steps[_MemberAttempt]:
        cache.show_to(pod)
        cycle = engine.cycle(self._frameworks[pod.spec.scheduler_name], pod)
        cycle.makes_room = makes_room
        cycle.state.write(SimulatedGroup(cache.group))
        decision = yield from engine.attempt(cycle)
        eviction: Eviction | None = None
        # Upstream keeps the victims in the snapshot: later members see an overfull node, and may name the same victims.
        if isinstance(decision, DoesNotFit) and decision.post_filter is not None and decision.post_filter.victims:
            eviction = Eviction(pod, decision.post_filter)
            decision = replace(decision, post_filter=PostFilterResult(decision.post_filter.nominated_node_name))
        node_name = _node_of(decision)
        if not node_name:
            return _MemberAttempt(cycle, decision, eviction=eviction)
        placed_pod = engine.place(cycle, node_name)
        if placed_pod.status is not None:
            engine.take_back(placed_pod)
            row = cycle.snapshot.row_of[node_name]
            return _MemberAttempt(cycle, _decision_of_rejection(row, placed_pod.status), eviction=eviction)
        return _MemberAttempt(cycle, decision, placed_pod, isinstance(decision, DoesNotFit), eviction)

    # ------------------------------------------------------------ the decision on each pod

    def _decision(self, simulation: Simulation, victims: tuple[Pod, ...]) -> GroupDecision:
        members = [Member(attempt.cycle, _meaning(attempt, simulation)) for attempt in simulation.attempts]
        untried_pods = self._pods[len(members) :]
        status = simulation.status
        if untried_pods:
            assert status is not None
            nomination = None if status.is_rejected else ""
            members += [Member(self._cycle(pod), RejectedWithGroup(status, nomination)) for pod in untried_pods]
        # From now on the members are attempts as any other; the simulation that they read has been undone.
        for cycle, _ in members:
            cycle.state.write(SimulatedGroup(None))
        evictions = [attempt.eviction for attempt in simulation.attempts if attempt.eviction is not None]
        return GroupDecision(status, simulation.waits_for_preemption, members, evictions, victims)

    def _fail(self, problem: str) -> GroupDecision:
        status = error_status(problem)
        return GroupDecision(
            status, waits_for_preemption=False, members=[Member(self._cycle(pod), Failed(status)) for pod in self._pods]
        )

    def _cycle(self, pod: Pod) -> Cycle:
        return self._engine.cycle(self._frameworks[pod.spec.scheduler_name], pod)


def _node_of(decision: Decision) -> str:
    """Return the node on which the pod counts for the pods that follow; "" if it counts on no node."""
    if isinstance(decision, Suggested):
        return decision.node_name
    post_filter = decision.post_filter if isinstance(decision, DoesNotFit) else None
    return post_filter.nominated_node_name if post_filter is not None else ""


def _decision_of_rejection(row: int, status: Status) -> Decision:
    """Return the decision for a pod that Reserve or Permit rejected."""
    return DoesNotFit(rejected_on(row, status), _NO_NOMINATION) if status.is_rejected else Failed(status)


def _meaning(attempt: _MemberAttempt, simulation: Simulation) -> MemberDecision:
    """Return the decision on one pod, given the result of the group."""
    status, decision = simulation.status, attempt.decision
    if status is None:
        return decision
    if not status.is_rejected:
        return RejectedWithGroup(attempt.error or status)
    if attempt.placed_pod is None:
        if isinstance(decision, DoesNotFit) and simulation.search_ended:
            message = ", ".join(filter(None, (decision.error.post_filter_message, simulation.search_ended)))
            return replace(decision, error=replace(decision.error, post_filter_message=message))
        return decision
    # No member may bind before the victims are gone, so one that fits already only keeps its place by a nomination.
    if simulation.waits_for_preemption:
        return decision if attempt.requires_preemption else RejectedWithGroup(status, attempt.placed_pod.node_name)
    permit = tuple(filter(None, (attempt.placed_pod.waits_for, simulation.search_ended)))
    return RejectedWithGroup(Status(Code.UNSCHEDULABLE, permit, error=_UNSCHEDULABLE))
