"""Attempts at pod groups: all waiting pods of a group are decided on together.

Owns what is tried together: the pods of a group that was popped, or, where the pods of groups wait one by one, the
popped pod and the others of its group. Never carries a decision out.

Source: kubernetes pkg/scheduler/schedule_one_podgroup.go (podGroupInfoForPod, v1.36.2; scheduleOnePodGroup, v1.37.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.cluster.pod_groups import PodGroupState
from podium.engine.group_cycle import GroupCycle
from podium.engine.group_decisions import GroupDecision, Member
from podium.engine.loose_group_cycle import LooseGroupCycle
from podium.engine.placing import Engine
from podium.engine.pod_group_cycle import PodGroupCycle, problem_of_group
from podium.framework.contract.handle import Lister
from podium.framework.contract.queued_pod import QueuedPodGroupInfo, QueuedPodInfo
from podium.framework.contract.status import Status
from podium.framework.contract.steps import Steps
from podium.framework.cycle.schedule import Failed
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod
from podium.objects.pod_groups import PodGroup, group_of
from podium.queues import QueuedPodGroups


@dataclass(frozen=True, slots=True)
class GroupAttempt:
    """One attempt to schedule the waiting pods of a group, from the moment they were popped.

    Attributes:
        entry: the group's entry of the queue; None if its pods wait one by one.

    Units: `started_s` is on the monotonic clock.
    """

    key: str
    infos: Sequence[QueuedPodInfo]
    started_s: float
    entry: QueuedPodGroupInfo | None = None

    @property
    def pod(self) -> Pod:
        """The first of the pods."""
        return self.infos[0].pod


class PodGroupAttempts:
    """Begins attempts at groups.

    Args:
        groups: the pods of each group.
        objects: the PodGroups.
    """

    def __init__(
        self,
        engine: Engine,
        frameworks: Mapping[str, Framework],
        groups: QueuedPodGroups,
        objects: Lister[PodGroup],
    ) -> None:
        self._engine = engine
        self._frameworks = frameworks
        self._groups = groups
        self._objects = objects
        self._cycle: type[GroupCycle] = PodGroupCycle if groups.rules.are_entries else LooseGroupCycle

    def is_group(self, info: QueuedPodInfo) -> bool:
        """Return whether what was popped is a group, or a pod that is tried with the others of its group."""
        return isinstance(info, QueuedPodGroupInfo) or info.pod.spec.scheduling_group is not None

    def begin(self, popped: QueuedPodInfo, started_s: float) -> GroupAttempt:
        """Begin an attempt at a group that was popped, or at the group of a pod that was popped."""
        if isinstance(popped, QueuedPodGroupInfo):
            return GroupAttempt(popped.group.key, tuple(popped.members), started_s, popped)
        key = group_of(popped.pod) or ""
        return GroupAttempt(key, self._groups.pop_with(popped, key), started_s)

    def has_problem(self, attempt: GroupAttempt) -> bool:
        """Return whether the pods of the group contradict each other or their group, so that all of them fail."""
        group, pods = self.object_of(attempt), [info.pod for info in attempt.infos]
        state = self._groups.state(attempt.key) or PodGroupState()
        return attempt.entry is not None and group is not None and problem_of_group(group, pods, state) is not None

    def steps(self, attempt: GroupAttempt) -> Steps[GroupDecision]:
        """Decide what becomes of the group."""
        key, pods = attempt.key, [info.pod for info in attempt.infos]
        state = self._groups.state(key) or PodGroupState()
        rules, group = self._groups.rules, self.object_of(attempt)
        return self._cycle(self._engine, self._frameworks, rules, key, group, pods, state).attempt()

    def object_of(self, attempt: GroupAttempt) -> PodGroup | None:
        """Return the latest version of the PodGroup, or None if it is gone."""
        return self._objects.get(attempt.key)

    def failed_decision(self, attempt: GroupAttempt, status: Status) -> GroupDecision:
        """Return the decision for an attempt that was broken off."""
        decision = Failed(status)
        members = [
            Member(self._engine.cycle(self._frameworks[info.pod.spec.scheduler_name], info.pod), decision)
            for info in attempt.infos
        ]
        return GroupDecision(
            status,
            waits_for_preemption=False,
            members=members,
            condition_type=self._cycle.condition_type,
            status_before_help=status,
        )
