"""The pod-group cycle: tries all waiting pods of a group on one snapshot, and decides on each of them.

Owns the simulation in which the pods take their places one after the other, and the decision that follows for each pod.
Only the rotation outlives it: whatever plugins reserve in it is taken back, and the caller places the pods for good,
one by one, on the nodes of the decision.

Source: kubernetes pkg/scheduler/schedule_one_podgroup.go, v1.37.2.
Differs: the group is not searched for in the snapshot: its object is that of the moment at which the attempt began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from podium.cluster import Snapshot
from podium.cluster.pod_groups import PodGroupState
from podium.engine.group_cycle import GroupCycle, other_scheduler
from podium.engine.group_decisions import (
    UNSCHEDULABLE_GROUP,
    GroupDecision,
    Member,
    MemberAttempt,
    MemberDecision,
    RejectedWithGroup,
    Simulation,
    decision_of_rejection,
)
from podium.engine.placing import Engine
from podium.engine.simulated_cache import SimulatedCache
from podium.framework.contract.group_post_filter import GroupHelp, PodAttempt, UnscheduledGroup
from podium.framework.contract.pod_groups import SimulatedGroup
from podium.framework.contract.post_filter import PostFilterResult
from podium.framework.contract.status import Code, Status, error_status
from podium.framework.contract.steps import PAUSE, Steps
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.group_dry_runs import ForkedGroupDryRun, ProposedPod
from podium.framework.cycle.group_post_filter import run_pod_group_post_filter
from podium.framework.cycle.schedule import DoesNotFit, Failed, Suggested
from podium.objects.core import Pod, PodSpec
from podium.objects.pod_groups import POD_GROUP_INITIALLY_SCHEDULED, PodGroup
from podium.plugins.gang_scheduling import GangScheduling

_DEFAULT_PREEMPTION_POLICY = "PreemptLowerPriority"


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of an attempt.

    Attributes:
        status: why the group is not scheduled; None if it is.
        untried_status: the status of the pods that were not tried.
        help: what will make the group fit; None if nothing will.
    """

    simulation: Simulation
    status: Status | None
    untried_status: Status | None
    help: GroupHelp | None = None


