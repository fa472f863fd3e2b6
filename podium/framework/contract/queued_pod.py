"""A pod, or a pod group, in the scheduling queue, with its state between attempts.

Source: kubernetes pkg/scheduler/framework/types.go (QueuedPodInfo, QueuedPodGroupInfo), v1.36.2 and v1.37.2.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from podium.lib.transitions import Transitions
from podium.objects.core import Pod, PodSpec
from podium.objects.pod_groups import PodGroup


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """A waiting pod. Only the queue and the failure handling change it.

    Units: times are in seconds on the queue's clock, which starts at the wall clock's time and is never set.
    """

    pod: Pod
    timestamp_s: float
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    backoff_expiration_s: float = 0.0
    was_flushed_from_unschedulable: bool = False
    flush_timestamp_s: float = 0.0
    """When it was last retried because it had waited very long without an event; 0 if not since its last attempt."""
    initial_attempt_timestamp_s: float | None = None
    schedulable_since_s: float | None = None
    """When it was last admitted to the queue after it was added, gated or rejected; None if it waits for an event."""
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    gating_plugin: str = ""
    gate_reason: str = ""
    """The message of the PreEnqueue plugin that gates the pod or failed to decide."""
    last_failure: str = ""
    """Why the last attempt did not schedule it."""
    last_details: str = ""
    has_failed_at_gate: bool = False
    """Whether a PreEnqueue plugin failed, so that it is called again after the pod's backoff."""
    transitions: Transitions = field(default_factory=Transitions)
    key: str = field(init=False)
    """`<namespace>/<name>`, however often the pod changes."""

    def __post_init__(self) -> None:
        self.key = self.pod.key

    def exclude(self, seconds: float) -> None:
        """Exclude this many seconds from the time since the pod has been schedulable."""
        if self.schedulable_since_s is not None:
            self.schedulable_since_s += seconds

    @property
    def member_infos(self) -> Sequence[QueuedPodInfo]:
        """The pods of this entry of the queue: this one, or those of a group."""
        return (self,)

    def count_attempt(self) -> None:
        """Count an attempt."""
        self.attempts += 1

    def count_failure(self, now_s: float) -> None:
        """Count that an attempt has ended now: in a rejection if plugins have rejected the pod, or in an error."""
        if self.rejector_plugins:
            self.unschedulable_count += 1
            self.consecutive_errors_count = 0
            self.schedulable_since_s = None
        else:
            self.consecutive_errors_count += 1
        self.timestamp_s = now_s
        self.backoff_expiration_s = 0.0
        self.was_flushed_from_unschedulable = False
        self.flush_timestamp_s = 0.0

    @property
    def is_gated(self) -> bool:
        """A PreEnqueue plugin keeps the pod out of the active queue."""
        return self.gating_plugin != ""

    @property
    def rejector_plugins(self) -> set[str]:
        """Every plugin that contributed to the pod not being scheduled."""
        return self.unschedulable_plugins | self.pending_plugins


@dataclass(slots=True, eq=False)
class QueuedPodGroupInfo(QueuedPodInfo):
    """A pod group as one entry of the queue, with its waiting pods.

    Attributes:
        pod: stands for the group, so that QueueSort plugins can order it: it has the group's name, uid and priority,
            and the scheduler name of one of its pods.
        group: the PodGroup.
        members: the waiting pods, in the order in which they are tried.
        has_been_scheduled: an attempt at the group has succeeded, whether or not its object shows that yet.
        key: `podgroup/<namespace>/<name>`.
    """

    group: PodGroup = field(default_factory=PodGroup)
    members: list[QueuedPodInfo] = field(default_factory=list)
    has_been_scheduled: bool = False

    def __post_init__(self) -> None:
        # No pod's key.
        self.key = group_entry_key(self.pod.key)

    @classmethod
    def of(cls, group: PodGroup, first: QueuedPodInfo) -> QueuedPodGroupInfo:
        """Return the entry of a group that begins to wait with this pod."""
        name = first.pod.spec.scheduler_name
        stand_in = Pod(metadata=group.metadata, spec=PodSpec(scheduler_name=name, priority=group.priority))
        entry = cls(stand_in, first.timestamp_s, group=group, members=[first])
        entry.initial_attempt_timestamp_s = first.initial_attempt_timestamp_s
        return entry

    @property
    def member_infos(self) -> Sequence[QueuedPodInfo]:
        """The waiting pods of the group, in the order in which they are tried."""
        return self.members

    def count_attempt(self) -> None:
        """Count an attempt at the group, and at each of its pods."""
        self.attempts += 1
        for member in self.members:
            member.attempts += 1

    def put_group(self, group: PodGroup) -> None:
        """Replace the PodGroup. Its priority counts from the next time that the entry is put into a queue."""
        self.group = group
        self.pod = replace(self.pod, metadata=group.metadata, spec=replace(self.pod.spec, priority=group.priority))

    def add(self, info: QueuedPodInfo) -> None:
        """Add a waiting pod: higher priorities come first, then more attempts, earlier times, and names."""
        insort(self.members, info, key=_member_order)


def group_entry_key(group_key: str) -> str:
    """Return the key in the queue of the group with that key."""
    return f"podgroup/{group_key}"


def _member_order(info: QueuedPodInfo) -> tuple[int, int, float, str]:
    return -info.pod.priority, -info.attempts, info.timestamp_s, info.pod.metadata.name
