"""The pod-group cycle: tries all waiting pods of a group on one snapshot, and decides what becomes of each of them.

Owns the simulation in which the pods take their places one after the other, and what its result means for each pod.
Nothing outlives it but the rotation: whatever a plugin has reserved in it is taken back, and the caller places the pods
for good, one by one, with the nodes that were found.

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
from podium.engine.placing import Engine, Placed
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

    A nominated node of None leaves the nomination as it is, "" clears it.
    """

    status: Status
    nominated_node_name: str | None = ""


MemberDecision: TypeAlias = Suggested | DoesNotFit | Failed | RejectedWithGroup


class Member(NamedTuple):
    """What becomes of one pod of the group. `cycle` is the attempt at it, to be continued if it has a node."""

    cycle: Cycle
    decision: MemberDecision


class Eviction(NamedTuple):
    """What PostFilter has found for one pod: its victims, and the node where they make room."""

    pod: Pod
    help: PostFilterResult


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """What becomes of a group.

    Attributes:
        status: why it is not scheduled; None if it is.
        waits_for_preemption: whether it will fit once victims are gone.
        members: in the order of the pods. If the group is scheduled, those with a node are to be placed.
        evictions: the victims that pods of the group have found, which are evicted whatever becomes of the group.
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
        """The condition to write to the group; None if it stays: a group that was scheduled once remains so."""
        status, before = self.status, group.condition(POD_GROUP_SCHEDULED)
        if status is not None and before is not None and before.status == "True":
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
class _Tried:
    """One pod in a simulation.

    Attributes:
        decision: without victims, which are in `eviction`.
        placed: how it was placed; None if no node was found for it, or it was rejected there.
        requires_preemption: whether it is placed where victims would have to go first.
    """

    cycle: Cycle
    decision: Decision
    placed: Placed | None = None
    requires_preemption: bool = False
    eviction: Eviction | None = None

    @property
    def error(self) -> Status | None:
        """The status of an attempt that has failed for a reason other than that the pod does not fit."""
        decision = self.decision
        return decision.status if isinstance(decision, Failed) and not decision.status.is_rejected else None


@dataclass(slots=True)
class Trial:
    """One simulation of the whole group; `status` as in `GroupDecision`.

    `search_ended` says that the search for another placement was given up; "" if it was not.
    """

    tried: list[_Tried]
    status: Status | None = _REJECTED
    waits_for_preemption: bool = False
    search_ended: str = ""

    @property
    def placed_pods(self) -> Sequence[Pod]:
        """The pods that have a place."""
        return [each.cycle.pod for each in self.tried if each.placed is not None]


class PodGroupCycle:
    """One attempt at a group.

    Args:
        frameworks: the profiles by scheduler name.
        rules: how pods are scheduled in groups.
        key: the group's key; `group` is its object, None if there is none.
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
        """Decide what becomes of the group."""
        names = list(dict.fromkeys(pod.spec.scheduler_name for pod in self._pods))
        if len(names) > 1:
            return self._failed(
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{names[1]}" and "{names[0]}"'
            )
        trial = yield from self._algorithm(self._snapshot)
        if trial.status is not None and trial.status.code is Code.UNSCHEDULABLE:
            trial = yield from self._search(trial)
        victims: tuple[Pod, ...] = ()
        status = trial.status
        if self._rules.are_preempted_for and status is not None and status.code is Code.UNSCHEDULABLE:
            helped = yield from self._preempt()
            if isinstance(helped, GroupHelp):
                victims, trial.waits_for_preemption = helped.victims, True
            elif helped.is_rejected:
                trial.status = Status(status.code, (*status.reasons, helped.message), error=status.error)
            else:
                trial.status = helped
        return self._decision(trial, victims)

    # ------------------------------------------------------------ placements and preemption

    def _algorithm(self, snapshot: Snapshot, *, makes_room: bool = True) -> Steps[Trial]:
        """Try the group on all nodes, or in each placement that the profile generates for it."""
        if not self._rules.are_placed_by_topology:
            return (yield from self._try_all(snapshot, makes_room=makes_room))
        placements, status = generate_placements(self._framework, self._key, self._state, snapshot)
        if status is not None:
            return Trial([], status)
        first: Trial | None = None
        good: list[tuple[Placement, Trial]] = []
        for placement in placements:
            is_whole = len(placement.rows) == len(snapshot.order)
            nodes = snapshot if is_whole else snapshot.restricted_to(placement.rows)
            trial = yield from self._try_all(nodes, makes_room=makes_room)
            if trial.status is not None and not trial.status.is_rejected:
                return trial
            first = first or trial
            if trial.status is None or trial.waits_for_preemption:
                good.append((placement, trial))
        assert first is not None
        if not good:
            text = f"0/{len(placements)} placements are available, first placement status: {_UNSCHEDULABLE}"
            first.status = Status(Code.UNSCHEDULABLE, (text,))
            return first
        if len(good) == 1:
            return good[0][1]
        proposed = [ProposedGroup(self._state, placement, trial.placed_pods) for placement, trial in good]
        best = best_placement(self._framework, proposed, snapshot)
        return Trial([], best) if isinstance(best, Status) else good[best][1]

    def _search(self, trial: Trial) -> Steps[Trial]:
        """Look for a placement that upstream's way has missed, if the profile asks for that."""
        gang, group = self._framework.plugins.get(GangScheduling.name), self._group
        needed = None if group is None or group.min_count is None else group.min_count - self._state.scheduled_count
        if not isinstance(gang, GangScheduling) or not gang.search_steps_max or needed is None:
            return trial
        placements = [self._snapshot]
        if self._rules.are_placed_by_topology:
            generated, _ = generate_placements(self._framework, self._key, self._state, self._snapshot)
            placements = [self._snapshot.restricted_to(each.rows) for each in generated]
        budget = Budget(gang.search_steps_max)
        for snapshot in placements:
            simulated = SimulatedCache(snapshot, self._snapshot.pods, self._state)
            engine = replace(self._engine, cache=simulated)
            found = yield from GroupSearch(engine, simulated, self._framework, self._pods, needed, budget).run()
            if found is not None:
                tried = [_Tried(each.cycle, each.decision, each.placed) for each in found]
                return Trial(tried, None)
        if budget.has_missed:
            ended = f"the search for a placement ended after {gang.search_steps_max} steps"
            before = trial.status
            assert before is not None
            trial.status = Status(Code.UNSCHEDULABLE, (*before.reasons, ended), error=before.error)
            trial.search_ended = ended
        return trial

    def _preempt(self) -> Steps[GroupHelp | Status]:
        """Look for pods that can be evicted for the group as a whole."""
        plugins = self._framework.pod_group_post_filter
        if not plugins:
            return unschedulable("default preemption plugin is not registered, workload aware preemption is disabled")
        group = self._group
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

    def _try_all(self, snapshot: Snapshot, *, makes_room: bool = True) -> Steps[Trial]:
        """Try one pod after the other; each counts for those that follow. At the end all of them are taken back."""
        simulated = SimulatedCache(snapshot, self._snapshot.pods, self._state)
        engine = replace(self._engine, cache=simulated)
        trial = Trial([])
        requires_preemption = False
        try:
            for pod in self._pods:
                yield PAUSE
                tried = yield from self._try(engine, simulated, pod, makes_room=makes_room)
                trial.tried.append(tried)
                if tried.error is not None:
                    trial.status = error_status(f"failed to schedule other pod from a pod group: {tried.error.message}")
                    trial.waits_for_preemption = False
                    break
                if tried.placed is None:
                    continue
                requires_preemption |= tried.requires_preemption
                if tried.placed.waits:
                    continue
                # Permit lets one pod through, so the group is complete.
                trial.waits_for_preemption = requires_preemption
                trial.status = (
                    Status(Code.UNSCHEDULABLE, (_WAITING,), error=_UNSCHEDULABLE) if requires_preemption else None
                )
        finally:
            for tried in reversed(trial.tried):
                if tried.placed is not None:
                    engine.take_back(tried.placed)
        return trial

    def _try(self, engine: Engine, simulated: SimulatedCache, pod: Pod, *, makes_room: bool) -> Steps[_Tried]:
        simulated.show_to(pod)
        cycle = engine.cycle(self._frameworks[pod.spec.scheduler_name], pod)
        cycle.makes_room = makes_room
        cycle.state.write(SimulatedGroup(simulated.group))
        decision = yield from engine.attempt(cycle)
        eviction: Eviction | None = None
        if isinstance(decision, DoesNotFit) and decision.post_filter is not None and decision.post_filter.victims:
            eviction = Eviction(pod, decision.post_filter)
            decision = replace(decision, post_filter=PostFilterResult(decision.post_filter.nominated_node_name))
        node_name = _node_of(decision)
        if not node_name:
            return _Tried(cycle, decision, eviction=eviction)
        placed = engine.place(cycle, node_name)
        if placed.status is not None:
            engine.take_back(placed)
            row = cycle.snapshot.row_of[node_name]
            return _Tried(cycle, _rejected(row, placed.status), eviction=eviction)
        return _Tried(cycle, decision, placed, isinstance(decision, DoesNotFit), eviction)

    # ------------------------------------------------------------ what it means for each pod

    def _decision(self, trial: Trial, victims: tuple[Pod, ...]) -> GroupDecision:
        members = [Member(each.cycle, _meaning(each, trial)) for each in trial.tried]
        left = self._pods[len(members) :]
        status = trial.status
        if left:
            assert status is not None
            nominated = None if status.is_rejected else ""
            members += [Member(self._cycle(pod), RejectedWithGroup(status, nominated)) for pod in left]
        for cycle, _ in members:
            cycle.state.write(SimulatedGroup(None))
        evictions = [each.eviction for each in trial.tried if each.eviction is not None]
        return GroupDecision(status, trial.waits_for_preemption, members, evictions, victims)

    def _failed(self, problem: str) -> GroupDecision:
        status = error_status(problem)
        return GroupDecision(
            status, waits_for_preemption=False, members=[Member(self._cycle(pod), Failed(status)) for pod in self._pods]
        )

    def _cycle(self, pod: Pod) -> Cycle:
        return self._engine.cycle(self._frameworks[pod.spec.scheduler_name], pod)


