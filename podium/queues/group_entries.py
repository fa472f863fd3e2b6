"""Pod groups as entries of the queue: which pods wait in which entry, and which wait for their group.

Owns three places of a group's pod that waits: in the entry of its group, which is in one of the queues; incomplete, if
its PodGroup is unknown; pending, while its group is being tried. Never decides when a group is tried.

Source: kubernetes v1.37.2, pkg/scheduler/backend/queue/scheduling_queue.go, pod_group_member_pods.go and
workload_forest.go.
Differs: while a group is gated, a pod that joins it is checked at once, and alone, so that a gang of n pods costs n
checks until it is complete; upstream checks every pod again for each of them, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from podium.framework.contract.queued_pod import QueuedPodGroupInfo, QueuedPodInfo, group_entry_key
from podium.framework.contract.status import Status
from podium.lib.clock import Clock
from podium.objects.core import Pod
from podium.objects.pod_groups import PodGroup, group_of
from podium.queues.gating import PreEnqueueCheck
from podium.queues.hints import Strategy
from podium.queues.queued_pods import QueuedPods
from podium.queues.requeuing import Requeuing
from podium.queues.states import QUEUE_STATES, QueueEvent, QueueState
from podium.queues.values import AlreadyQueued

SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"

_STRATEGIES = {QueueState.ACTIVE: Strategy.IMMEDIATELY}
_GATED = (QueueState.UNSCHEDULABLE, QueueState.GATED)


class GroupEntries:
    """The pods of groups that wait. Pods in flight are in none of the three places.

    Args:
        pod_added, group_deleted: the labels of the events of these names.
    """

    def __init__(
        self,
        queued: QueuedPods,
        requeuing: Requeuing,
        pre_enqueue_check: PreEnqueueCheck,
        clock: Clock,
        *,
        pod_added: str,
        group_deleted: str,
    ) -> None:
        self._queued = queued
        self._requeuing = requeuing
        self._check = pre_enqueue_check
        self._clock = clock
        self._pod_added = pod_added
        self._group_deleted = group_deleted
        self._groups: dict[str, PodGroup] = {}
        self._infos: dict[str, QueuedPodInfo] = {}
        """The pods in any of the three places, by key."""
        self._entries: dict[str, QueuedPodGroupInfo] = {}
        """The entries in a queue, by the key of the group."""
        self._incomplete: dict[str, dict[str, QueuedPodInfo]] = {}
        self._pending: dict[str, dict[str, QueuedPodInfo]] = {}
        self._tried = ""
        """The key of the group that was popped last and has not returned."""

    # ------------------------------------------------------------ pods

    def add(self, info: QueuedPodInfo) -> None:
        """Add a pod that waits: to the entry of its group, or to one that begins with it."""
        key = _group_key(info.pod)
        self._infos[info.key] = info
        group, entry = self._groups.get(key), self._entries.get(key)
        if group is None:
            self._hold(self._incomplete, key, info, QueueEvent.AWAIT_GROUP)
        elif entry is not None:
            self._join(entry, info)
        elif key == self._tried:
            self._hold(self._pending, key, info, QueueEvent.AWAIT_RETURN)
        else:
            entry = self._entries[key] = QueuedPodGroupInfo.of(group, info)
            self._requeuing.to_active(entry, self._pod_added)

    def info_of(self, pod_key: str) -> QueuedPodInfo | None:
        """Return the queue's record of a pod that waits."""
        return self._infos.get(pod_key)

    def entry_of(self, pod: Pod) -> QueuedPodGroupInfo | None:
        """Return the entry in which the pod waits; None if it is incomplete or pending, or does not wait."""
        is_held = self.state_of(pod) in (QueueState.GONE, QueueState.INCOMPLETE, QueueState.PENDING)
        return None if is_held else self._entries[_group_key(pod)]

    def state_of(self, pod: Pod) -> QueueState:
        """Return the state of a pod of a group; GONE if it does not wait."""
        if pod.key not in self._infos:
            return QueueState.GONE
        key = _group_key(pod)
        if pod.key in self._incomplete.get(key, ()):
            return QueueState.INCOMPLETE
        if pod.key in self._pending.get(key, ()):
            return QueueState.PENDING
        return self._queued.state_of(group_entry_key(key))

    def remove(self, pod: Pod) -> QueuedPodInfo | None:
        """Remove a pod, and its group's entry with the last of its pods; return its record."""
        info, key = self._infos.pop(pod.key, None), _group_key(pod)
        if info is None:
            return None
        for place in (self._incomplete, self._pending):
            if pod.key in place.get(key, ()):
                self._let_go(place, key, info)
                return info
        entry = self._entries[key]
        state = self._leave_queue(entry, self._pod_added)
        entry.members.remove(info)
        if entry.members:
            self._return_to(entry, state, self._pod_added)
        else:
            del self._entries[key]
        return info

    # ------------------------------------------------------------ PodGroups

    def put_group(self, group: PodGroup) -> None:
        """Add or update a PodGroup; pods that have waited for it join its entry."""
        self._groups[group.key] = group
        entry = self._entries.get(group.key)
        if entry is not None:
            entry.put_group(group)
            self._queued.reorder(entry)
        for info in list(self._incomplete.get(group.key, {}).values()):
            self._let_go(self._incomplete, group.key, info)
            del self._infos[info.key]
            self.add(info)

    def drop_group(self, key: str) -> None:
        """Remove a PodGroup: its pods wait for another one of that name."""
        self._groups.pop(key, None)
        entry = self._entries.pop(key, None)
        infos: Iterable[QueuedPodInfo] = ()
        if entry is not None:
            self._leave_queue(entry, self._group_deleted)
            infos, entry.members = entry.members, []
        else:
            infos = list(self._pending.get(key, {}).values())
            for info in infos:
                self._let_go(self._pending, key, info)
        for info in infos:
            self._hold(self._incomplete, key, info, QueueEvent.AWAIT_GROUP)

    # ------------------------------------------------------------ attempts

    def on_popped(self, entry: QueuedPodGroupInfo) -> None:
        """The group is being tried: its entry is in no queue, and pods that come wait until it returns."""
        key = entry.group.key
        del self._entries[key]
        for info in entry.members:
            del self._infos[info.key]
        self._tried = key

    def end_attempt(self, entry: QueuedPodGroupInfo, status: Status | None) -> None:
        """Put the group back into a queue, with the pods that came back or came anew; without any, it is gone.

        Args:
            status: the result of the attempt; None for success.

        Raises:
            AlreadyQueued: the group is in a queue already; that entry is kept.
        """
        key = entry.group.key
        if key in self._entries:
            raise AlreadyQueued(entry, self._queued.state_of(entry.key))
        self._tried = ""
        infos = list(self._pending.get(key, {}).values())
        if not infos:
            return
        for info in infos:
            self._let_go(self._pending, key, info)
        is_success, now_s = status is None, self._clock.now()
        tried_uids = {member.pod.uid for member in entry.members}
        # The pods that are left over are tried again at once, and in their turn: preemption may help them.
        if not (is_success and any(info.pod.uid in tried_uids for info in infos)):
            entry.timestamp_s = now_s
        _count_result(entry, status)
        entry.was_flushed_from_unschedulable = False
        entry.members = []
        entry.put_group(self._groups[key])
        for info in infos:
            entry.add(info)
        self._entries[key] = entry
        if not is_success and self._queued.is_backing_off(entry):
            self._requeuing.to_backoff(entry, SCHEDULE_ATTEMPT_FAILURE, QueueState.IN_FLIGHT)
        else:
            self._requeuing.to_active(entry, SCHEDULE_ATTEMPT_FAILURE, coming_from=QueueState.IN_FLIGHT)

    # ------------------------------------------------------------ the whole

    def entries(self) -> Sequence[QueuedPodGroupInfo]:
        """Return the groups that are in a queue."""
        return tuple(self._entries.values())

    def pods_apart(self) -> Iterator[QueuedPodInfo]:
        """Return the pods that are incomplete or pending."""
        for pods in (*self._incomplete.values(), *self._pending.values()):
            yield from pods.values()

    @property
    def incomplete_count(self) -> int:
        """The number of pods whose PodGroup is unknown."""
        return sum(map(len, self._incomplete.values()))

    @property
    def pending_count(self) -> int:
        """The number of pods whose group is being tried without them."""
        return sum(map(len, self._pending.values()))

    # ------------------------------------------------------------ inside

    def _join(self, entry: QueuedPodGroupInfo, info: QueuedPodInfo) -> None:
        """Add a pod to an entry, which stays in its queue; if it is active or backs off, it may be gated anew."""
        state = self._queued.state_of(entry.key)
        if state not in _GATED:
            self._leave_queue(entry, self._pod_added)
            entry.add(info)
            self._return_to(entry, state, self._pod_added)
            return
        entry.add(info)
        self._check.admits_pod(info)
        self._queued.reorder(entry)
        info.transitions.record(self._clock.now(), self._pod_added, QueueState.GONE, state, info.gating_plugin)

    def _leave_queue(self, entry: QueuedPodGroupInfo, event: str) -> QueueState:
        """Take the entry out of its queue while it changes, because its place depends on its pods; return its state."""
        return self._queued.move(entry, QueueEvent.DELETE, event)

    def _return_to(self, entry: QueuedPodGroupInfo, state: QueueState, event: str) -> None:
        """Put the entry back into the queue of that state."""
        if state is QueueState.GATED:
            self._queued.move(entry, QueueEvent.GATE, event)
        else:
            self._requeuing.requeue(entry, _STRATEGIES.get(state, Strategy.AFTER_BACKOFF), event)

    def _hold(
        self, place: dict[str, dict[str, QueuedPodInfo]], key: str, info: QueuedPodInfo, move: QueueEvent
    ) -> None:
        place.setdefault(key, {})[info.key] = info
        state = QUEUE_STATES.next(QueueState.GONE, move)
        info.transitions.record(self._clock.now(), self._pod_added, QueueState.GONE, state)

    def _let_go(self, place: dict[str, dict[str, QueuedPodInfo]], key: str, info: QueuedPodInfo) -> None:
        del place[key][info.key]
        if not place[key]:
            del place[key]


def _group_key(pod: Pod) -> str:
    key = group_of(pod)
    assert key is not None, pod.key
    return key


def _count_result(entry: QueuedPodGroupInfo, status: Status | None) -> None:
    """Count the attempt, for the length of the backoff."""
    entry.backoff_expiration_s = 0.0
    if status is None:
        entry.consecutive_errors_count = entry.unschedulable_count = 0
    elif status.is_rejected:
        entry.unschedulable_count += 1
        entry.consecutive_errors_count = 0
    else:
        entry.consecutive_errors_count += 1
