"""The scheduling loop: pops the next pod, decides where it goes, and carries out the decision.

One task decides on one pod after the other; binding cycles run concurrently, each in its own task. While an attempt
waits for an extender, or pauses because it is long, no other decision is made, but everything else keeps running.

Source: kubernetes pkg/scheduler/schedule_one.go, v1.36.2.
Differs: the loop waits while the API server lags behind with bindings or status patches, so that a pod of high priority
does not have to wait behind thousands of other pods' requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import anyio

from podium.binder import EventRecorder, deleting_pod_skipped
from podium.cluster import Cache
from podium.daemon.backlog import LOOK_AGAIN_S, REQUESTS_WAITING_MAX, Backlog
from podium.daemon.boundary import Compute, StoresState
from podium.daemon.decisions import DecisionExecutor
from podium.daemon.failures import Attempt, FailureHandler
from podium.daemon.held_tasks import HeldTasks, Starter
from podium.daemon.pod_groups import GroupAttempt, PodGroupAttempts
from podium.daemon.steps import advance, finish
from podium.engine.group_decisions import GroupDecision
from podium.engine.placing import Engine
from podium.framework.contract.questions import Answer, Question
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import error_status
from podium.framework.contract.steps import Pause, Steps
from podium.framework.cycle.schedule import Decision, Failed
from podium.framework.profile.runtime import Framework
from podium.lib.clock import Clock
from podium.lib.error_text import error_text
from podium.lib.log import get_logger
from podium.objects.core import Pod
from podium.queues import SchedulingQueue
from podium.server.wakeup import WakeUp
from podium.telemetry import Metrics

log = get_logger("scheduler")

AnyAttempt: TypeAlias = Attempt | GroupAttempt
AnyDecision: TypeAlias = Decision | GroupDecision

_TURN_S_MAX = 0.002
"""The loop decides for this long before it yields to other tasks."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An attempt that waits for the answer of extenders, or pauses to let other tasks run."""

    attempt: AnyAttempt
    steps: Steps[AnyDecision]
    step: Question | Pause