def _node_of(decision: Decision) -> str:
    """The node on which the pod counts for the pods that follow; "" if there is none."""
    if isinstance(decision, Suggested):
        return decision.node_name
    helped = decision.post_filter if isinstance(decision, DoesNotFit) else None
    return helped.nominated_node_name if helped is not None else ""


def _rejected(row: int, status: Status) -> Decision:
    """The decision for a pod that Reserve or Permit rejected."""
    return DoesNotFit(rejected_on(row, status), _NO_NOMINATION) if status.is_rejected else Failed(status)


def _meaning(tried: _Tried, trial: Trial) -> MemberDecision:
    """What the result of the group means for one of its pods."""
    status, decision = trial.status, tried.decision
    if status is None:
        return decision
    if not status.is_rejected:
        return RejectedWithGroup(tried.error or status)
    if tried.placed is None:
        if isinstance(decision, DoesNotFit) and trial.search_ended:
            told = ", ".join(filter(None, (decision.error.post_filter_message, trial.search_ended)))
            return replace(decision, error=replace(decision.error, post_filter_message=told))
        return decision
    if trial.waits_for_preemption:
        return decision if tried.requires_preemption else RejectedWithGroup(status, tried.placed.node_name)
    permit = tuple(filter(None, (tried.placed.waits_for, trial.search_ended)))
    return RejectedWithGroup(Status(Code.UNSCHEDULABLE, permit, error=_UNSCHEDULABLE))
