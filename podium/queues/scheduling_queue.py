"""The scheduling queue: holds every pod that waits to be scheduled and decides when it is attempted.

Owns the state of each waiting pod and the reasons for its moves. Entirely synchronous: never waits, never does I/O,
never refers to a plugin by name; the daemon calls `run_due_timers` after `next_timer_s`, and is woken when a pod can be
popped.

Source: pkg/scheduler/backend/queue: scheduling_queue.go, active_queue.go, backoff_queue.go, v1.36.2 and v1.37.2.
Differs: adding a pod that is already queued replaces the old one as if it had been deleted first, and
the `unschedulable_pods` gauge falls whenever a rejected pod leaves the queue; upstream's gauge drifts. Setting the
machine's clock does not move any deadline; upstream compares wall-clock timestamps. Pods of a group always wait until
their backoff ends; upstream pops them from the backoff queue when no pod is active, and retries a group that does not
fit without a pause. Opportunistic batching is not implemented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from podium.config import NEWEST, PodGroupRules, Release
from podium.framework.contract.cluster_event import (
    CONFIGURATION_RELOAD,
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEvent,
)
from podium.framework.contract.plugin import QueueSortPlugin
from podium.framework.contract.queued_pod import QueuedPodGroupInfo, QueuedPodInfo
from podium.framework.contract.status import Status
from podium.lib.clock import Clock, SteadyClock
from podium.objects.core import Pod
from podium.objects.meta import ObjectMeta
from podium.objects.pod_groups import PodGroup
from podium.queues.changes import pod_changes
from podium.queues.event_moves import EventMoves, PreCheck
from podium.queues.flush_timers import BackoffTimer, DelayedPods, LeftoverTimer
from podium.queues.gating import PreEnqueueCheck
from podium.queues.group_entries import SCHEDULE_ATTEMPT_FAILURE, GroupEntries
from podium.queues.hints import Hints, Interest, Strategy
from podium.queues.in_flight import InFlightPods, soonest
from podium.queues.listing import QueueListing
from podium.queues.nominator import Nominator, PodLookup
from podium.queues.observer import QueueObserver
from podium.queues.queued_pods import QueuedPods
from podium.queues.requeuing import Requeuing
from podium.queues.states import QUEUE_STATES, QueueEvent, QueueState
from podium.queues.statistics import QueueStatistics, count_queued
from podium.queues.values import DEFAULT_TIMES, AlreadyQueued, QueueProfile, QueueTimes, pre_enqueue_plugins

BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"

_POPPED = "Pop"
_UNOBSERVED = QueueObserver()


class SchedulingQueue:
    """The unbound pods of all profiles.

    Each pod handed out by `pop` must come back through `add_unschedulable_if_not_present` or end in `done`.
    Pods must belong to one of the profiles.

    Args:
        lookup: Looks up the latest version of a pod that the API server has sent; nominations are checked against it.
        wake: Called whenever a pod may have become ready to pop; must not call the queue.
        nominator: The nominated pods, if other components read them too; by default the queue creates its own.
        listing_clock: A clock of the listing's own: readings of `clock` may be recorded.
        groups: How pods are scheduled in groups; None if each is alone. A loose group's pods wait out their backoff.
        release: The release whose rules of the queue and of events apply.
    """

    def __init__(
        self,
        profiles: Sequence[QueueProfile],
        queue_sort: QueueSortPlugin,
        clock: Clock,
        lookup: PodLookup,
        *,
        wake: Callable[[], None],
        times: QueueTimes = DEFAULT_TIMES,
        observer: QueueObserver = _UNOBSERVED,
        nominator: Nominator | None = None,
        listing_clock: Clock | None = None,
        groups: PodGroupRules | None = None,
        release: Release = NEWEST,
    ) -> None:
        # Steady clocks, so that setting the machine's clock neither prolongs nor shortens backoffs and flushes.
        listing_clock = SteadyClock(listing_clock or clock)
        self._clock = clock = SteadyClock(clock)
        self._wake = wake
        self._times = times
        self._observer = observer
        self._hints = Hints({profile.scheduler_name: profile.hints for profile in profiles}, clock, observer)
        self._queued = QueuedPods(queue_sort, times.backoff, clock, self._hints.label_readers(), observer)
        self._in_flight = InFlightPods(observer)
        self._backoff_timer = BackoffTimer(clock)
        self.reorder = self._queued.reorder_all
        self._leftover_timer = LeftoverTimer(clock)
        self._delayed = DelayedPods(clock)
        self._is_closed = False
        self._has_loose_groups = groups is not None and not groups.are_entries
        self._rules, self._release = release.queue, release
        pod_added, self._pod_deleted = (
            ClusterEvent(release.events.unscheduled_pod, action).label for action in (ActionType.ADD, ActionType.DELETE)
        )
        pod_updated = ClusterEvent(release.events.target_pod, ActionType.UPDATE).label
        self._pod_added = pod_added
        self._stranger_updated = pod_added if release.queue.renew_strangers else pod_updated
        self.nominator = Nominator(lookup) if nominator is None else nominator
        check = self._pre_enqueue_check = PreEnqueueCheck(pre_enqueue_plugins(profiles), observer)
        self._requeuing = Requeuing(
            self._queued,
            check,
            self.nominator,
            clock,
            observer,
            wake,
            nominating_events=() if release.queue.nominate_on_add else (pod_added, pod_updated),
            has_loose_groups=self._has_loose_groups,
        )
        self._groups: GroupEntries | None = None
        if groups is not None and groups.are_entries:
            self._groups = GroupEntries(
                self._queued, self._requeuing, check, clock, pod_added=pod_added, group_deleted=pod_updated
            )
        self.listing = QueueListing(
            self._queued,
            self._groups,
            self._in_flight,
            self.nominator,
            self._hints,
            listing_clock,
            times.unschedulable_max_s,
            flush_gated=release.queue.flush_gated,
        )
        self._moves = EventMoves(
            self._queued.unschedulable, self._hints, self._requeuing, observer, flush_gated=release.queue.flush_gated
        )

    # ------------------------------------------------------------ pods are added, updated and deleted

    def add(self, pod: Pod) -> None:
        """Add a pod that is to be scheduled."""
        self._discard(pod, self._pod_added)
        self._add_new(pod, self._pod_added)

    def update(self, old: Pod, new: Pod) -> None:
        """Update a pod that is to be scheduled."""
        if new.uid in self._in_flight:
            for event in pod_changes(old, new, self._release):
                self._in_flight.record(self._hints.interest(event), old, new)
            return
        info = self.get(new)
        if info is not None and info.pod.uid != new.uid and self._rules.renew_strangers:
            self._discard(new, self._pod_deleted)
            info = None
        if info is None:
            self._add_new(new, self._stranger_updated)
            return
        info.pod = new
        self.nominator.update(old, new)
        entry: QueuedPodInfo | None = info
        if (groups := self._groups_with(new)) is not None:
            entry = groups.entry_of(new)
        if entry is None:
            return
        self._queued.reorder(entry)
        if self._queued.state_of(entry.key) in (QueueState.UNSCHEDULABLE, QueueState.GATED):
            self._reconsider(entry, old, new)

    def _add_new(self, pod: Pod, event: str) -> None:
        now_s = self._clock.now()
        info = QueuedPodInfo(pod, now_s)
        if self._rules.nominate_on_add:
            self.nominator.add(pod)
        if (groups := self._groups_with(pod)) is not None:
            groups.add(info)
        else:
            self._requeuing.to_active(info, event, now_s=now_s)

    def _groups_with(self, pod: Pod) -> GroupEntries | None:
        """Return the groups, if the pod is of one that is an entry of the queue; None for a pod by itself."""
        return self._groups if pod.spec.scheduling_group is not None else None

    def _reconsider(self, info: QueuedPodInfo, old: Pod, new: Pod) -> None:
        for event in pod_changes(old, new, self._release):
            interest = self._hints.interest(event)
            strategy = self._hints.strategy(info, interest, old, new)
            if strategy is not Strategy.SKIP and self._requeuing.requeue(info, strategy, interest.label):
                return

    def delete(self, pod: Pod) -> None:
        """Remove a pod that was deleted or bound. A pod in flight stays in flight until its attempt has ended."""
        self.nominator.delete(pod)
        self._discard(pod, self._pod_deleted)

    def _discard(self, pod: Pod, event: str) -> None:
        """Remove the pod, if it waits."""
        if (groups := self._groups_with(pod)) is not None:
            info = groups.remove(pod)
        else:
            info = self._queued.get(pod.key)
            if info is not None:
                self._queued.move(info, QueueEvent.DELETE, event)
        if info is not None:
            self._count_rejectors(info, -1)

    # ------------------------------------------------------------ pod groups

    def put_group(self, group: PodGroup) -> None:
        """Add or update a PodGroup, if groups are entries of the queue: pods that have waited for it join its entry."""
        if self._groups is not None:
            self._groups.put_group(group)

    def drop_group(self, key: str) -> None:
        """Remove the PodGroup of that key, if groups are entries of the queue: its pods wait for another one."""
        if self._groups is not None:
            self._groups.drop_group(key)

    def end_group_attempt(self, entry: QueuedPodGroupInfo, status: Status | None) -> None:
        """Requeue a group whose attempt has ended, if pods of it wait. Those that failed are back in the queue already.

        Args:
            status: the result of the attempt; None for success.

        Raises:
            AlreadyQueued: the group is in the queue already.
        """
        assert self._groups is not None
        self._groups.end_attempt(entry, status)

    # ------------------------------------------------------------ attempts

    def pop(self, monotonic_s: float | None = None) -> QueuedPodInfo | None:
        """Return the next pod to attempt, which is now in flight; None if no pod is ready, or the queue is closed.

        If no pod is active, a pod is popped before its backoff ends, unless its last attempt ended in an error.

        Args:
            monotonic_s: the monotonic clock's time, if the caller has just read it.
        """
        if self._is_closed:
            return None
        pods = self._queued
        while True:
            info, event = pods.active.peek(), _POPPED
            if info is None:
                info, event = pods.backing_off.peek(), POP_FROM_BACKOFF
                if info is None:
                    return None
                self._observer.incoming("active", event, info, is_moved=True)
            if self._take(info, event, None if monotonic_s is None else self._clock.at(monotonic_s)):
                return info

    def pop_with(self, first: QueuedPodInfo, pods: Iterable[Pod]) -> list[QueuedPodInfo]:
        """Pop the pods that are scheduled together with `first`, which has been popped; gated pods stay.

        Returns:
            All of them in the order of their attempts: by priority, then by the time of their first attempt.
        """
        infos = [first]
        for pod in pods:
            if self._queued.state_of(pod.key) is QueueState.GONE:
                continue
            self.activate([pod])
            info = self._queued.get(pod.key)
            if self._queued.state_of(pod.key) is QueueState.ACTIVE and info is not None and self._take(info, _POPPED):
                infos.append(info)
        return sorted(infos, key=lambda info: (-info.pod.priority, info.initial_attempt_timestamp_s or 0.0))

    def _take(self, info: QueuedPodInfo, event: str, now_s: float | None = None) -> bool:
        """Take a waiting pod out for an attempt; report it and return False if it is in flight already."""
        info.count_attempt()
        if isinstance(info, QueuedPodGroupInfo) and self._groups is not None:
            self._groups.on_popped(info)
        members = info.member_infos
        new_members = [member for member in members if member.pod.uid not in self._in_flight]
        for member in members:
            self._count_rejectors(member, -1)
            if member.pod.uid in self._in_flight:
                self._observer.unexpected_state(member, "the same pod is tracked in multiple places in the scheduler")
        if not new_members:
            self._queued.move(info, QueueEvent.DELETE, event, now_s=now_s)
            return False
        if isinstance(info, QueuedPodGroupInfo):
            info.members = new_members
        self._queued.move(info, QueueEvent.POP, event, now_s=now_s)
        for member in new_members:
            self._in_flight.add(member)
        return True

    def done(self, uid: str) -> None:
        """End the attempt of a pod that is not requeued: it has passed Permit, or was dropped."""
        info = self._in_flight.remove(uid)
        if info is not None:
            info.transitions.record(
                self._clock.now(),
                "Done",
                QueueState.IN_FLIGHT,
                QUEUE_STATES.next(QueueState.IN_FLIGHT, QueueEvent.DONE),
            )

    def add_unschedulable_if_not_present(self, info: QueuedPodInfo) -> None:
        """Requeue a pod whose attempt failed: it waits for an event, or for the end of its backoff.

        The failure handler has set the latest object and the rejector plugins; no rejector plugins mean an error.

        Raises:
            AlreadyQueued: the pod is in the queue already; its attempt counts as done all the same.
        """
        uid = info.pod.uid
        if (groups := self._groups_with(info.pod)) is not None:
            self._note_failure(info)
            self._in_flight.remove(uid)
            groups.add(info)
            return
        try:
            state = self._queued.state_of(info.key)
            if state is not QueueState.GONE:
                raise AlreadyQueued(info, state)
            self._note_failure(info)
            previous_state = QueueState.IN_FLIGHT if uid in self._in_flight else QueueState.GONE
            strategy = self._strategy_after_attempt(info)
            self._requeuing.requeue(info, strategy, SCHEDULE_ATTEMPT_FAILURE, coming_from=previous_state)
        finally:
            self._in_flight.remove(uid)

    def _note_failure(self, info: QueuedPodInfo) -> None:
        info.count_failure(self._clock.now())
        self._count_rejectors(info, 1)

    def _strategy_after_attempt(self, info: QueuedPodInfo) -> Strategy:
        """Choose how to requeue the pod from the events that arrived since it was popped."""
        if not info.rejector_plugins or self._is_in_loose_group(info.pod):
            return Strategy.AFTER_BACKOFF
        events = self._in_flight.events_since_popped(info.pod.uid)
        if events is None:
            if not self._is_closed:
                self._observer.unexpected_state(info, "the pod is not in flight, so events for it may have been missed")
            return Strategy.AFTER_BACKOFF
        return soonest(self._hints, info, events)

    def _is_in_loose_group(self, pod: Pod) -> bool:
        """Return whether the pod is tried with a group, but waits by itself: no event requeues it."""
        return self._has_loose_groups and pod.spec.scheduling_group is not None

    # ------------------------------------------------------------ events

    def move_all(
        self,
        event: ClusterEvent,
        old: Any = None,
        new: Any = None,
        pre_check: PreCheck | None = None,
    ) -> None:
        """Requeue every unschedulable pod that this change of the cluster may have made schedulable.

        Args:
            pre_check: Only pods that pass it are requeued.
        """
        interest = self._hints.interest(event)
        if interest.plugins or interest.is_wildcard:
            self._moves.move_all(interest, old, new, pre_check)
            self._record(interest, old, new)

    def _record(self, interest: Interest, old: Any, new: Any) -> None:
        if self._in_flight:
            self._in_flight.record(interest, old, new)

    def activate(self, pods: Iterable[Pod], after_s: float = 0.0) -> None:
        """Move the pods to the active queue at once, despite their backoff.

        Pods in flight follow when they are requeued.

        Args:
            after_s: the delay; only pods that are still queued or in flight at its end are moved.
        """
        if after_s > 0.0:
            self._delayed.add(pods, after_s)
            return
        interest = self._hints.interest(FORCE_ACTIVATE)
        for pod in pods:
            info = self._queued.get(pod.key)
            if (groups := self._groups_with(pod)) is not None:
                info = groups.entry_of(pod)
            state = QueueState.GONE if info is None else self._queued.state_of(info.key)
            if info is not None and state is not QueueState.ACTIVE:
                backs_off = state in (QueueState.BACKOFF, QueueState.ERROR_BACKOFF)
                has_passed_gate = backs_off and not info.has_failed_at_gate
                activate = self._requeuing.admitted_to_active if has_passed_gate else self._requeuing.to_active
                activate(info, interest.label)
            elif info is None and pod.uid in self._in_flight and not self._is_in_loose_group(pod):
                self._in_flight.record(interest, None, pod)

    def reload(self, profiles: Sequence[QueueProfile]) -> None:
        """Replace the profiles by new ones of the same names; retry every pod that the old ones rejected or gated."""
        self.replace_plugins(profiles)
        interest = self._hints.interest(CONFIGURATION_RELOAD)
        for info in list(self._queued.unschedulable):
            self._requeuing.requeue(info, Strategy.AFTER_BACKOFF, interest.label)
        self._record(interest, None, None)

    def replace_plugins(self, profiles: Sequence[QueueProfile]) -> None:
        """Ask other instances of the same plugins from now on, which decide as those before did."""
        self._hints.replace({profile.scheduler_name: profile.hints for profile in profiles})
        self._queued.unschedulable.label_readers = self._hints.label_readers()
        self._pre_enqueue_check.plugins = pre_enqueue_plugins(profiles)

    # ------------------------------------------------------------ timers

    def next_timer_s(self) -> float:
        """Return the seconds until the next timer is due. Every call of `wake` may have changed the answer."""
        flush_s = min(self._leftover_timer.delay_s(), self._delayed.delay_s())
        if self._queued.backing_off or self._queued.backing_off_after_error:
            return min(flush_s, self._backoff_timer.delay_s())
        return flush_s

    def run_due_timers(self) -> None:
        """Run the due flushes, and activate the due pods; cheap if none are due."""
        if self._backoff_timer.take():
            self.flush_backoff_completed()
        if self._leftover_timer.take():
            self.flush_unschedulable_leftover()
        # A pod recreated under the same name has a backoff of its own.
        due = ((pod, self._queued.get(pod.key)) for pod in self._delayed.take())
        self.activate(pod for pod, info in due if info is None or info.pod.uid == pod.uid)

    def flush_backoff_completed(self) -> None:
        """Move the pods whose backoff has ended to the active queue."""
        # Bounded by a count: with a backoff of 0 s, a pod whose PreEnqueue plugin fails again is due again at once.
        for _ in range(len(self._queued.backing_off) + len(self._queued.backing_off_after_error)):
            info = self._queued.backoff_completed()
            if info is None:
                return
            if info.has_failed_at_gate:
                self._requeuing.to_active(info, BACKOFF_COMPLETE)
            else:
                self._requeuing.admitted_to_active(info, BACKOFF_COMPLETE)

    def flush_unschedulable_leftover(self) -> None:
        """Retry every pod that has waited very long without an event: an event may have been missed."""
        now_s = self._clock.now()
        cutoff_s = now_s - self._times.unschedulable_max_s
        leftover = [
            info for info in self._queued.unschedulable if max(info.timestamp_s, info.flush_timestamp_s) < cutoff_s
        ]
        if leftover:
            for info in leftover:
                info.was_flushed_from_unschedulable = True
                info.flush_timestamp_s = now_s if self._rules.flush_gated else 0.0
            interest = self._hints.interest(UNSCHEDULABLE_TIMEOUT)
            self._moves.move_pods(leftover, interest)
            self._record(interest, None, None)

    def close(self) -> None:
        """Stop handing out pods."""
        self._is_closed = True
        for info in self._in_flight.pods():
            self.done(info.pod.uid)
        self._wake()

    # ------------------------------------------------------------ questions

    def state_of(self, pod: Pod) -> QueueState:
        """Return the pod's state in the queue."""
        groups = self._groups_with(pod)
        state = self._queued.state_of(pod.key) if groups is None else groups.state_of(pod)
        return QueueState.IN_FLIGHT if state is QueueState.GONE and pod.uid in self._in_flight else state

    def seconds_waited(self, info: QueuedPodInfo) -> tuple[float, float]:
        """Return the seconds since the pod was first ready for an attempt, and since it has been schedulable."""
        now_s = self._clock.now()
        first_s = info.initial_attempt_timestamp_s or info.timestamp_s
        return now_s - first_s, now_s - (info.schedulable_since_s or first_s)

    def get(self, pod: Pod) -> QueuedPodInfo | None:
        """Return the queue's record of the waiting pod."""
        groups = self._groups_with(pod)
        return self._queued.get(pod.key) if groups is None else groups.info_of(pod.key)

    def statistics(self) -> QueueStatistics:
        """Count the pods in each state, and the groups."""
        return count_queued(self._queued, self._groups, self._in_flight)

    def nominated_pods_for_node(self, node_name: str) -> tuple[Pod, ...]:
        """Return the pods nominated to the node; a nominated pod that is not queued has only its name filled in."""
        return tuple(self._queued_or_stub(pod) for pod in self.nominator.pods(node_name))

    def _queued_or_stub(self, pod: Pod) -> Pod:
        if (info := self.get(pod)) is not None:
            return info.pod
        meta = pod.metadata
        return Pod(metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid))

    def _count_rejectors(self, info: QueuedPodInfo, delta: int) -> None:
        if not info.unschedulable_plugins and not info.pending_plugins:
            return
        for plugin in info.rejector_plugins:
            self._observer.unschedulable_delta(plugin, info.pod.spec.scheduler_name, delta)
