"""Carries out decisions: starts binding cycles and preemptions, and requeues pods that do not fit.

Source: kubernetes pkg/scheduler/schedule_one.go and schedule_one_podgroup.go, v1.36.2 and v1.37.2.
Differs: a group's condition is never taken back while the group is in the queue; upstream writes the failure of its
remaining pods over it if the watch has not shown the success yet.
"""

from __future__ import annotations

from typing import Literal

from podium.binder import Preemption, PreemptionExecutor
from podium.cluster import CacheError
from podium.daemon.backlog import Backlog
from podium.daemon.binding_cycles import BindingCycles
from podium.daemon.clean_ups import start_clean_ups
from podium.daemon.failures import Attempt, FailureHandler
from podium.daemon.held_tasks import Starter
from podium.daemon.pod_groups import GroupAttempt
from podium.daemon.status_writes import AnyStatusWrite, PodGroupStatusWrite, StatusWrite, StatusWrites
from podium.engine.flight_recorder import AttemptObserver
from podium.engine.group_decisions import GroupDecision, MemberDecision, RejectedWithGroup
from podium.engine.placing import Engine
from podium.framework.contract.post_filter import PostFilterResult
from podium.framework.contract.status import Status, error_status
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import rejected_on
from podium.framework.cycle.schedule import DoesNotFit, Suggested
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.core import Pod
from podium.objects.pod_groups import PodGroup
from podium.objects.resource_types import POD_GROUPS, ResourceType
from podium.telemetry import Metrics
from podium.telemetry.slow_trace import LONG_S, Step, log_if_long

log = get_logger("scheduler")


