"""The dry run of a pod group: its pods have their nodes in a fork, where victims are added back and removed.

Owns which changes plugins hear of. Never chooses victims.

Source: kubernetes pkg/scheduler/framework/preemption/podgrouppreemption.go (selectVictimsOnDomain), v1.37.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from podium.cluster import PodUsage, Snapshot
from podium.cluster.pod_usage import readable_pod_usage
from podium.framework.contract.status import PluginError, ScheduleError, Status
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.filter_chain import FilterChain
from podium.objects.core import Pod


class ProposedPod(NamedTuple):
    """A pod of the group, by its attempt in the fork, and the row of the node that was chosen for it."""

    cycle: Cycle
    row: int


class ForkedGroupDryRun:
    """Implements `podium.framework.contract.group_post_filter.GroupDryRun`.

    Args:
        snapshot: the fork in which the attempts were made. The pods of the group have left it again.
        proposed_pods: in the order of their attempts.
    """

    def __init__(self, status: Status | None, snapshot: Snapshot, proposed_pods: Sequence[ProposedPod]) -> None:
        self.status = status
        self._snapshot = snapshot
        self._proposed_pods = proposed_pods
        for cycle, _ in proposed_pods:
            # Nominations are as they were before the attempts again.
            cycle.forget_nodes()

    @property
    def nominations(self) -> Mapping[str, str]:
        """The node of each pod that fits, by the pod's uid."""
        return {cycle.pod.uid: self._snapshot.name(row) for cycle, row in self._proposed_pods}

    def add(self, row: int, pod: Pod, usage: PodUsage) -> None:
        """Put a pod back that was taken off its node."""
        self._snapshot.add_pod(row, pod, usage)
        for cycle, _ in self._proposed_pods:
            cycle.framework.run_add_pod(cycle.state, cycle.pod, pod, self._snapshot.node(row))

    def remove(self, row: int, pod: Pod) -> None:
        """Take a pod off its node again."""
        self._snapshot.remove_pod(row, pod.uid)
        for cycle, _ in self._proposed_pods:
            cycle.framework.run_remove_pod(cycle.state, cycle.pod, pod, self._snapshot.node(row))

    def still_fits(self) -> bool:
        """Return whether each pod of the group still fits on its node, beside those before it.

        Each attempt knew of the pods before it, so its plugins do not hear of them again.
        """
        taken: list[ProposedPod] = []
        try:
            for proposed_pod in self._proposed_pods:
                if not self._fits(proposed_pod):
                    return False
                cycle, row = proposed_pod
                name = self._snapshot.name(row)
                self._snapshot.add_pod(row, cycle.pod.on_node(name), readable_pod_usage(cycle.pod))
                taken.append(proposed_pod)
                cycle.framework.run_reserve(cycle.state, cycle.pod, name)
            return True
        finally:
            for cycle, row in reversed(taken):
                cycle.framework.run_unreserve(cycle.state, cycle.pod, self._snapshot.name(row))
                self._snapshot.remove_pod(row, cycle.pod.uid)

    @staticmethod
    def _fits(proposed_pod: ProposedPod) -> bool:
        """Filter the pod on its node. A filter that fails counts as a rejection."""
        try:
            return FilterChain.of(proposed_pod.cycle).alone(proposed_pod.row) is None
        except (PluginError, ScheduleError):
            return False
