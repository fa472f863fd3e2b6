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
from contextlib import suppress
from dataclasses import dataclass

import anyio
from anyio.lowlevel import checkpoint

from podium.binder import (
    Binder,
    BindOutcome,
    BindPod,
    EventRecorder,
    ExtenderPool,
    Preemption,
    PreemptionExecutor,
    deleting_pod_skipped,
)
from podium.client.consistency import Consistency
from podium.client.dispatcher import Dispatcher
from podium.cluster import Cache, CacheError
from podium.daemon.confirmations import Confirmations
from podium.daemon.conflicts import Conflicts
from podium.daemon.failures import Attempt, FailureHandler
from podium.daemon.status_writes import StatusWrite, StatusWrites
from podium.daemon.steps import advance, finish
from podium.engine.placing import Engine
from podium.framework.contract.cluster_event import ASSIGNED_POD_DELETE
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import Status, error_status
from podium.framework.cycle.diagnosis import rejected_on
from podium.framework.cycle.extenders import Pause, Question, Steps
from podium.framework.cycle.schedule import Decision, DoesNotFit, Failed, Suggested
from podium.framework.profile.runtime import Framework
from podium.lib.clock import Clock
from podium.lib.error_words import words_of
from podium.lib.log import get_logger
from podium.objects.core import Pod
from podium.queues import SchedulingQueue
from podium.service.wakeup import WakeUp
from podium.telemetry import Metrics

log = get_logger("scheduler")

_TURN_S_MAX = 0.002
"""How long the loop decides before it yields to other tasks."""
_REQUESTS_WAITING_MAX = 16
"""How many requests may wait before decisions pause: the longer they wait, the older the state that decisions use."""
_REQUESTS_WAITING_LOW = 4
"""How few requests must be left waiting before decisions resume: deciding in batches is cheaper."""
_LOOK_AGAIN_S = 0.25
"""How often a loop that waits for the API server checks again without a sign of progress: the requests it waits for
may all belong to one slow namespace."""

_STOPPING = "the scheduler is stopping"