class DecisionExecutor:
    """Carries out each decision at once, as far as it needs no request; requests are made by tasks.

    Args:
        groups: PodGroups, at the path at which the API server serves them.
    """

    def __init__(
        self,
        engine: Engine,
        binding_cycles: BindingCycles,
        preemption: PreemptionExecutor,
        failures: FailureHandler,
        statuses: StatusWrites,
        backlog: Backlog,
        metrics: Metrics,
        clock: Clock,
        observer: AttemptObserver,
        *,
        groups: ResourceType[PodGroup] = POD_GROUPS,
    ) -> None:
        self._engine = engine
        self._binding_cycles = binding_cycles
        self._preemption = preemption
        self._failures = failures
        self._statuses = statuses
        self._backlog = backlog
        self._metrics = metrics
        self._clock = clock
        self._observer = observer
        self._groups = groups

    def carry_out(self, attempt: Attempt, decision: MemberDecision, tasks: Starter) -> None:
        """Carry out the decision on a pod."""
        seconds = self._clock.monotonic() - attempt.started_s
        self._metrics.observe_algorithm(seconds)
        # Attempts in a fork are those of a group, which is logged as a whole.
        if seconds >= LONG_S and not attempt.cycle.snapshot.is_fork:
            _log_long(attempt, decision, attempt.started_s + seconds)
        self._observer.on_decision(attempt.info, attempt.cycle, decision, attempt.started_s, seconds)
        if isinstance(decision, Suggested):
            self._place(attempt, decision, tasks)
        elif isinstance(decision, DoesNotFit):
            self._make_room_or_wait(attempt, decision, tasks)
        elif isinstance(decision, RejectedWithGroup):
            nominated_node_name = decision.nominated_node_name
            start_clean_ups(attempt, tasks)
            self._write(self._failures.rejected_with_group(attempt, decision.status, nominated_node_name), tasks)
        else:
            self._write(self._failures.attempt_failed(attempt, decision.status), tasks)

    def carry_out_group(
        self, attempt: GroupAttempt, decision: GroupDecision, group: PodGroup | None, tasks: Starter
    ) -> None:
        """Carry out the decision on each pod of a group, and write the group's condition.

        Args:
            group: the latest version of the PodGroup; None if it is gone.
        """
        # Preemptions are announced before the members are requeued, so that none is tried while its victims go.
        steps = [("Deciding on the pods of the group done", self._clock.monotonic())]
        preemptions = [self._begin_preemption(eviction.pod, eviction.help) for eviction in decision.evictions]
        if decision.help is not None and decision.victims and group is not None:
            pods = [info.pod for info in attempt.infos]
            preemptions.append(self._preemption.begin(Preemption.for_group(group, pods, decision.help)))
        for info, member in zip(attempt.infos, decision.members, strict=True):
            seconds = member.cycle.seconds
            # As upstream, each pod counts from now on, with the time that it took itself.
            started_s = attempt.started_s if seconds is None else self._clock.monotonic() - seconds
            self.carry_out(Attempt(info, member.cycle, started_s), member.decision, tasks)
        self.end_group_attempt(attempt, decision.status_before_help)
        for preemption in preemptions:
            self._start_preemption(preemption, tasks)
        self._write_condition(attempt, decision, group, tasks)
        seconds = self._clock.monotonic() - attempt.started_s
        self._metrics.count_group_attempt(decision.result, decision.members[0].cycle.framework.name, seconds)
        _log(attempt, decision, seconds)
        log_if_long(log, "Scheduling", attempt.started_s, steps, attempt.started_s + seconds, pod_group=attempt.key)

    def _write_condition(
        self, attempt: GroupAttempt, decision: GroupDecision, group: PodGroup | None, tasks: Starter
    ) -> None:
        """Write the group's condition. Pods that a success has left over are tried at once, and do not take it back."""
        condition = None if group is None else decision.condition(group)
        if group is None or condition is None:
            return
        if attempt.entry is not None:
            if decision.status is None:
                attempt.entry.has_been_scheduled = True
            elif attempt.entry.has_been_scheduled:
                return
        self._write(PodGroupStatusWrite(group, condition, self._groups), tasks)

    def end_group_attempt(self, attempt: GroupAttempt, status: Status | None) -> None:
        """Put the group back into the queue, if it is an entry of it and pods of it wait."""
        if attempt.entry is not None:
            self._failures.group_returns(attempt.entry, status)

    @property
    def rejections(self) -> int:
        """The number of waits at Permit that were rejected. Such a pod's resources are free once its task has run."""
        return self._binding_cycles.rejections

    def stop(self) -> None:
        """Let the pods go that wait at Permit."""
        self._binding_cycles.stop()

    def _place(self, attempt: Attempt, decision: Suggested, tasks: Starter) -> None:
        """Assume the pod on its node, then start its binding cycle."""
        try:
            placement = self._engine.place(attempt.cycle, decision.node_name)
        except CacheError as error:
            # The cache refuses a pod that counts on a node already; the attempt then fails as any other.
            self._write(self._failures.attempt_failed(attempt, error_status(error)), tasks)
            return
        if placement.status is not None:
            start_clean_ups(attempt, tasks)
            self._write(self._not_let_through(attempt, decision.row, placement.status), tasks)
            return
        self._binding_cycles.start(attempt, decision, placement.waits, tasks)

    def _not_let_through(self, attempt: Attempt, row: int, status: Status) -> StatusWrite | None:
        """Requeue a pod that a plugin rejected after its node was chosen."""
        if status.is_rejected:
            return self._failures.does_not_fit(attempt, rejected_on(row, status), "")
        return self._failures.attempt_failed(attempt, status)

    def _write(self, write: AnyStatusWrite | None, tasks: Starter) -> None:
        if write is not None:
            tasks.create_task(self._write_status(write), name="status patch")

    async def _write_status(self, write: AnyStatusWrite) -> None:
        await self._statuses.write(write)
        self._backlog.tell_progress()

    def _make_room_or_wait(self, attempt: Attempt, decision: DoesNotFit, tasks: Starter) -> None:
        """Requeue the pod; the preemption that PostFilter has planned starts before that and continues concurrently."""
        plan = decision.post_filter
        preemption: Preemption | None = None
        if plan is not None and plan.victims:
            preemption = self._begin_preemption(attempt.pod, plan)
        nominated_node_name = plan.nominated_node_name if plan is not None else None
        start_clean_ups(attempt, tasks)
        self._write(self._failures.does_not_fit(attempt, decision.error, nominated_node_name), tasks)
        self._start_preemption(preemption, tasks)

    def _begin_preemption(self, pod: Pod, plan: PostFilterResult) -> Preemption | None:
        """Hold the pod back for the preemption; None if there is nothing to do, or the pod waits no more."""
        # Deleted or bound by others since its attempt began: nothing may be evicted for it.
        if self._failures.waiting(pod) is None:
            return None
        preemption = Preemption(pod, plan.nominated_node_name, plan.victims, violations=plan.violations)
        return self._preemption.begin(preemption)

    def _start_preemption(self, preemption: Preemption | None, tasks: Starter) -> None:
        if preemption is not None:
            tasks.create_task(self._preempt(preemption), name="preemption")

    async def _preempt(self, preemption: Preemption) -> None:
        started_s = self._clock.monotonic()
        is_successful = await self._preemption.carry_out(preemption)
        result: Literal["success", "error"] = "success" if is_successful else "error"
        seconds = self._clock.monotonic() - started_s
        self._metrics.observe_preemption(result, seconds)
        self._metrics.observe_execution(preemption.kind, result, seconds)
        self._backlog.tell_progress()


def _log_long(attempt: Attempt, decision: MemberDecision, ended_s: float) -> None:
    """Log an attempt that took long. Those of a group's pods, in a fork, are logged as one."""
    steps, pod = _steps(attempt.cycle, decision, ended_s), attempt.pod.metadata
    log_if_long(log, "Scheduling", attempt.started_s, steps, ended_s, namespace=pod.namespace, name=pod.name)


def _steps(cycle: Cycle, decision: MemberDecision, ended_s: float) -> list[Step]:
    """Return the steps of an attempt in kube-scheduler's words, with their times; PostFilter's step is podium's own."""
    helped_at_s = ended_s if isinstance(decision, DoesNotFit) else None
    steps = {
        "Computing predicates done": cycle.filtered_at_s,
        "Prioritizing done": cycle.scored_at_s,
        "Running PostFilter plugins done": helped_at_s,
    }
    return [(step, done_s) for step, done_s in steps.items() if done_s is not None]


def _log(attempt: GroupAttempt, decision: GroupDecision, seconds: float) -> None:
    """Log the canonical line of an attempt at a group."""
    status = decision.status
    tell = log.error if decision.result == "error" else log.info
    tell(
        "Pod group was tried",
        pod_group=attempt.key,
        result=decision.result,
        pods=len(attempt.infos),
        with_node=sum(isinstance(member.decision, Suggested) for member in decision.members),
        seconds=round(seconds, 6),
        **({} if status is None else {"reason": status.message}),
    )