class PodGroupCycle(GroupCycle):
    """One attempt at a group that is one entry of the queue."""

    condition_type = POD_GROUP_INITIALLY_SCHEDULED
    hides_terms = False
    no_placement = UNSCHEDULABLE_GROUP

    def attempt(self) -> Steps[GroupDecision]:
        """Decide on the group."""
        group = self._group
        if group is None:
            return self._fail(f"pod group object not found for pod group podgroup/{self._key}", writes_condition=False)
        if (problem := problem_of_group(group, self._pods, self._state)) is not None:
            return self._fail(problem)
        simulation = yield from self._algorithm(self._snapshot, self._try_all)
        if simulation.status is None and not simulation.placed_pods:
            simulation.status = Status(Code.UNSCHEDULABLE, error=UNSCHEDULABLE_GROUP)
        if simulation.status is not None and simulation.status.code is Code.UNSCHEDULABLE:
            simulation = yield from self._search(simulation)
        status = simulation.status
        if status is None or status.code is not Code.UNSCHEDULABLE:
            return self._decision(_Result(simulation, status, status))
        answer = yield from run_pod_group_post_filter(self._framework, self._unscheduled(group, simulation))
        if isinstance(answer, GroupHelp):
            return self._decision(_Result(simulation, _with_reason(status, answer.message), status, answer))
        final = _with_reason(status, answer.message) if answer.is_rejected else answer
        return self._decision(_Result(simulation, final, status))

    # ------------------------------------------------------------ the simulation

    def _try_all(self, snapshot: Snapshot) -> Steps[Simulation]:
        """Try one pod after the other, as long as enough can have a place. All are taken back at the end."""
        clock = self._framework.clock
        cache = self._simulated_cache(snapshot)
        engine = replace(self._engine, cache=cache, asks_permit=False)
        simulation = Simulation([], self._feasibility(0, len(self._pods)), snapshot=cache.snapshot())
        if simulation.status is not None and simulation.status.code is not Code.WAIT:
            if simulation.status.is_rejected:
                simulation.status = replace(simulation.status, error=UNSCHEDULABLE_GROUP)
            return simulation
        placed_count = 0
        try:
            for tried_count, pod in enumerate(self._pods, 1):
                yield PAUSE
                started_s = clock.monotonic()
                attempt = yield from self._try(engine, cache, pod)
                attempt.cycle.seconds = clock.monotonic() - started_s
                simulation.attempts.append(attempt)
                if attempt.error is not None:
                    # As upstream: one error fails the whole group, and the pods that follow are not tried.
                    message = f"failed to schedule other pod from a pod group: {attempt.error.message}"
                    simulation.status = error_status(message)
                    break
                placed_count += attempt.placed_pod is not None
                simulation.status = self._feasibility(placed_count, len(self._pods) - tried_count)
                if simulation.status is not None and simulation.status.code is not Code.WAIT:
                    break
        finally:
            # In reverse, so that each plugin finds the state that its own Reserve left.
            for attempt in reversed(simulation.attempts):
                if attempt.placed_pod is not None:
                    engine.take_back(attempt.placed_pod)
        if simulation.status is not None and simulation.status.code is Code.WAIT:
            simulation.status = Status(Code.UNSCHEDULABLE, simulation.status.reasons, error=UNSCHEDULABLE_GROUP)
        return simulation

    def _feasibility(self, placed_count: int, left_count: int) -> Status | None:
        """Ask GangScheduling whether enough pods have a place: Wait if the others may yet, Unschedulable if not."""
        gang = self._framework.plugins.get(GangScheduling.name)
        if not isinstance(gang, GangScheduling):
            return None
        assert self._group is not None
        started_s = self._framework.clock.monotonic()
        status = gang.placement_feasible(self._group, self._state.scheduled_count + placed_count, left_count)
        self._framework.observe("PlacementFeasible", status, started_s)
        return status

    def _try(self, engine: Engine, cache: SimulatedCache, pod: Pod) -> Steps[MemberAttempt]:
        cycle = engine.cycle(self._frameworks[pod.spec.scheduler_name], pod)
        cycle.makes_room = False
        cycle.state.write(SimulatedGroup(cache.group))
        decision = yield from engine.attempt(cycle)
        if isinstance(decision, DoesNotFit):
            # Its nomination stays until the group's fate is known.
            return MemberAttempt(cycle, replace(decision, post_filter=None))
        if isinstance(decision, Failed):
            return MemberAttempt(cycle, decision)
        placed_pod = engine.place(cycle, decision.node_name)
        if placed_pod.status is not None:
            engine.take_back(placed_pod)
            return MemberAttempt(cycle, decision_of_rejection(decision.row, placed_pod.status))
        return MemberAttempt(cycle, decision, placed_pod)

    # ------------------------------------------------------------ what may help

    def _unscheduled(self, group: PodGroup, simulation: Simulation) -> UnscheduledGroup:
        attempts = [
            PodAttempt(attempt.cycle.pod, attempt.cycle.state, _reached(attempt.cycle))
            for attempt in simulation.attempts
        ]
        return UnscheduledGroup(group, self._pods, attempts, self._snapshot, self._simulate)

    def _simulate(self, snapshot: Snapshot) -> Steps[ForkedGroupDryRun]:
        """Try the group on a fork of the snapshot, for victims to be put back there."""
        simulation = yield from self._algorithm(snapshot, self._try_all)
        status = simulation.status
        if status is None and not simulation.placed_pods:
            status = Status(Code.UNSCHEDULABLE, error=UNSCHEDULABLE_GROUP)
        proposed_pods = [
            ProposedPod(attempt.cycle, attempt.decision.row)
            for attempt in simulation.attempts
            if isinstance(attempt.decision, Suggested)
        ]
        return ForkedGroupDryRun(status, simulation.snapshot or snapshot, proposed_pods)

    # ------------------------------------------------------------ the decision on each pod

    def _decision(self, result: _Result) -> GroupDecision:
        simulation, nominations = result.simulation, result.help.nominations if result.help is not None else {}
        members = [
            Member(attempt.cycle, _meaning(attempt, result, nominations.get(attempt.cycle.pod.uid)))
            for attempt in simulation.attempts
        ]
        for pod in self._pods[len(members) :]:
            status = result.untried_status
            assert status is not None
            if result.status is not None and not result.status.is_rejected:
                members.append(Member(self._cycle(pod), RejectedWithGroup(result.status)))
            else:
                members.append(Member(self._cycle(pod), RejectedWithGroup(status, nominations.get(pod.uid))))
        for cycle, _ in members:
            cycle.state.write(SimulatedGroup(None))
        return GroupDecision(
            result.status,
            waits_for_preemption=result.help is not None,
            members=members,
            condition_type=self.condition_type,
            help=result.help,
            status_before_help=simulation.status,
        )


