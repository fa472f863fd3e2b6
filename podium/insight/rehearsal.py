"""Plays what a cluster does by itself from now on: attempts in queue order, preemptions, and the ends of pods.

Time passes: a pod ends when an object says that it ends at the latest (`pod_ends`), the victims of a preemption at the
end of their grace period. Then controllers act and the pods that waited for that are tried again, by the scheduler's
own queue. Attempts and bindings take next to no time, and nothing happens that no object announces.

The members of a gang that is not complete are placed together or not at all, one after the other as they are tried.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from podium.engine.cluster import stays_on_node
from podium.engine.derivation.claims import may_have_claims
from podium.engine.derivation.control_objects import count_at
from podium.engine.derivation.job_failures import backoff_limit, backoff_s, policy_action, replaces_failed_only
from podium.engine.errors import ClusterError
from podium.engine.gang_story import UPSTREAM, coscheduling_in
from podium.engine.gangs import Gang, enforced_gang_of, restrict, try_gang
from podium.engine.placement import Placement
from podium.framework.contract.status import ScheduleError
from podium.insight.asked_pod import devices_claimed
from podium.insight.cluster import Cluster
from podium.insight.gang_retries import GangRetries
from podium.insight.moments import Moment, free_on
from podium.insight.pod_ends import PodEnd, grace_s, job_deadlines, job_reason, pod_end
from podium.insight.trial import Trial
from podium.insight.waiting_pods import WaitingPods, age_of
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.objects.resource_types import PODS, RESOURCE_CLAIMS
from podium.queues import PodBackoff

_ATTEMPTS_MAX: Final = 200
"""The attempts at one pod: pods that preempt each other could move for ever."""

_COMPLETIONS_MAX: Final = 100
"""The number of times that all pods complete: a workload could create others for ever."""
_ATTEMPT_S: Final = 1e-6
_TOGETHER_S: Final = 5e-4
_RELEASE_S: Final = 0.01
"""The time from the end of a pod to the release of its claims by their controller: attempts come between."""
_DELETION_S: Final = 5 * _RELEASE_S
"""The time from a decision to a deletion, which counts only against ends that are due at the same moment.

