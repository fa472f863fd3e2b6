"""Binding cycles: one task for each pod that was assumed on a node, from Permit until it is bound or requeued.

Source: kubernetes pkg/scheduler/schedule_one.go (bindingCycle, handleBindingCycleError), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from podium.binder import Binder, BindOutcome, BindPod
from podium.binder.binding_stage import BindingStage
from podium.cluster import Cache, CacheError
from podium.daemon.backlog import Backlog
from podium.daemon.clean_ups import clean_up
from podium.daemon.confirmations import Confirmations
from podium.daemon.conflicts import Conflicts
from podium.daemon.failures import Attempt, FailureHandler
from podium.daemon.held_tasks import Starter
from podium.daemon.status_writes import StatusWrite, StatusWrites
from podium.engine.flight_recorder import AttemptObserver
from podium.framework.contract.cluster_event import ASSIGNED_POD_DELETE
from podium.framework.contract.writing import BindingInDoubt
from podium.framework.cycle.diagnosis import rejected_on
from podium.framework.cycle.schedule import Suggested
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError, NotFound, may_have_happened
from podium.objects.core import Pod
from podium.queues import SchedulingQueue
from podium.telemetry import Metrics

log = get_logger("scheduler")

_STOPPING = "the scheduler is stopping"


class BindingCycles:
    """Binds assumed pods, and takes back those that cannot be bound.

    Args:
        is_bound: asks the API server whether the pod is bound to that node.

    Attributes:
        under_way: the target node of each binding cycle under way, by the uid of its pod.
        confirmations: looks up pods that the watch does not show bound; to be run while pods are scheduled.
    """

    def __init__(
        self,
        binder: Binder,
        cache: Cache,
        queue: SchedulingQueue,
        failures: FailureHandler,
        statuses: StatusWrites,
        conflicts: Conflicts,
        backlog: Backlog,
        metrics: Metrics,
        observer: AttemptObserver,
        *,
        is_bound: Callable[[Pod, str], Awaitable[bool]],
    ) -> None:
        self._binder = binder
        self._cache = cache
        self._queue = queue
        self._failures = failures
        self._statuses = statuses
        self._conflicts = conflicts
        self._backlog = backlog
        self._metrics = metrics
        self._observer = observer
        self._is_stopping = False
        self.under_way: dict[str, str] = {}
        self.confirmations = Confirmations(cache, self.under_way, is_bound, self._take_back)

    def start(self, attempt: Attempt, decision: Suggested, waits: Mapping[str, float], tasks: Starter) -> None:
        """Start the binding cycle of a pod that has just been assumed.

        Args:
            waits: the timeouts of the Permit plugins that have the pod wait, by plugin.
        """
        pod, node_name = attempt.pod, decision.node_name
        if waits:
            self._binder.waiting_pods.add(pod, node_name, waits)
        self.under_way[pod.uid] = node_name
        self._metrics.add_goroutines("binding", 1)
        tasks.create_task(self._bind(attempt, decision), name="binding cycle")

    @property
    def rejections(self) -> int:
        """The number of waits at Permit that have ended in a rejection."""
        return self._binder.waiting_pods.rejections

    def stop(self) -> None:
        """Reject the pods that wait at Permit, since the pods that their plugins wait for are no longer scheduled."""
        self._is_stopping = True
        for waiting in self._binder.waiting_pods:
            waiting.preempt("", _STOPPING)

    async def _bind(self, attempt: Attempt, decision: Suggested) -> None:
        pod = attempt.pod
        cycle = attempt.cycle
        instruction = BindPod(
            pod,
            decision.node_name,
            cycle.state,
            cycle.framework,
            lambda: self._queue.done(pod.uid),
            measure_plugins=cycle.measures_plugins,
        )
        try:
            # A status patch of an earlier attempt is outdated now: it must not reach the API server after the binding.
            await self._statuses.settle(pod.uid)
            outcome = await self._binder.bind_pod(instruction)
        finally:
            del self.under_way[pod.uid]
            self._metrics.add_goroutines("binding", -1)
            self._backlog.tell_progress()
        if outcome.waited_s:
            attempt.info.exclude(outcome.waited_s)
        if outcome.is_bound:
            self._on_bound(attempt, decision, outcome)
            return
        if self._is_stopping and outcome.has_failed_at_permit:
            self._let_go(attempt, decision)
            await self._clean_up(attempt)
            return
        if _may_be_bound_yet(outcome):
            attempt.cycle.state.write(BindingInDoubt())
        write = self._not_bound(attempt, decision, outcome)
        await self._clean_up(attempt)
        if write is not None:
            await self._statuses.write(write)
            self._backlog.tell_progress()

    async def _clean_up(self, attempt: Attempt) -> None:
        """Let the plugins write what Unreserve has left, unless the API server shows the pod on a node after all."""
        if self._cache.pod(attempt.pod.uid) is None:
            await clean_up(attempt)

    def _let_go(self, attempt: Attempt, decision: Suggested) -> None:
        """Undo the attempt's reservations, without an Event: another scheduler, or the next run, takes the pod."""
        attempt.cycle.framework.run_unreserve(attempt.cycle.state, attempt.pod, decision.node_name)
        # Refused if the API server shows the pod on a node after all.
        with suppress(CacheError):
            self._cache.forget_pod(attempt.pod)
        self._queue.done(attempt.pod.uid)

    def _take_back(self, pod: Pod, node_name: str) -> None:
        """Requeue a pod whose binding request succeeded although the pod is not bound."""
        log.error("Pod is not bound although its binding request succeeded", pod=pod.key, node=node_name)
        self._conflicts.not_bound(pod)
        self._cache.forget_pod(pod)
        current = self._failures.waiting(pod)
        if current is not None:
            self._queue.add(current)
        self._queue.move_all(ASSIGNED_POD_DELETE, pod.on_node(node_name), None)

    def _on_bound(self, attempt: Attempt, decision: Suggested, outcome: BindOutcome) -> None:
        info = attempt.info
        self.confirmations.expect(attempt.pod, decision.node_name)
        seconds = outcome.ended_at_s - attempt.started_s
        self._metrics.count_attempt("scheduled", attempt.cycle.framework.name, seconds)
        self._observer.on_bound(attempt.pod, seconds)
        since_first_s, since_schedulable_s = self._queue.seconds_waited(info)
        self._metrics.count_bound(info.attempts, since_first_s, after_flush=info.was_flushed_from_unschedulable)
        self._metrics.observe_latency(since_schedulable_s, attempt.pod)
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
        pod, status = attempt.pod, outcome.status
        assert status is not None
        attempt.cycle.framework.run_unreserve(attempt.cycle.state, pod, decision.node_name)
        self._conflicts.not_bound(pod)
        try:
            is_free = self._cache.forget_pod(pod)
        except CacheError as error:
            # The API server shows the pod on a node after all: the informer is right.
            log.warning("Binding failed, but the pod is bound", pod=pod.key, reason=status.message, error=str(error))
            seconds = outcome.ended_at_s - attempt.started_s
            self._metrics.count_attempt("error", attempt.cycle.framework.name, seconds)
            self._observer.on_failure(pod, "error", status.message, seconds)
            self._queue.done(pod.uid)
            return None
        if outcome.is_nominated:
            # So that the nomination is cleared even if no watch has shown it yet.
            self._queue.nominator.add(pod, decision.node_name)
        assumed_pod = pod.on_node(decision.node_name)
        if outcome.is_rejected_at_permit:
            write = self._failures.does_not_fit(attempt, rejected_on(decision.row, status), "")
            if is_free:
                self._queue.move_all(ASSIGNED_POD_DELETE, assumed_pod, None, lambda other_pod: other_pod.uid != pod.uid)
            return write
        if is_free:
            self._queue.move_all(ASSIGNED_POD_DELETE, assumed_pod, None)
        return self._failures.attempt_failed(attempt, status, is_deleted=isinstance(_refusal(outcome), NotFound))


def _refusal(outcome: BindOutcome) -> ApiError | None:
    """Return the error of the request to bind, None if there was no such request or it succeeded."""
    if outcome.stage is not BindingStage.BINDING or outcome.status is None:
        return None
    # The plugin's own error and the one that names the plugin come before it.
    error: BaseException | None = outcome.status.error
    while error is not None and not isinstance(error, ApiError):
        error = error.__cause__
    return error


def _may_be_bound_yet(outcome: BindOutcome) -> bool:
    """Return True if a request to bind may still take effect: the last error, or an earlier one, left that open."""
    cause = _refusal(outcome)
    return not isinstance(cause, NotFound) and may_have_happened(cause)
