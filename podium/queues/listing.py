"""Describes the pods in the queue to operators: each pod's state, the reason, and its next attempt.

Read-only: never changes the queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.lib.clock import SteadyClock
from podium.lib.transitions import Transition
from podium.objects.core import Pod
from podium.queues.group_entries import GroupEntries
from podium.queues.hints import Hints
from podium.queues.in_flight import InFlightPods
from podium.queues.nominator import Nominator
from podium.queues.queued_pods import QueuedPods
from podium.queues.states import QueueState


@dataclass(frozen=True, slots=True)
class NextTry:
    """A pod's next attempt: at a set time or on an event that one of its plugins waits for, whichever is first.

    Attributes:
        at_s: in seconds since the epoch; None if no time is set.
        events: plugin → the events it has registered for.
        may_be_sooner: whether the pod is popped before its backoff ends if no other pod waits.
    """

    at_s: float | None
    events: Mapping[str, tuple[str, ...]]
    may_be_sooner: bool = False


@dataclass(frozen=True, slots=True)
class ListedPod:
    """A pod that waits or is in flight, as it is now. Units: seconds since the epoch.

    Attributes:
        reason: the message of the gating plugin, or of the last failed attempt.
        details: further facts for operators.
    """

    pod: Pod
    state: QueueState
    nominated_node_name: str
    attempts: int
    queued_s: float
    first_tried_s: float | None
    unschedulable_plugins: tuple[str, ...]
    pending_plugins: tuple[str, ...]
    gating_plugin: str
    reason: str
    details: str
    next_try: NextTry | None
    transitions: tuple[Transition, ...]


class QueueListing:
    """Describes pods one by one, so that a caller that lists thousands can yield to other tasks in between.

    Cost: 0.1 us per pod in `infos`, 0.3 us for its state, 10 us for its description.
    """

    def __init__(
        self,
        pods: QueuedPods,
        groups: GroupEntries | None,
        in_flight: InFlightPods,
        nominator: Nominator,
        hints: Hints,
        clock: SteadyClock,
        unschedulable_max_s: float,
        *,
        flush_gated: bool,
    ) -> None:
        self._queued = pods
        self._groups = groups
        self._in_flight = in_flight
        self._nominator = nominator
        self._hints = hints
        self._clock = clock
        self._unschedulable_max_s = unschedulable_max_s
        self._flush_gated = flush_gated

    def infos(self) -> list[QueuedPodInfo]:
        """Return all pods that wait or are in flight, in no particular order."""
        apart = () if self._groups is None else self._groups.pods_apart()
        waiting = (member for info in self._queued for member in info.member_infos)
        return [*waiting, *apart, *self._in_flight.pods()]

    def info_of(self, key: str) -> QueuedPodInfo | None:
        """Return the pod of that key, if it waits or is in flight."""
        member = None if self._groups is None else self._groups.info_of(key)
        return (
            self._queued.get(key)
            or member
            or next((info for info in self._in_flight.pods() if info.pod.key == key), None)
        )

    def state_of(self, info: QueuedPodInfo) -> QueueState:
        """Return the pod's current state; GONE if it no longer waits and is no longer in flight."""
        if self._queued.get(info.pod.key) is info:
            return self._queued.state_of(info.pod.key)
        if self._groups is not None and self._groups.info_of(info.pod.key) is info:
            return self._groups.state_of(info.pod)
        return QueueState.IN_FLIGHT if info.pod.uid in self._in_flight else QueueState.GONE

    def describe(self, info: QueuedPodInfo) -> ListedPod:
        """Describe the pod."""
        state, wall_s = self.state_of(info), self._clock.wall_s
        first_s = info.initial_attempt_timestamp_s
        is_held = bool(info.gating_plugin) or info.has_failed_at_gate
        return ListedPod(
            pod=info.pod,
            state=state,
            nominated_node_name=self._nominator.node_of(info.pod.uid) or "",
            attempts=info.attempts,
            queued_s=wall_s(info.timestamp_s),
            first_tried_s=None if first_s is None else wall_s(first_s),
            unschedulable_plugins=tuple(sorted(info.unschedulable_plugins)),
            pending_plugins=tuple(sorted(info.pending_plugins)),
            gating_plugin=info.gating_plugin,
            reason=info.gate_reason if is_held else info.last_failure,
            details="" if is_held else info.last_details,
            next_try=self._next_try(info, state),
            transitions=tuple(line._replace(at_s=wall_s(line.at_s)) for line in info.transitions.entries),
        )

    def _next_try(self, info: QueuedPodInfo, state: QueueState) -> NextTry | None:
        """Return the pod's next attempt; None for a pod that does not wait, or waits for its group."""
        if state in (QueueState.IN_FLIGHT, QueueState.GONE, QueueState.INCOMPLETE, QueueState.PENDING):
            return None
        if self._groups is not None and info.pod.spec.scheduling_group is not None:
            info = self._groups.entry_of(info.pod) or info
        if state is QueueState.ACTIVE:
            return NextTry(self._clock.wall_s(self._clock.now()), {})
        if state in (QueueState.BACKOFF, QueueState.ERROR_BACKOFF):
            # The second in which the backoff runs out still counts as backing off.
            ends_s = self._clock.wall_s(self._queued.backoff_ends_s(info))
            return NextTry(ends_s, {}, may_be_sooner=state is QueueState.BACKOFF)
        plugins = (info.gating_plugin,) if info.gating_plugin else sorted(info.rejector_plugins)
        events = {plugin: self._hints.events_of(plugin, info.pod.spec.scheduler_name) for plugin in plugins}
        # Where the flush of leftover pods skips gated pods, they wait for an event, however long that takes.
        is_flushed = self._flush_gated or not info.gating_plugin
        since_s = max(info.timestamp_s, info.flush_timestamp_s)
        at_s = self._clock.wall_s(since_s + self._unschedulable_max_s) if is_flushed else None
        return NextTry(at_s, events)