Kubelets end pods that were deleted apart farther apart than controllers need to act.
"""
_ALLOCATION_S: Final = 0.005
"""The time from the attempt that allocates a claim to its being written: other attempts come between."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The attempt that has placed a pod.

    Attributes:
        at_s: its time in seconds since the epoch.
        end_count: the number of pods that had ended before it.
    """

    node: str
    at_s: float
    end_count: int


@dataclass(frozen=True, slots=True)
class PodPreemption:
    """The last preemption for a pod: its node, and the keys of its victims."""

    node: str
    victims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobFailures:
    """The pods of a Job that have failed: those that its limit counts, and all since the rehearsal began."""

    count: int
    in_a_row: int = 0


@dataclass
class Rehearsal(Trial):
    """A private world in which time passes.

    Attributes:
        start_s: the time at which it begins, in seconds since the epoch.
        turns: the attempts that placed a pod, by its key.
        preemptions: the preemptions, by the key of the pod for which they were made.
        first_attempts: the scheduler's name of each pod by its key, in the order of their first attempts.
        ends: the pods that have ended, in order.
        moments: the moments at which pods ended, in order.
    """

    start_s: float = 0.0
    turns: dict[str, Turn] = field(default_factory=dict)
    preemptions: dict[str, PodPreemption] = field(default_factory=dict)
    first_attempts: dict[str, str] = field(default_factory=dict)
    ends: list[PodEnd] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    _attempt_counts: dict[str, int] = field(default_factory=dict)
    _schedule: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    """What is to come as a heap: its time, a serial number, and what carries it out."""
    _serial: Iterator[int] = field(default_factory=itertools.count)
    _allocation_times_s: dict[str, float] = field(default_factory=dict)
    """The time at which each claim got its devices, by its key."""
    _gang_failures: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    _gang_retries: GangRetries = field(init=False)
    _release_count: int = 0
    _job_failures: dict[str, JobFailures] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Let the pending pods enter the queue, and note the ends that objects announce."""
        super().__post_init__()
        self.clock = ManualClock(self.start_s)
        self.waiting = WaitingPods(lambda: self.world, self.original.configuration, self.clock)
        self._failed = self.waiting
        for pod in [pod for pod in self.world.pods if not pod.node_name and may_have_claims(pod)]:
            # By now the controllers of claims have created those that pods ask for by template.
            if (pod_with_claims := self._with_claims(pod)) is not pod:
                self.world.put(PODS, pod_with_claims)
        # As they have entered the queue of a scheduler that has run all the time.
        self.waiting.enter(sorted((pod for pod in self.world.pods if not pod.node_name), key=age_of))
        config = self.original.configuration
        self._gang_retries = GangRetries(PodBackoff(config.pod_initial_backoff_s, config.pod_max_backoff_s))
        self.controllers.held_jobs = set()
        deadlines = job_deadlines(self.world.admission.objects, self.start_s)
        for key, at_s in deadlines.items():
            self._plan(at_s, partial(self._end_job, key, job_reason(key)))
        for pod in list(self.world.pods):
            if not pod.node_name or (end := pod_end(pod, self.start_s)) is None or end.at_s is None:
                continue
            self._plan(end.at_s, partial(self._end_pod, end))
            if pod.is_terminating:
                # It was deleted its grace period before its end.
                self._note_failure(pod, end.at_s - grace_s(pod), has_ended=False)

    def _plan(self, at_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._schedule, (at_s, next(self._serial), action))

    # ------------------------------------------------------------ time

    @property
    def next_end_s(self) -> float:
        """The time of the next end that an object announces, in seconds since the epoch; infinite without one."""
        return self._schedule[0][0] if self._schedule else math.inf

    def play_queue(self) -> None:
        """Let controllers act and attempt pods until none is ready any more. No time passes.

        Raises:
            TimeIsUpError: the time for the question is over.
        """
        while True:
            self.reconcile()
            if self._attempt_next() or self._end_nominations():
                continue
            if not self.controllers.end_backoffs():
                return

    def play_ends(self) -> None:
        """Let time pass until the last end that an object announces. Raises: as `play_queue`."""
        self._plan_retries()
        while self._schedule:
            self.limit.check()
            at_s = self._schedule[0][0]
            self._gang_retries.pass_until(at_s)
            self.clock.advance(max(at_s - self.clock.now(), 0.0))
            end_count = len(self.ends)
            # Victims of several preemptions end at nearly the same moment: the scheduler hears of them together.
            while self._schedule and self._schedule[0][0] <= at_s + _TOGETHER_S:
                heapq.heappop(self._schedule)[2]()
            free = free_on(self.world, dict.fromkeys(end.node for end in self.ends[end_count:]))
            self.moments.append(Moment(at_s, len(self.ends), free, not self.preemptions))
            self.play_queue()
            self._plan_retries()

    def _plan_retries(self) -> None:
        for pod, at_s in self._gang_retries.plan(self._state):
            self._plan(at_s, partial(self.waiting.activate, pod.key))

    @property
    def _state(self) -> tuple[int, int, int]:
        """What changes with each change that may let a gang fit."""
        return len(self.turns), len(self.ends), self._release_count

    def play_completions(self) -> None:
        """Let all pods end that end by themselves at an unknown time, and those that begin only then.

        Raises: as `play_queue`.
        """
        self.play_queue()
        for _ in range(_COMPLETIONS_MAX):
            self.play_ends()
            ends = [end for pod in self.world.pods if pod.node_name and (end := pod_end(pod, self.clock.now()))]
            if not ends:
                return
            for end in ends:
                self.limit.check()
                self._complete(end)
            self.play_queue()

    def _complete(self, end: PodEnd) -> None:
        pod = self.world.store.get(PODS, end.pod)
        if pod is None:
            return
        owner = pod.metadata.controller
        if owner is not None and owner.kind == "Job":
            # It creates no more once enough pods have completed; those that it has complete as well.
            self.controllers.remove("Job", f"{pod.metadata.namespace}/{owner.name}")
        self.ends.append(end)
        self._end(pod, is_replaced=self._terminating.get(pod.key, False))

    def _end_pod(self, end: PodEnd) -> None:
        pod = self.world.store.get(PODS, end.pod)
        # Another pod of that name may have come, or the pod has ended before.
        if pod is None or pod.node_name != end.node:
            return
        self.ends.append(end)
        self._end(pod, is_replaced=self._terminating.get(pod.key, False))
        self._note_failure(pod, self.clock.now(), has_ended=True)

    def _end_job(self, key: str, reason: str) -> None:
        """Delete the pods of a Job that is over; it creates no more."""
        for pod in self.controllers.remove("Job", key) or ():
            self._delete_for(pod, reason)

    def _note_failure(self, pod: Pod, at_s: float, *, has_ended: bool) -> None:
        """Note that a pod of a Job has failed: the Job waits before it creates another one, or fails.

        Args:
            has_ended: whether the pod has ended; False if it is being deleted.
        """
        owner = pod.metadata.controller
        key = f"{pod.metadata.namespace}/{owner.name}" if owner is not None and owner.kind == "Job" else ""
        job = self.world.admission.objects.get("Job", key) if key else None
        # A deleted pod counts once: at its deletion, or at its end.
        if job is None or (has_ended and pod.is_terminating) != (replaces_failed_only(job) and pod.is_terminating):
            return
        former = self._job_failures.get(key) or JobFailures(count_at(job, "status", "failed", default=0))
        action = policy_action(job, pod)
        failures = JobFailures(former.count + (action != "Ignore"), former.in_a_row + 1)
        self._job_failures[key] = failures
        if action == "FailJob":
            self._end_job(key, f"the podFailurePolicy of Job {key}")
        elif failures.count > backoff_limit(job):
            self._end_job(key, f"the backoffLimit of Job {key}")
        elif self.controllers.held_jobs is not None:
            self.controllers.held_jobs.add(key)
            self._plan(at_s + backoff_s(failures.in_a_row), partial(self._end_backoff, key, failures))

    def _end_backoff(self, key: str, failures: JobFailures) -> None:
        """Let the Job create pods again, unless more have failed meanwhile."""
        if self._job_failures[key] == failures and self.controllers.held_jobs is not None:
            self.controllers.held_jobs.discard(key)
            self.controllers.touch("Job", key)

    def delete(self, pod: Pod, *, is_replaced: bool = True, is_graceful: bool = True) -> None:
        """Delete a pod; on a node it ends with its grace period."""
        self._delete_for(pod, "it is being deleted", is_replaced=is_replaced, is_graceful=is_graceful)

    def _delete_for(self, pod: Pod, reason: str, *, is_replaced: bool = False, is_graceful: bool = True) -> None:
        is_new = pod.key not in self._terminating and not pod.is_terminating
        super().delete(pod, is_replaced=is_replaced, is_graceful=is_graceful)
        if is_new and pod.key in self._terminating:
            at_s = self.clock.now() + _DELETION_S + grace_s(pod)
            self._plan(at_s, partial(self._end_pod, PodEnd(pod.key, pod.node_name, reason, at_s)))
            if is_replaced and (current := self.world.store.get(PODS, pod.key)) is not None:
                self._note_failure(current, self.clock.now(), has_ended=False)

    def _end(self, pod: Pod, *, is_replaced: bool) -> None:
        if not pod.node_name:
            self.waiting.leave(pod)
        super()._end(pod, is_replaced=is_replaced)

    def _release_claims(self, pod: Pod) -> None:
        if pod.spec.resource_claims or pod.spec.volumes:
            self._plan(self.clock.now() + _RELEASE_S, partial(self._release_now, pod))

    def _release_now(self, pod: Pod) -> None:
        self._release_count += 1
        super()._release_claims(pod)

    # ------------------------------------------------------------ attempts

    def _attempt_next(self) -> bool:
        """Make an attempt at the next pod of the queue, and return whether there was one."""
        self.limit.check()
        pod = self.waiting.pop()
        if pod is None:
            return False
        # Each ends a little later than the one before: pods are tried again in the order in which they were rejected.
        self.clock.advance(_ATTEMPT_S)
        gang = enforced_gang_of(self.world, pod)
        # The members of such a gang are not in the queue until it lacks nothing.
        if gang is None or gang.api != UPSTREAM or not gang.problem:
            self.first_attempts.setdefault(pod.key, pod.spec.scheduler_name)
        # A gang that has its minimum leaves the rest to themselves.
        if gang is not None and len(gang.placed_members) < gang.min_count:
            self._attempt_gang(pod, gang)
            return True
        count = self._attempt_counts[pod.key] = self._attempt_counts.get(pod.key, 0) + 1
        if count > _ATTEMPTS_MAX:
            self._note(Placement(pod, None, f"it was tried {_ATTEMPTS_MAX} times"))
            return True
        claims = devices_claimed(self.world.store, pod) if pod.spec.resource_claims else ()
        now_s = self.clock.now()
        if any(now_s - self._allocation_times_s.get(claim.key, -math.inf) < _ALLOCATION_S for claim in claims):
            # Until the scheduler has written which devices a claim has, no other pod of it gets a node. Preemption does
            # not help, so that a nomination is lost, too.
            reason = "another pod's claim to devices is being allocated"
            self._note(Placement(pod, None, reason, loses_nomination=pod.status.nominated_node_name != ""))
            self._plan(now_s + _ALLOCATION_S, partial(self.waiting.activate, pod.key))
            return True
        try:
            placement = self.world.place_with_its_claims(self._with_claims(pod))
        except (ScheduleError, ClusterError) as error:
            placement = Placement(pod, None, str(error))
        if placement.node is not None:
            self._allocation_times_s |= {claim.key: now_s for claim in claims if claim.status.allocation is None}
        self._note(placement)
        return True

    def _attempt_gang(self, pod: Pod, gang: Gang) -> None:
        """Place the waiting members of a gang together, if enough of them get a node."""
        if self._gang_retries.backs_off(gang, self.clock.now()):
            self._failed.add(pod, Placement(pod, None, ""))
            return
        state, message = self._state, gang.problem
        if not message and self._gang_failures.get(gang.key) != state:
            trial = try_gang(self.world, gang)
            if gang.starts_in(trial):
                members = [member for member in gang.waiting_members if member.key in trial.nodes]
                self._gang_retries.forget(gang)
                self._place_members(members, trial.selector)
                if pod.key in self.turns:
                    return
            else:
                self._gang_failures[gang.key] = state
                plugin = coscheduling_in(self.world.framework_for(pod))
                at_least_s = 0.0 if plugin is None else plugin.args.pod_group_backoff_seconds
                self._gang_retries.note_failure(gang, self.clock.now(), state, at_least_s)
        self._note(Placement(pod, None, message or f"{gang.key} needs {gang.min_count} members with a node at once"))

    def _place_members(self, members: Iterable[Pod], selector: Mapping[str, str]) -> None:
        for member in members:
            self.first_attempts.setdefault(member.key, member.spec.scheduler_name)
            pod = self._with_claims(member)
            placement = self.world.place_without_preemption(restrict(pod, selector))
            if placement.node is not None and selector:
                # The selector has only chosen the domain; the pod does not have it.
                self.world.put(PODS, pod.on_node(placement.node))
            self._note(placement)

    def _note(self, placement: Placement) -> bool:
        pod = placement.pod
        if placement.node is not None:
            self.turns[pod.key] = Turn(placement.node, self.clock.now(), len(self.ends))
            if self.moments:
                self.moments[-1].placements.append((pod, placement.node))
            self.waiting.finish(pod)
        elif placement.nominated_node is not None and placement.victims:
            victims = tuple(victim.key for victim in placement.victims)
            self.preemptions[pod.key] = PodPreemption(placement.nominated_node, victims)
        return super()._note(placement)

    # ------------------------------------------------------------ other worlds

    def world_without(self, is_gone: Callable[[Pod], bool]) -> Cluster:
        """Return the world as it would be without some pods, and with the devices free that they hold."""
        world = self.world.fork()
        for pod in self.world.pods:
            if is_gone(pod):
                world.drop(PODS, pod)
                for claim in devices_claimed(world.store, pod) if pod.spec.resource_claims else ():
                    world.put(RESOURCE_CLAIMS, claim.released_by(pod.uid))
        return world


def is_movable(pod: Pod) -> bool:
    """Return whether a pod may leave its node for good."""
    return not stays_on_node(pod)
