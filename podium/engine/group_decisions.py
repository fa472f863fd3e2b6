"""The decision on a pod group, and on each of its pods, as values.

Source: kubernetes pkg/scheduler/schedule_one_podgroup.go, v1.36.2 and v1.37.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from podium.cluster import Snapshot
from podium.engine.placing import PlacedPod
from podium.framework.contract.group_post_filter import GroupHelp
from podium.framework.contract.post_filter import PostFilterResult
from podium.framework.contract.status import Code, PluginError, Status
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import rejected_on
from podium.framework.cycle.schedule import Decision, DoesNotFit, Failed, Suggested
from podium.objects.core import Pod, PodCondition
from podium.objects.pod_groups import PodGroup

UNSCHEDULABLE_GROUP: Final = PluginError("pod group is unschedulable")
REJECTED_GROUP: Final = Status(Code.UNSCHEDULABLE, error=UNSCHEDULABLE_GROUP)
_NO_NOMINATION: Final = PostFilterResult("")


@dataclass(frozen=True, slots=True)
class RejectedWithGroup:
    """The pod itself may have a node, but its group is not scheduled.

    A nominated node of None keeps the nomination, "" clears it.
    """

    status: Status
    nominated_node_name: str | None = ""


MemberDecision: TypeAlias = Suggested | DoesNotFit | Failed | RejectedWithGroup


class Member(NamedTuple):
    """The decision on one pod of the group. `cycle` is its attempt, which continues if the pod has a node."""

    cycle: Cycle
    decision: MemberDecision


class Eviction(NamedTuple):
    """The result of PostFilter for one pod: the victims, and the node where they make room."""

    pod: Pod
    help: PostFilterResult


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """The decision on a group.

    Attributes:
        status: why the group is not scheduled; None if it is.
        waits_for_preemption: whether the group will fit once victims are gone.
        members: the decisions in the order of the pods. If the group is scheduled, those with a node are to be placed.
        condition_type: that of the group's condition; "" if none is written.
        evictions: the victims for single pods of the group, which are evicted even if the group is not scheduled.
        help: what makes room for the group as a whole; None if nothing does, or it needs no room.
        status_before_help: the status before plugins were asked to help, by which the group is put back in the queue.
    """

    status: Status | None
    waits_for_preemption: bool
    members: Sequence[Member]
    condition_type: str
    evictions: Sequence[Eviction] = ()
    help: GroupHelp | None = None
    status_before_help: Status | None = None

    @property
    def victims(self) -> tuple[Pod, ...]:
        """The pods to evict for the group as a whole."""
        return () if self.help is None else self.help.victims

    @property
    def result(self) -> Literal["scheduled", "unschedulable", "waiting_on_preemption", "error"]:
        """The label of the group's metrics."""
        if self.status is None:
            return "scheduled"
        if not self.status.is_rejected:
            return "error"
        return "waiting_on_preemption" if self.waits_for_preemption else "unschedulable"

    def condition(self, group: PodGroup) -> PodCondition | None:
        """Return the group's new condition; None if it stays, because a group that was scheduled once remains so."""
        if not self.condition_type:
            return None
        status, old_condition = self.status, group.condition(self.condition_type)
        if status is not None and old_condition is not None and old_condition.status == "True":
            return None
        reason = "Scheduled" if status is None else "Unschedulable" if status.is_rejected else "SchedulerError"
        return PodCondition(
            type=self.condition_type,
            status="True" if status is None else "False",
            reason=reason,
            message="" if status is None else status.message,
            observed_generation=group.metadata.generation,
        )


@dataclass(frozen=True, slots=True)
class MemberAttempt:
    """The attempt at one pod in a simulation.

    Attributes:
        decision: without victims, which are in `eviction`.
        placed_pod: the placement; None if no node fits, or Reserve or Permit rejected the pod.
        requires_preemption: whether victims would have to leave its node first.
    """

    cycle: Cycle
    decision: Decision
    placed_pod: PlacedPod | None = None
    requires_preemption: bool = False
    eviction: Eviction | None = None

    @property
    def error(self) -> Status | None:
        """The status of an attempt that failed with an error, not a rejection."""
        decision = self.decision
        return decision.status if isinstance(decision, Failed) and not decision.status.is_rejected else None


@dataclass(slots=True)
class Simulation:
    """One simulation of the whole group; `status` is that of `GroupDecision`.

    Attributes:
        search_ended: that the search for another placement ran out of steps; "" if it did not.
        snapshot: the fork in which the pods were tried, and which they have left again; None if nobody needs it.
    """

    attempts: list[MemberAttempt]
    status: Status | None = REJECTED_GROUP
    waits_for_preemption: bool = False
    search_ended: str = ""
    snapshot: Snapshot | None = None

    @property
    def placed_pods(self) -> Sequence[Pod]:
        """The pods that have a place."""
        return [attempt.cycle.pod for attempt in self.attempts if attempt.placed_pod is not None]


def decision_of_rejection(row: int, status: Status) -> Decision:
    """Return the decision for a pod that Reserve or Permit rejected."""
    return DoesNotFit(rejected_on(row, status), _NO_NOMINATION) if status.is_rejected else Failed(status)
