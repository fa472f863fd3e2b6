"""Carries out decisions: starts binding cycles and preemptions, and requeues pods that do not fit.

Source: kubernetes pkg/scheduler/schedule_one.go, v1.36.2.
"""

from __future__ import annotations

import asyncio

from podium.binder import Preemption, PreemptionExecutor
from podium.cluster import CacheError
from podium.daemon.backlog import Backlog
from podium.daemon.binding_cycles import BindingCycles
from podium.daemon.clean_ups import start_clean_ups
from podium.daemon.failures import Attempt, FailureHandler
from podium.daemon.status_writes import StatusWrite, StatusWrites
from podium.engine.placing import Engine
from podium.framework.contract.status import Status, error_status
from podium.framework.cycle.diagnosis import rejected_on
from podium.framework.cycle.schedule import Decision, DoesNotFit, Suggested
from podium.lib.clock import Clock
from podium.telemetry import Metrics


class DecisionExecutor:
    """Carries out each decision at once, as far as it needs no request; requests are made by tasks."""

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
    ) -> None:
        self._engine = engine
        self._binding_cycles = binding_cycles
        self._preemption = preemption
        self._failures = failures
        self._statuses = statuses
        self._backlog = backlog
        self._metrics = metrics
        self._clock = clock

    def carry_out(self, attempt: Attempt, decision: Decision, tasks: asyncio.TaskGroup) -> None:
        """Carry out the decision."""
        self._metrics.observe_algorithm(self._clock.monotonic() - attempt.started_s)
        if isinstance(decision, Suggested):
            self._place(attempt, decision, tasks)
        elif isinstance(decision, DoesNotFit):
            self._make_room_or_wait(attempt, decision, tasks)
        else:
            self._write(self._failures.failed(attempt, decision.status), tasks)

    def stop(self) -> None:
        """Let the pods go that wait at Permit."""
        self._binding_cycles.stop()

    def _place(self, attempt: Attempt, decision: Suggested, tasks: asyncio.TaskGroup) -> None:
        """Assume the pod on its node, then start its binding cycle."""
        try:
            placed = self._engine.place(attempt.cycle, decision.node_name)
        except CacheError as error:
            self._write(self._failures.failed(attempt, error_status(error)), tasks)
            return
        if placed.status is not None:
            start_clean_ups(attempt, tasks)
            self._write(self._not_let_through(attempt, decision.row, placed.status), tasks)
            return
        self._binding_cycles.start(attempt, decision, placed.waits, tasks)

    def _not_let_through(self, attempt: Attempt, row: int, status: Status) -> StatusWrite | None:
        """Requeue a pod that a plugin rejected after its node was chosen."""
        if status.is_rejected:
            return self._failures.does_not_fit(attempt, rejected_on(row, status), "")
        return self._failures.failed(attempt, status)

    def _write(self, write: StatusWrite | None, tasks: asyncio.TaskGroup) -> None:
        if write is not None:
            tasks.create_task(self._write_status(write), name="status patch")

    async def _write_status(self, write: StatusWrite) -> None:
        await self._statuses.write(write)
        self._backlog.tell_progress()

    def _make_room_or_wait(self, attempt: Attempt, decision: DoesNotFit, tasks: asyncio.TaskGroup) -> None:
        """Requeue the pod; the preemption that PostFilter has planned starts before that and continues concurrently."""
        plan = decision.post_filter
        preemption: Preemption | None = None
        if plan is not None and plan.victims and self._failures.waiting(attempt.pod) is not None:
            preemption = self._preemption.begin(attempt.pod, plan.nominated_node_name, plan.victims)
        nominated = plan.nominated_node_name if plan is not None else None
        start_clean_ups(attempt, tasks)
        self._write(self._failures.does_not_fit(attempt, decision.error, nominated), tasks)
        if preemption is not None:
            tasks.create_task(self._preempt(preemption), name="preemption")

    async def _preempt(self, preemption: Preemption) -> None:
        started_s = self._clock.monotonic()
        succeeded = await self._preemption.carry_out(preemption)
        self._metrics.observe_preemption("success" if succeeded else "error", self._clock.monotonic() - started_s)
        self._backlog.tell_progress()
