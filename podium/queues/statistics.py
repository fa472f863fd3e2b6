"""The numbers of pods and groups in the scheduling queue, by state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from podium.queues.group_entries import GroupEntries
from podium.queues.in_flight import InFlightPods
from podium.queues.queued_pods import QueuedPods
from podium.queues.states import QueueState

_QUEUE_LABELS: Final = {
    QueueState.ACTIVE: "active",
    QueueState.BACKOFF: "backoff",
    QueueState.ERROR_BACKOFF: "backoff",
    QueueState.UNSCHEDULABLE: "unschedulable",
    QueueState.GATED: "gated",
}


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """The number of pods in each state; `pending_pods` counts both backoff queues as one.

    Attributes:
        incomplete: the pods whose PodGroup is unknown.
        pending: the pods whose group is being tried without them.
        groups: the number of pod groups that are entries of the queue, in each state.
        group_pods: the number of pods in these entries, by the values of the metric's `queue` label.
    """

    active: int
    backoff: int
    error_backoff: int
    unschedulable: int
    gated: int
    in_flight: int
    in_flight_events: int
    incomplete: int = 0
    pending: int = 0
    groups: Mapping[QueueState, int] = field(default_factory=dict)
    group_pods: Mapping[str, int] = field(default_factory=dict)

    @property
    def pending_pods(self) -> Mapping[str, int]:
        """The number of pods by the values of the metric's `queue` label."""
        return {
            "active": self.active,
            "backoff": self.backoff + self.error_backoff,
            "unschedulable": self.unschedulable,
            "gated": self.gated,
            "incomplete": self.incomplete,
            "pending": self.pending,
        }

    @property
    def queued_entities(self) -> Mapping[tuple[str, ...], int]:
        """The number of pods by themselves, and of groups, by the values of the metric's labels."""
        counts: Counter[tuple[str, ...]] = Counter()
        for state, count in self.groups.items():
            counts[_QUEUE_LABELS[state], "podgroup"] += count
        for queue in ("active", "backoff", "unschedulable", "gated"):
            if count := self.pending_pods[queue] - self.group_pods.get(queue, 0):
                counts[queue, "pod"] = count
        return counts


def count_queued(pods: QueuedPods, groups: GroupEntries | None, in_flight: InFlightPods) -> QueueStatistics:
    """Count the pods and groups; a group's entry counts as many pods as wait in it."""
    entries = () if groups is None else groups.entries()
    group_counts = Counter(pods.state_of(entry.key) for entry in entries)
    surplus: Counter[QueueState] = Counter()
    group_pods: Counter[str] = Counter()
    for entry in entries:
        state = pods.state_of(entry.key)
        surplus[state] += len(entry.members) - 1
        group_pods[_QUEUE_LABELS[state]] += len(entry.members)
    gated_count = pods.unschedulable.gated_count
    return QueueStatistics(
        active=len(pods.active) + surplus[QueueState.ACTIVE],
        backoff=len(pods.backing_off) + surplus[QueueState.BACKOFF],
        error_backoff=len(pods.backing_off_after_error) + surplus[QueueState.ERROR_BACKOFF],
        unschedulable=len(pods.unschedulable) - gated_count + surplus[QueueState.UNSCHEDULABLE],
        gated=gated_count + surplus[QueueState.GATED],
        in_flight=len(in_flight),
        in_flight_events=in_flight.event_count,
        incomplete=0 if groups is None else groups.incomplete_count,
        pending=0 if groups is None else groups.pending_count,
        groups=group_counts,
        group_pods=group_pods,
    )