def problem_of_group(group: PodGroup, pods: Sequence[Pod], state: PodGroupState) -> str | None:
    """Describe what is wrong with the pods of a group, those with a node included; None if nothing is."""
    scheduler_name, policy = pods[0].spec.scheduler_name, _preemption_policy(pods[0])
    checked_spec: PodSpec | None = None
    for pod in chain(pods, state.scheduled()):
        # Most pods of a group are replicas.
        if pod.spec is checked_spec:
            continue
        checked_spec = pod.spec
        if pod.spec.scheduler_name != scheduler_name:
            return other_scheduler((pods[0], pod))
        if pod.priority != group.priority:
            return (
                "all pods in a single pod group should have the same priority as the pod group's priority, "
                f"got {pod.priority} and {group.priority}"
            )
        if _preemption_policy(pod) != policy:
            return (
                "all pods in a single pod group should have the same preemption policy, "
                f"got {_preemption_policy(pod)} and {policy}"
            )
    return None


def _preemption_policy(pod: Pod) -> str:
    return pod.spec.preemption_policy or _DEFAULT_PREEMPTION_POLICY


def _with_reason(status: Status, message: str) -> Status:
    """Return the status with one more reason, which may be empty."""
    return replace(status, reasons=(*status.reasons, message))


def _reached(cycle: Cycle) -> frozenset[str]:
    """Return the PreFilter plugins that were asked about the pod: all up to the one that ended its attempt."""
    names: Sequence[str] = [plugin.name for plugin in cycle.framework.pre_filter]
    diagnosis, absent = cycle.diagnosis, cycle.diagnosis.absent
    if diagnosis.pre_filter_message and absent.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        # Plugins that have left no node between them are named together.
        enders = {absent.plugin} if absent.plugin else diagnosis.unschedulable_plugins
        names = names[: max((names.index(name) + 1 for name in enders & set(names)), default=0)]
    return frozenset(names)


def _meaning(attempt: MemberAttempt, result: _Result, nomination: str | None) -> MemberDecision:
    """Return the decision on one pod, given the result of the group.

    Args:
        nomination: the node that it is nominated to; None if its nomination stays.
    """
    status, decision = result.status, attempt.decision
    if status is None:
        return decision
    if not status.is_rejected:
        return RejectedWithGroup(attempt.error or status)
    if attempt.placed_pod is None:
        return _not_placed(decision, result.simulation, nomination)
    if result.help is not None:
        return RejectedWithGroup(status, nomination)
    return RejectedWithGroup(Status(Code.UNSCHEDULABLE, (status.message,), error=UNSCHEDULABLE_GROUP))


def _not_placed(decision: MemberDecision, simulation: Simulation, nomination: str | None) -> MemberDecision:
    """Return the decision on a pod that has no place: its own, with the nomination that its group has for it."""
    if not isinstance(decision, DoesNotFit):
        return decision
    if nomination is not None:
        decision = replace(decision, post_filter=PostFilterResult(nomination))
    if simulation.search_ended:
        decision = replace(decision, error=replace(decision.error, post_filter_message=simulation.search_ended))
    return decision