class SchedulingLoop:
    """Schedules pods until stopped.

    Args:
        executor: carries out each decision.
        backlog: decides when the loop waits for the API server.
        ask: has extenders answer a question.
        compute: has work done that would hold up other tasks.
        wake_up: is set when there may be a pod to decide on.
        groups: begins attempts at pod groups; None if each pod is scheduled alone.

    Invariant: every popped pod is requeued, bound, or dropped because it needs no scheduling.
    """

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        queue: SchedulingQueue,
        cache: Cache,
        engine: Engine,
        executor: DecisionExecutor,
        failures: FailureHandler,
        backlog: Backlog,
        consistency: StoresState,
        recorder: EventRecorder,
        metrics: Metrics,
        clock: Clock,
        *,
        ask: Callable[[Question], Awaitable[Answer]],
        compute: Compute,
        wake_up: WakeUp,
        groups: PodGroupAttempts | None = None,
    ) -> None:
        self._frameworks = frameworks
        self._queue = queue
        self._cache = cache
        self._engine = engine
        self._executor = executor
        self._failures = failures
        self._backlog = backlog
        self._consistency = consistency
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._ask = ask
        self._compute = compute
        self._wake_up = wake_up
        self._groups = groups
        self._is_stopping = False
        self._finishing: anyio.CancelScope | None = None
        self._ended: anyio.Event | None = None

    def stop(self) -> None:
        """Stop scheduling; `run` ends when the binding cycles under way have ended.

        Pods that wait at Permit are rejected. An attempt that waits for an extender, or pauses, is abandoned: it has
        had no effect yet.
        """
        self._is_stopping = True
        self._queue.close()
        if self._finishing is not None:
            self._finishing.cancel()
        self._executor.stop()
        self._wake_up.set()
        self._backlog.stop()

    async def run(self) -> None:
        """Schedule until `stop`."""
        self._ended = anyio.Event()
        # The caches are synced only now, and kinds are listed in any order.
        self._queue.reorder()
        # Through anyio, a task would cost 20 us more, and yielding to other tasks several us.
        async with asyncio.TaskGroup() as tasks:
            while not self._is_stopping:
                if not self._consistency.is_consistent:
                    await self._wait_consistent()
                    continue
                # Before a pod is popped: a backoff that has ended may have made a more important one ready.
                self._queue.run_due_timers()
                turn = self._take_turn(tasks)
                if isinstance(turn, Unfinished):
                    await self._finish(turn, tasks)
                elif not turn:
                    await self._wake_up.wait(self._queue.next_timer_s())
                # One yield for a whole turn: yielding after each pod would cost a good part of its decision.
                await asyncio.sleep(0)
                if self._backlog.is_too_long():
                    await self._backlog.wait_short()
        self._ended.set()

    async def _wait_consistent(self) -> None:
        """Wait until the informers' stores show one consistent state of the cluster."""
        consistency = self._consistency
        while not consistency.is_consistent and not self._is_stopping:
            # Looks again by itself: a watch that has stopped sends no signal.
            await self._wake_up.wait(consistency.wait_s() or LOOK_AGAIN_S)

    async def wait_ended(self) -> None:
        """Wait until `run` has ended; return at once if it never started."""
        if self._ended is not None:
            await self._ended.wait()

    def _take_turn(self, tasks: asyncio.TaskGroup) -> Unfinished | bool:
        """Decide on a few pods, or until an attempt must wait; False if no pod is left to decide on."""
        clock, queue, executor = self._clock, self._queue, self._executor
        # If other schedulers bind pods too, each binding is sent, and counted, before the next decision.
        now_s = clock.monotonic()
        ends_s = now_s + (_TURN_S_MAX if self._backlog.unconfirmed_count() is None else 0.0)
        rejections = executor.rejections
        for _ in range(REQUESTS_WAITING_MAX):
            info = queue.pop(now_s)
            if info is None:
                return False
            unfinished = self._attempt(info, now_s, tasks)
            if unfinished is not None:
                return unfinished
            now_s = clock.monotonic()
            # Of gangs that begin together, none would ever find what the one before has given up.
            if now_s >= ends_s or executor.rejections != rejections:
                break
        return True

    # ------------------------------------------------------------ scheduling cycle

    def _attempt(self, info: QueuedPodInfo, started_s: float, tasks: asyncio.TaskGroup) -> Unfinished | None:
        """Return one scheduling cycle, or its first part. No await: the cluster state must not change during it."""
        pod = info.pod
        if self._groups is not None and self._groups.is_group(info):
            return self._attempt_group(self._groups, self._groups.begin(info, started_s), tasks)
        framework = self._frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            log.error("No profile for the pod's scheduler name", pod=pod.key, profile=pod.spec.scheduler_name)
        if framework is None or self._needs_no_attempt(pod):
            self._queue.done(pod.uid)
            return None
        attempt = Attempt(info, self._engine.cycle(framework, pod), started_s)
        return self._begin(attempt, self._engine.attempt(attempt.cycle), tasks)

    def _attempt_group(
        self, groups: PodGroupAttempts, attempt: GroupAttempt, tasks: asyncio.TaskGroup
    ) -> Unfinished | None:
        """Attempt all waiting pods of a group together; see `_attempt`."""
        if attempt.infos and not groups.has_problem(attempt):
            members = []
            for info in attempt.infos:
                if self._needs_no_attempt(info.pod):
                    self._queue.done(info.pod.uid)
                else:
                    members.append(info)
            attempt = replace(attempt, infos=members)
        if not attempt.infos:
            self._executor.end_group_attempt(attempt, None)
            return None
        return self._begin(attempt, groups.steps(attempt), tasks)

    def _begin(self, attempt: AnyAttempt, steps: Steps[AnyDecision], tasks: asyncio.TaskGroup) -> Unfinished | None:
        """Decide, and carry the decision out, unless the attempt must wait."""
        try:
            return Unfinished(attempt, steps, advance(steps, self._clock, attempt.started_s))
        except StopIteration as end:
            self._carry_out(attempt, end.value, tasks)
        except Exception as error:  # noqa: BLE001 - see `_broken`
            self._carry_out(attempt, self._failed_decision(attempt, error), tasks)
        return None

    def _carry_out(self, attempt: AnyAttempt, decision: AnyDecision, tasks: Starter) -> None:
        if isinstance(attempt, Attempt):
            assert not isinstance(decision, GroupDecision)
            self._executor.carry_out(attempt, decision, tasks)
            return
        assert self._groups is not None
        assert isinstance(decision, GroupDecision)
        self._metrics.observe_group_algorithm(self._clock.monotonic() - attempt.started_s)
        self._executor.carry_out_group(attempt, decision, self._groups.object_of(attempt), tasks)

    def _failed_decision(self, attempt: AnyAttempt, error: Exception) -> AnyDecision:
        """Return the decision for an attempt that raised an exception.

        A decision changes no state that outlives it, so other pods are not affected by a bug that one pod triggers, in
        podium or in a plugin that modified objects it was lent.
        """
        self._metrics.count_unexpected_error("task", "scheduling attempt")
        log.error("A scheduling attempt has failed", pod=attempt.pod.key, exc_info=error)
        status = error_status(f"deciding on the pod: {error_text(error)}")
        if isinstance(attempt, Attempt):
            return Failed(status)
        assert self._groups is not None
        return self._groups.failed_decision(attempt, status)

    async def _finish(self, suspended: Unfinished, tasks: asyncio.TaskGroup) -> None:
        """Finish a cycle that is long or asks extenders: the snapshot stays fixed while everything else runs.

        The attempt is repeated if an informer has relisted meanwhile, since the state it was based on was replaced.
        """
        unfinished: Unfinished | None = suspended
        while unfinished is not None:
            attempt, changes = unfinished.attempt, self._consistency.changes
            decision = await self._rest_of(unfinished)
            if decision is None:
                for info in attempt.infos:
                    self._queue.done(info.pod.uid)
                return
            # Extenders were asked for seconds, perhaps: a decision on a cluster that has been listed anew since is
            # void.
            if self._consistency.changes == changes:
                # A group that is long has many pods.
                held_tasks = HeldTasks()
                self._carry_out(attempt, decision, held_tasks)
                await held_tasks.start(tasks)
                return
            await self._wait_consistent()
            unfinished = self._repeat(attempt, tasks)

    async def _rest_of(self, unfinished: Unfinished) -> AnyDecision | None:
        """Return the decision of the attempt, or None if it is abandoned because of `stop`."""
        decision: AnyDecision | None = None
        with self._cache.hold(), anyio.CancelScope() as self._finishing:
            try:
                decision = await finish(unfinished.steps, unfinished.step, self._ask, self._compute, self._clock)
            except Exception as error:  # noqa: BLE001 - see `_broken`
                decision = self._failed_decision(unfinished.attempt, error)
        self._finishing = None
        return decision

    def _repeat(self, attempt: AnyAttempt, tasks: asyncio.TaskGroup) -> Unfinished | None:
        """Repeat an attempt, with the current version of each pod."""
        infos = []
        for info in attempt.infos:
            # The pod may have been changed, deleted or bound by others while the attempt waited.
            current = None if self._is_stopping else self._failures.waiting(info.pod)
            if current is None:
                self._queue.done(info.pod.uid)
            else:
                info.pod = current
                infos.append(info)
        if isinstance(attempt, Attempt):
            return self._attempt(attempt.info, self._clock.monotonic(), tasks) if infos else None
        assert self._groups is not None
        again = replace(attempt, infos=infos, started_s=self._clock.monotonic())
        return self._attempt_group(self._groups, again, tasks)

    def _needs_no_attempt(self, pod: Pod) -> bool:
        if pod.is_terminating:
            self._recorder.record(deleting_pod_skipped(pod))
            log.info("Skip schedule deleting pod", pod=pod.key)
            return True
        return self._cache.is_assumed(pod.uid)
