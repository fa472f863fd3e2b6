"""Attempts at pod groups: a popped pod of a group takes the others with it, and all of them are decided on together.

Owns what is tried together. Never carries a decision out.

Source: kubernetes pkg/scheduler/schedule_one_podgroup.go (podGroupInfoForPod), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.cluster.pod_groups import PodGroupState
from podium.engine.placing import Engine
from podium.engine.pod_group_cycle import GroupDecision, Member, PodGroupCycle
from podium.framework.contract.handle import Lister
from podium.framework.contract.queued_pod import QueuedPodInfo
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

    Units: `started_s` is on the monotonic clock.
    """

    key: str
    infos: Sequence[QueuedPodInfo]
    started_s: float

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

    def pop_with(self, first: QueuedPodInfo) -> Sequence[QueuedPodInfo]:
        """Return the popped pod and all others of its group that wait, in the order in which they are tried."""
        return self._groups.pop_with(first, group_of(first.pod) or "")

    def begin(self, infos: Sequence[QueuedPodInfo], started_s: float) -> GroupAttempt:
        """Begin an attempt at these pods of one group."""
        return GroupAttempt(group_of(infos[0].pod) or "", infos, started_s)

    def steps(self, attempt: GroupAttempt) -> Steps[GroupDecision]:
        """Decide what becomes of the group."""
        key, pods = attempt.key, [info.pod for info in attempt.infos]
        state = self._groups.state(key) or PodGroupState()
        rules, group = self._groups.rules, self.object_of(attempt)
        return PodGroupCycle(self._engine, self._frameworks, rules, key, group, pods, state).attempt()

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
        return GroupDecision(status, waits_for_preemption=False, members=members)
