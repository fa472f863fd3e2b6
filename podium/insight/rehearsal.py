"""Plays what a cluster does by itself from now on: attempts in queue order, preemptions, and the ends of pods.

Time passes: a pod ends when an object says that it ends at the latest (`pod_ends`), the victims of a preemption at the
end of their grace period. Then controllers act and the pods that waited for that are tried again, by the scheduler's
own queue. Attempts and bindings take next to no time, and nothing happens that no object announces.

The members of a gang that is not complete are placed together or not at all, one after the other as they are tried.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from podium.engine.cluster import stays_on_node
from podium.engine.errors import ClusterError
from podium.engine.gangs import Gang, gang_of, restrict, try_gang
from podium.engine.placement import Placement
from podium.framework.contract.status import ScheduleError
from podium.insight.asked_pod import devices_claimed
from podium.insight.cluster import Cluster
from podium.insight.pod_ends import PodEnd, grace_s, job_deadlines, job_reason, pod_end
from podium.insight.trial import Trial
from podium.insight.waiting_pods import WaitingPods
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.objects.resource_types import PODS, RESOURCE_CLAIMS

_ATTEMPTS_MAX: Final = 200
"""The attempts at one pod: pods that preempt each other could move for ever."""

_ATTEMPT_S: Final = 1e-6


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


@dataclass
class Rehearsal(Trial):
    """A private world in which time passes.

    Attributes:
        start_s: the time at which it begins, in seconds since the epoch.
        turns: the attempts that placed a pod, by its key.
        preemptions: the preemptions, by the key of the pod for which they were made.
        first_attempts: the keys of the pods in the order of their first attempts.
        ends: the pods that have ended, in order.
    """

    start_s: float = 0.0
    turns: dict[str, Turn] = field(default_factory=dict)
    preemptions: dict[str, PodPreemption] = field(default_factory=dict)
    first_attempts: dict[str, None] = field(default_factory=dict)
    ends: list[PodEnd] = field(default_factory=list)
    _attempt_counts: dict[str, int] = field(default_factory=dict)
    _schedule: list[tuple[float, int, str, PodEnd | None]] = field(default_factory=list)
    """The ends to come as a heap: their time, a serial number, the key of a pod or of a Job, and the pod's end."""
    _serial: Iterator[int] = field(default_factory=itertools.count)
    _gang_failures: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Let the pending pods enter the queue, and note the ends that objects announce."""
        super().__post_init__()
        self.clock = ManualClock(self.start_s)
        self.waiting = WaitingPods(lambda: self.world, self.original.configuration, self.clock)
        self._failed = self.waiting
        # As they have entered the queue of a scheduler that has run all the time.
        self.waiting.enter(sorted((pod for pod in self.world.pods if not pod.node_name), key=_age))
        deadlines = job_deadlines(self.world.admission.objects, self.start_s)
        for key, at_s in deadlines.items():
            self._plan(at_s, key)
        for pod in self.world.pods:
            if pod.node_name and (end := pod_end(pod, self.start_s)) is not None and end.at_s is not None:
                self._plan(end.at_s, pod.key, end)

    def _plan(self, at_s: float, key: str, end: PodEnd | None = None) -> None:
        heapq.heappush(self._schedule, (at_s, next(self._serial), key, end))

    # ------------------------------------------------------------ time

    @property
    def has_ends_to_come(self) -> bool:
        """True if an object announces an end that has not come yet."""
        return bool(self._schedule)

    def play_queue(self) -> None:
        """Let controllers act and attempt pods until none is ready any more. No time passes.

        Raises:
            TimeIsUpError: the time for the question is over.
        """
        while True:
            self.reconcile()
            if self._attempt_next():
                continue
            if not self.controllers.end_backoffs() and not self._note_ends_of_jobs():
                return

    def play_ends(self) -> None:
        """Let time pass until the last end that an object announces. Raises: as `play_queue`."""
        while self._schedule:
            self.limit.check()
            at_s = self._schedule[0][0]
            self.clock.advance(max(at_s - self.clock.now(), 0.0))
            while self._schedule and self._schedule[0][0] <= at_s:
                _, _, key, end = heapq.heappop(self._schedule)
                if end is not None:
                    self._end_pod(end)
                else:
                    self._end_job(key)
            self.play_queue()

    def _end_pod(self, end: PodEnd) -> None:
        pod = self.world.store.get(PODS, end.pod)
        # Another pod of that name may have come, or the pod has ended before.
        if pod is None or pod.node_name != end.node:
            return
        self.ends.append(end)
        self._end(pod, is_replaced=self._terminating.get(pod.key, False))

    def _end_job(self, key: str) -> None:
        """Delete the pods of a Job at its deadline; it creates no more."""
        for pod in self.controllers.remove("Job", key) or ():
            self._delete_for(pod, job_reason(key))

    def delete(self, pod: Pod, *, is_replaced: bool = True, is_graceful: bool = True) -> None:
        """Delete a pod; on a node it ends with its grace period."""
        self._delete_for(pod, "it is being deleted", is_replaced=is_replaced, is_graceful=is_graceful)

    def _delete_for(self, pod: Pod, reason: str, *, is_replaced: bool = False, is_graceful: bool = True) -> None:
        is_new = pod.key not in self._terminating and not pod.is_terminating
        super().delete(pod, is_replaced=is_replaced, is_graceful=is_graceful)
        if is_new and pod.key in self._terminating:
            at_s = self.clock.now() + grace_s(pod)
            self._plan(at_s, pod.key, PodEnd(pod.key, pod.node_name, reason, at_s))

    def _end(self, pod: Pod, *, is_replaced: bool) -> None:
        if not pod.node_name:
            self.waiting.leave(pod)
        super()._end(pod, is_replaced=is_replaced)

    # ------------------------------------------------------------ attempts

    def _attempt_next(self) -> bool:
        """Make an attempt at the next pod of the queue, and return whether there was one."""
        self.limit.check()
        pod = self.waiting.pop()
        if pod is None:
            return False
        # Each ends a little later than the one before: pods are tried again in the order in which they were rejected.
        self.clock.advance(_ATTEMPT_S)
        self.first_attempts.setdefault(pod.key)
        count = self._attempt_counts[pod.key] = self._attempt_counts.get(pod.key, 0) + 1
        if count > _ATTEMPTS_MAX:
            self._note(Placement(pod, None, f"it was tried {_ATTEMPTS_MAX} times"))
            return True
        gang = gang_of(self.world, pod)
        # A gang that has its minimum leaves the rest to themselves.
        if gang is not None and len(gang.placed_members) < gang.min_count:
            self._attempt_gang(pod, gang)
            return True
        try:
            placement = self.world.place_with_its_claims(self._with_claims(pod))
        except (ScheduleError, ClusterError) as error:
            placement = Placement(pod, None, str(error))
        self._note(placement)
        return True

    def _attempt_gang(self, pod: Pod, gang: Gang) -> None:
        """Place the waiting members of a gang together, if enough of them get a node."""
        state = len(self.turns), len(self.ends)
        message = gang.problem
        if not message and self._gang_failures.get(gang.key) != state:
            trial = try_gang(self.world, gang)
            if len(gang.placed_members) + len(trial.nodes) >= gang.min_count:
                members = [member for member in gang.waiting_members if member.key in trial.nodes]
                self._place_members(members, trial.selector)
                if pod.key in self.turns:
                    return
            else:
                self._gang_failures[gang.key] = state
        self._note(Placement(pod, None, message or f"{gang.key} needs {gang.min_count} members with a node at once"))

    def _place_members(self, members: Iterable[Pod], selector: Mapping[str, str]) -> None:
        for member in members:
            self.first_attempts.setdefault(member.key)
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
            self.waiting.finish(pod)
        elif placement.nominated_node is not None and placement.victims:
            victims = tuple(victim.key for victim in placement.victims)
            self.preemptions[pod.key] = PodPreemption(placement.nominated_node, victims)
        if placement.node is None and (placement.nominated_node is not None or placement.loses_nomination):
            # The scheduler writes it into the status, and tries that node first the next time.
            status = replace(pod.status, nominated_node_name=placement.nominated_node or "")
            self.world.put(PODS, replace(pod, status=status))
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


def _age(pod: Pod) -> tuple[str, str]:
    """Return the sort key of pods that enter the queue: the older ones first."""
    return pod.metadata.creation_timestamp or "9", pod.key
