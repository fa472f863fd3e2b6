"""The cycle of a loose pod group: its pods wait one by one, and are tried together when one of them is popped.

Owns the simulation in which the pods take their places one after the other, PostFilter and Permit included, and the
decision that follows for each pod.

Source: kubernetes pkg/scheduler/schedule_one_podgroup.go, v1.36.2.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from podium.cluster import Snapshot
from podium.engine.group_cycle import GroupCycle, other_scheduler
from podium.engine.group_decisions import (
    UNSCHEDULABLE_GROUP,
    Eviction,
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
from podium.framework.contract.group_post_filter import GroupHelp, UnscheduledGroup
from podium.framework.contract.pod_groups import SimulatedGroup
from podium.framework.contract.post_filter import PostFilterResult
from podium.framework.contract.status import Code, Status, error_status, unschedulable
from podium.framework.contract.steps import PAUSE, Steps
from podium.framework.cycle.group_dry_runs import ForkedGroupDryRun
from podium.framework.cycle.schedule import Decision, DoesNotFit, Suggested
from podium.objects.core import Pod
from podium.objects.pod_groups import POD_GROUP_SCHEDULED
from podium.plugins.default_preemption import DefaultPreemption

_WAITING: Final = "pod group is waiting for preemption to complete"


class LooseGroupCycle(GroupCycle):
    """One attempt at a group whose pods wait one by one."""

    condition_type = POD_GROUP_SCHEDULED
    hides_terms = True
    no_placement = None

    def attempt(self) -> Steps[GroupDecision]:
        """Decide on the group."""
        if (problem := other_scheduler(self._pods)) is not None:
            return self._fail(problem)
        simulation = yield from self._algorithm(self._snapshot, self._try_all)
        if simulation.status is not None and simulation.status.code is Code.UNSCHEDULABLE:
            simulation = yield from self._search(simulation)
        plan: GroupHelp | None = None
        status = simulation.status
        if self._rules.are_preempted_for and status is not None and status.code is Code.UNSCHEDULABLE:
            result = yield from self._preempt()
            if isinstance(result, GroupHelp):
                plan, simulation.waits_for_preemption = result, True
            elif result.is_rejected:
                simulation.status = Status(status.code, (*status.reasons, result.message), error=status.error)
            else:
                simulation.status = result
        return self._decision(simulation, plan)

    # ------------------------------------------------------------ preemption

    def _preempt(self) -> Steps[GroupHelp | Status]:
        """Look for pods that can be evicted for the group as a whole."""
        plugins = [plugin for plugin in self._framework.post_filter if isinstance(plugin, DefaultPreemption)]
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
        unscheduled = UnscheduledGroup(group, self._pods, (), self._snapshot, self._simulate)
        return (yield from plugins[0].pod_group_post_filter(unscheduled))

    def _simulate(self, snapshot: Snapshot) -> Steps[ForkedGroupDryRun]:
        """Try the group on a fork, without making room for single pods."""
        simulation = yield from self._algorithm(snapshot, partial(self._try_all, makes_room=False))
        return ForkedGroupDryRun(simulation.status, snapshot, ())

    # ------------------------------------------------------------ the simulation

    def _try_all(self, snapshot: Snapshot, *, makes_room: bool = True) -> Steps[Simulation]:
        """Try one pod after the other. Placed pods count for those that follow, and are all taken back at the end."""
        cache = self._simulated_cache(snapshot)
        engine = replace(self._engine, cache=cache)
        simulation = Simulation([])
        requires_preemption = False
        try:
            for pod in self._pods:
                yield PAUSE
                attempt = yield from self._try(engine, cache, pod, makes_room=makes_room)
                simulation.attempts.append(attempt)
                if attempt.error is not None:
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
                    Status(Code.UNSCHEDULABLE, (_WAITING,), error=UNSCHEDULABLE_GROUP) if requires_preemption else None
                )
        finally:
            for attempt in reversed(simulation.attempts):
                if attempt.placed_pod is not None:
                    engine.take_back(attempt.placed_pod)
        return simulation

    def _try(self, engine: Engine, cache: SimulatedCache, pod: Pod, *, makes_room: bool) -> Steps[MemberAttempt]:
        cache.show_to(pod)
        cycle = engine.cycle(self._frameworks[pod.spec.scheduler_name], pod)
        cycle.makes_room = makes_room
        cycle.state.write(SimulatedGroup(cache.group))
        decision = yield from engine.attempt(cycle)
        eviction: Eviction | None = None
        if isinstance(decision, DoesNotFit) and decision.post_filter is not None and decision.post_filter.victims:
            eviction = Eviction(pod, decision.post_filter)
            decision = replace(decision, post_filter=PostFilterResult(decision.post_filter.nominated_node_name))
        node_name = _node_of(decision)
        if not node_name:
            return MemberAttempt(cycle, decision, eviction=eviction)
        placed_pod = engine.place(cycle, node_name)
        if placed_pod.status is not None:
            engine.take_back(placed_pod)
            row = cycle.snapshot.row_of[node_name]
            return MemberAttempt(cycle, decision_of_rejection(row, placed_pod.status), eviction=eviction)
        return MemberAttempt(cycle, decision, placed_pod, isinstance(decision, DoesNotFit), eviction)

    # ------------------------------------------------------------ the decision on each pod

    def _decision(self, simulation: Simulation, plan: GroupHelp | None) -> GroupDecision:
        members = [Member(attempt.cycle, _meaning(attempt, simulation)) for attempt in simulation.attempts]
        untried_pods = self._pods[len(members) :]
        status = simulation.status
        if untried_pods:
            assert status is not None
            nomination = None if status.is_rejected else ""
            members += [Member(self._cycle(pod), RejectedWithGroup(status, nomination)) for pod in untried_pods]
        for cycle, _ in members:
            cycle.state.write(SimulatedGroup(None))
        evictions = [attempt.eviction for attempt in simulation.attempts if attempt.eviction is not None]
        return GroupDecision(
            status, simulation.waits_for_preemption, members, self.condition_type, evictions, plan, status
        )


def _node_of(decision: Decision) -> str:
    """Return the node on which the pod counts for the pods that follow; "" if it counts on no node."""
    if isinstance(decision, Suggested):
        return decision.node_name
    post_filter = decision.post_filter if isinstance(decision, DoesNotFit) else None
    return post_filter.nominated_node_name if post_filter is not None else ""


def _meaning(attempt: MemberAttempt, simulation: Simulation) -> MemberDecision:
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
    if simulation.waits_for_preemption:
        return decision if attempt.requires_preemption else RejectedWithGroup(status, attempt.placed_pod.node_name)
    permit = tuple(filter(None, (attempt.placed_pod.waits_for, simulation.search_ended)))
    return RejectedWithGroup(Status(Code.UNSCHEDULABLE, permit, error=UNSCHEDULABLE_GROUP))