@dataclass(frozen=True, slots=True)
class LoopDependencies:
    """The components that the loop works with; wired in `app`."""

    frameworks: Mapping[str, Framework]
    cache: Cache
    queue: SchedulingQueue
    binder: Binder
    preemption: PreemptionExecutor
    engine: Engine
    dispatcher: Dispatcher
    recorder: EventRecorder
    failures: FailureHandler
    statuses: StatusWrites
    is_bound: Callable[[Pod, str], Awaitable[bool]]
    conflicts: Conflicts
    metrics: Metrics
    clock: Clock
    extender_pool: ExtenderPool
    binding_cycles: dict[str, str]
    consistency: Consistency
    avoids_conflicts: bool = False


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An attempt that waits for the answer of extenders, or pauses to let other tasks run."""

    attempt: Attempt
    steps: Steps[Decision]
    step: Question | Pause


class SchedulingLoop:
    """Schedules pods until stopped.

    Invariant: every popped pod is requeued, bound, or dropped because it needs no scheduling.
    """

    def __init__(self, parts: LoopDependencies, wake_up: WakeUp) -> None:
        self._parts = parts
        self._wake_up = wake_up
        self._progress = WakeUp()
        self._is_waiting_for_progress = False
        parts.conflicts.when_confirmed(self._tell_progress)
        self.confirmations = Confirmations(parts.cache, parts.binding_cycles, parts.is_bound, self._take_back)
        self._is_stopping = False
        self._finishing: anyio.CancelScope | None = None
        self._ended: anyio.Event | None = None

    @property
    def bindings(self) -> int:
        """How many binding cycles are under way."""
        return len(self._parts.binding_cycles)

    def stop(self) -> None:
        """Stop scheduling; `run` ends when the binding cycles under way have ended.

        Pods that wait at Permit are rejected, since the pods that their plugins wait for are no longer scheduled. An
        attempt that waits for an extender, or pauses, is abandoned: it has had no effect yet.
        """
        self._is_stopping = True
        self._parts.queue.close()
        if self._finishing is not None:
            self._finishing.cancel()
        for waiting in self._parts.binder.waiting_pods:
            waiting.preempt("", _STOPPING)
        self._wake_up.set()
        self._progress.set()

    async def run(self) -> None:
        """Schedule until `stop`."""
        self._ended = anyio.Event()
        # A task created through anyio costs 20 us more than one created through asyncio.
        async with asyncio.TaskGroup() as tasks:
            while not self._is_stopping:
                if not self._parts.consistency.is_good:
                    await self._wait_consistent()
                    continue
                self._parts.queue.run_due_timers()
                turn = self._take_turn(tasks)
                if isinstance(turn, Unfinished):
                    await self._finish(turn, tasks)
                elif not turn:
                    await self._wake_up.wait(self._parts.queue.next_timer_s())
                await checkpoint()
                if self._is_ahead_by(_REQUESTS_WAITING_MAX):
                    await self._wait_caught_up()
        self._ended.set()

    async def _wait_consistent(self) -> None:
        """Wait until the informers' stores show one consistent state of the cluster."""
        consistency = self._parts.consistency
        while not consistency.is_good and not self._is_stopping:
            await self._wake_up.wait(consistency.wait_s() or _LOOK_AGAIN_S)

    async def wait_ended(self) -> None:
        """Wait until `run` has ended; returns at once if it never started."""
        if self._ended is not None:
            await self._ended.wait()

    def _take_turn(self, tasks: asyncio.TaskGroup) -> Unfinished | bool:
        """Decide on a few pods, or until an attempt must wait; False if no pod is left to decide on."""
        clock, queue = self._parts.clock, self._parts.queue
        # If other schedulers bind pods too, each binding is sent, and counted, before the next decision.
        ends_s = clock.monotonic() + (_TURN_S_MAX if self._unconfirmed() is None else 0.0)
        for _ in range(_REQUESTS_WAITING_MAX):
            info = queue.pop()
            if info is None:
                return False
            unfinished = self._attempt(info, tasks)
            if unfinished is not None:
                return unfinished
            if clock.monotonic() >= ends_s:
                break
        return True

    def _is_ahead_by(self, requests: int) -> bool:
        """Whether the API server must catch up before more decisions make sense.

        If conflicts are to be avoided and other schedulers are binding pods, the watch must catch up as well.
        """
        waiting = self._parts.dispatcher.backlog() + self._parts.extender_pool.backlog()
        unconfirmed = self._unconfirmed()
        if unconfirmed is not None:
            waiting += unconfirmed
        return waiting > requests and not self._is_stopping

    def _unconfirmed(self) -> int | None:
        """How many bindings the watch has not confirmed; None if that does not matter."""
        return self._parts.conflicts.unconfirmed() if self._parts.avoids_conflicts else None

    async def _wait_caught_up(self) -> None:
        self._is_waiting_for_progress = True
        while self._is_ahead_by(_REQUESTS_WAITING_LOW):
            await self._progress.wait(_LOOK_AGAIN_S)
        self._is_waiting_for_progress = False

    def _tell_progress(self) -> None:
        """A request has ended: resume deciding if enough of them have."""
        if self._is_waiting_for_progress and not self._is_ahead_by(_REQUESTS_WAITING_LOW):
            self._progress.set()

    # ------------------------------------------------------------ scheduling cycle

    def _attempt(self, info: QueuedPodInfo, tasks: asyncio.TaskGroup) -> Unfinished | None:
        """One scheduling cycle, or its first part. No await: the cluster state must not change during it."""
        parts, pod = self._parts, info.pod
        framework = parts.frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            log.error("No profile for the pod's scheduler name", pod=pod.key, profile=pod.spec.scheduler_name)
        if framework is None or self._needs_no_attempt(pod):
            parts.queue.done(pod.uid)
            return None
        if parts.engine.explainer is not None:
            parts.engine.explainer.begun(pod)
        begun = Attempt(framework, info, pod, CycleState(), parts.clock.monotonic())
        steps = parts.engine.attempt(framework, begun.state, pod)
        try:
            return Unfinished(begun, steps, advance(steps, parts.clock, begun.started_s))
        except StopIteration as end:
            self._follow(begun, end.value, tasks)
        except Exception as error:  # noqa: BLE001 - see `_broken`
            self._follow(begun, self._broken(pod, error), tasks)
        return None

    def _broken(self, pod: Pod, error: Exception) -> Decision:
        """The decision for an attempt that raised an exception.

        A decision changes no state that outlives it, so other pods are not affected by a bug that one pod triggers, in
        podium or in a plugin that modified objects it was lent.
        """
        self._parts.metrics.count_unexpected_error("task", "scheduling attempt")
        log.error("A scheduling attempt has failed", pod=pod.key, exc_info=error)
        return Failed(error_status(f"deciding on the pod: {words_of(error)}"))

    async def _finish(self, begun: Unfinished, tasks: asyncio.TaskGroup) -> None:
        """Finish a cycle that is long or asks extenders: the snapshot stays fixed while everything else runs.

        The attempt is repeated if an informer has relisted meanwhile, since the state it was based on was replaced.
        """
        parts = self._parts
        unfinished: Unfinished | None = begun
        while unfinished is not None:
            attempt, changes = unfinished.attempt, parts.consistency.changes
            decision = await self._rest_of(unfinished)
            if decision is None:
                parts.queue.done(attempt.pod.uid)
                return
            if parts.consistency.changes == changes:
                self._follow(attempt, decision, tasks)
                return
            await self._wait_consistent()
            unfinished = self._again(attempt, tasks)

    async def _rest_of(self, begun: Unfinished) -> Decision | None:
        """The decision of the attempt; None if it is abandoned because of `stop`."""
        parts = self._parts
        decision: Decision | None = None
        with parts.cache.held(), anyio.CancelScope() as self._finishing:
            try:
                decision = await finish(begun.steps, begun.step, parts.extender_pool.answer, parts.clock)
            except Exception as error:  # noqa: BLE001 - see `_broken`
                decision = self._broken(begun.attempt.pod, error)
        self._finishing = None
        return decision

    def _again(self, attempt: Attempt, tasks: asyncio.TaskGroup) -> Unfinished | None:
        """Repeat an attempt, with the current version of the pod."""
        current = None if self._is_stopping else self._parts.failures.waiting(attempt.pod)
        if current is None:
            self._parts.queue.done(attempt.pod.uid)
            return None
        attempt.info.pod = current
        return self._attempt(attempt.info, tasks)

    def _follow(self, attempt: Attempt, decision: Decision, tasks: asyncio.TaskGroup) -> None:
        """Carry out the decision."""
        parts = self._parts
        parts.metrics.observe_algorithm(parts.clock.monotonic() - attempt.started_s)
        if isinstance(decision, Suggested):
            self._place(attempt, decision, tasks)
        elif isinstance(decision, DoesNotFit):
            self._make_room_or_wait(attempt, decision, tasks)
        else:
            self._write(parts.failures.failed(attempt, decision.status), tasks)

    def _make_room_or_wait(self, attempt: Attempt, decision: DoesNotFit, tasks: asyncio.TaskGroup) -> None:
        """Requeue the pod; the preemption that PostFilter has planned starts before that and continues concurrently."""
        parts, plan = self._parts, decision.post_filter
        preemption: Preemption | None = None
        if plan is not None and plan.victims and parts.failures.waiting(attempt.pod) is not None:
            preemption = parts.preemption.begin(attempt.pod, plan.nominated_node_name, plan.victims)
        nominated = plan.nominated_node_name if plan is not None else None
        self._write(parts.failures.does_not_fit(attempt, decision.error, nominated), tasks)
        if preemption is not None:
            tasks.create_task(self._carry_out(preemption), name="preemption")

    async def _carry_out(self, preemption: Preemption) -> None:
        parts, started_s = self._parts, self._parts.clock.monotonic()
        succeeded = await parts.preemption.carry_out(preemption)
        parts.metrics.observe_preemption("success" if succeeded else "error", parts.clock.monotonic() - started_s)
        self._tell_progress()

    def _needs_no_attempt(self, pod: Pod) -> bool:
        if pod.is_terminating:
            self._parts.recorder.record(deleting_pod_skipped(pod))
            log.info("Skip schedule deleting pod", pod=pod.key)
            return True
        return self._parts.cache.is_assumed(pod.uid)

    def _place(self, attempt: Attempt, decision: Suggested, tasks: asyncio.TaskGroup) -> None:
        """Assume the pod on its node, then start its binding cycle."""
        parts, pod, node_name = self._parts, attempt.pod, decision.node_name
        try:
            placed = parts.engine.place(attempt.framework, attempt.state, pod, node_name)
        except CacheError as error:
            self._write(parts.failures.failed(attempt, error_status(error)), tasks)
            return
        if placed.status is not None:
            self._write(self._not_let_through(attempt, decision.row, placed.status), tasks)
            return
        if placed.waits:
            parts.binder.waiting_pods.add(pod, node_name, placed.waits)
        parts.binding_cycles[pod.uid] = node_name
        parts.metrics.add_goroutines("binding", 1)
        tasks.create_task(self._bind(attempt, decision), name="binding cycle")

    def _not_let_through(self, attempt: Attempt, row: int, status: Status) -> StatusWrite | None:
        """Requeue a pod that a plugin rejected after its node was chosen."""
        if status.is_rejected:
            return self._parts.failures.does_not_fit(attempt, rejected_on(row, status), "")
        return self._parts.failures.failed(attempt, status)

    def _write(self, write: StatusWrite | None, tasks: asyncio.TaskGroup) -> None:
        if write is not None:
            tasks.create_task(self._write_status(write), name="status patch")

    async def _write_status(self, write: StatusWrite) -> None:
        await self._parts.statuses.write(write)
        self._tell_progress()

    # ------------------------------------------------------------ binding cycle

    async def _bind(self, attempt: Attempt, decision: Suggested) -> None:
        parts, pod = self._parts, attempt.pod
        instruction = BindPod(
            pod, decision.node_name, attempt.state, attempt.framework, lambda: parts.queue.done(pod.uid)
        )
        try:
            # A status patch of an earlier attempt is outdated now: it must not reach the API server after the binding.
            await parts.statuses.settle(pod.uid)
            outcome = await parts.binder.bind_pod(instruction)
        finally:
            del parts.binding_cycles[pod.uid]
            parts.metrics.add_goroutines("binding", -1)
            self._tell_progress()
        if outcome.is_bound:
            self._bound(attempt, decision, outcome)
            return
        if self._is_stopping and outcome.has_failed_at_permit:
            self._let_go(attempt, decision)
            return
        write = self._not_bound(attempt, decision, outcome)
        if write is not None:
            await self._write_status(write)

    def _let_go(self, attempt: Attempt, decision: Suggested) -> None:
        """Undo the attempt's reservations, without an Event: another scheduler, or the next run, takes the pod."""
        attempt.framework.run_unreserve(attempt.state, attempt.pod, decision.node_name)
        # Refused if the API server shows the pod on a node after all.
        with suppress(CacheError):
            self._parts.cache.forget_pod(attempt.pod)
        self._parts.queue.done(attempt.pod.uid)

    def _take_back(self, pod: Pod, node_name: str) -> None:
        """Requeue a pod whose binding request succeeded although the pod is not bound."""
        parts = self._parts
        log.error("Pod is not bound although its binding request succeeded", pod=pod.key, node=node_name)
        parts.conflicts.not_bound(pod)
        parts.cache.forget_pod(pod)
        current = parts.failures.waiting(pod)
        if current is not None:
            parts.queue.add(current)
        parts.queue.move_all(ASSIGNED_POD_DELETE, pod.on_node(node_name), None)

    def _bound(self, attempt: Attempt, decision: Suggested, outcome: BindOutcome) -> None:
        parts, info = self._parts, attempt.info
        self.confirmations.expect(attempt.pod, decision.node_name)
        seconds = outcome.ended_at_s - attempt.started_s
        parts.metrics.count_attempt("scheduled", attempt.framework.name, seconds)
        seconds_waited = parts.queue.seconds_since_first_attempt(info)
        parts.metrics.count_bound(info.attempts, seconds_waited, after_flush=info.was_flushed_from_unschedulable)
        log.info(
            "Successfully bound pod to node",
            pod=attempt.pod.key,
            node=decision.node_name,
            attempt=info.attempts,
            evaluated_nodes=decision.evaluated_nodes,
            feasible_nodes=decision.feasible_nodes,
            seconds=round(seconds, 6),
        )

    def _not_bound(self, attempt: Attempt, decision: Suggested, outcome: BindOutcome) -> StatusWrite | None:
        """Undo the attempt's reservations and requeue the pod.

        Its resources are free again, which is an event for other pods. After an error, the event is sent before the pod
        is requeued, so that the pod does not wake itself; after a rejection, it is sent afterwards, without this pod.
        """
        parts, pod, status = self._parts, attempt.pod, outcome.status
        assert status is not None
        attempt.framework.run_unreserve(attempt.state, pod, decision.node_name)
        parts.conflicts.not_bound(pod)
        try:
            is_free = parts.cache.forget_pod(pod)
        except CacheError as error:
            # The API server shows the pod on a node after all: the informer is right.
            log.warning("Binding failed, but the pod is bound", pod=pod.key, reason=status.message, error=str(error))
            parts.metrics.count_attempt("error", attempt.framework.name, outcome.ended_at_s - attempt.started_s)
            parts.queue.done(pod.uid)
            return None
        assumed = pod.on_node(decision.node_name)
        if outcome.is_rejected_at_permit:
            write = parts.failures.does_not_fit(attempt, rejected_on(decision.row, status), "")
            if is_free:
                parts.queue.move_all(ASSIGNED_POD_DELETE, assumed, None, lambda other: other.uid != pod.uid)
            return write
        if is_free:
            parts.queue.move_all(ASSIGNED_POD_DELETE, assumed, None)
        return parts.failures.failed(attempt, status)
