"""The pods of each pod group: which wait, which are assumed on a node, and which are bound.

Owns the membership, by the pods alone: a group exists here from its first pod to its last, whether or not there is a
PodGroup. Never knows the PodGroup, and never decides anything.

Source: kubernetes pkg/scheduler/backend/cache/podgroupstate.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from podium.objects.core import Pod
from podium.objects.pod_groups import group_of


@dataclass(slots=True, eq=False)
class PodGroupState:
    """The known pods of one group by uid, in the order in which they came. Each pod is in one of the three."""

    unscheduled: dict[str, Pod] = field(default_factory=dict)
    assumed: dict[str, Pod] = field(default_factory=dict)
    assigned: dict[str, Pod] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.unscheduled) + len(self.assumed) + len(self.assigned)

    @property
    def scheduled_count(self) -> int:
        """The number of pods that have a node, bound or not."""
        return len(self.assumed) + len(self.assigned)

    def scheduled(self) -> Iterator[Pod]:
        """Yield the pods that have a node, bound or not; each names its node."""
        yield from self.assigned.values()
        yield from self.assumed.values()

    def assume(self, pod: Pod) -> None:
        """Move a pod that waits to the assumed ones. It names its node."""
        if self.unscheduled.pop(pod.uid, None) is not None:
            self.assumed[pod.uid] = pod

    def forget(self, pod: Pod) -> None:
        """Move an assumed pod back to those that wait."""
        if self.assumed.pop(pod.uid, None) is not None:
            self.unscheduled[pod.uid] = pod

    def drop(self, uid: str) -> None:
        """Remove the pod."""
        for pods in (self.unscheduled, self.assumed, self.assigned):
            pods.pop(uid, None)

    def copy(self) -> PodGroupState:
        """Return a state that changes independently."""
        return PodGroupState(dict(self.unscheduled), dict(self.assumed), dict(self.assigned))


class PodGroupStates:
    """The state of every group that has a pod, by `<namespace>/<name>`."""

    def __init__(self) -> None:
        self._groups: dict[str, PodGroupState] = {}

    def get(self, key: str) -> PodGroupState | None:
        """Return the group's state, or None if no pod of it is known."""
        return self._groups.get(key)

    def scheduled(self) -> Iterator[Pod]:
        """The pods of all groups that have a node, bound or not; each names its node."""
        for state in self._groups.values():
            yield from state.scheduled()

    def put_waiting(self, pod: Pod) -> None:
        """Add or update a pod that waits. An assumed one stays assumed."""
        state = self._state_of(pod)
        if state is not None and pod.uid not in state.assumed:
            state.unscheduled[pod.uid] = pod

    def put_assigned(self, pod: Pod) -> None:
        """Add or update a bound pod, which may have waited or been assumed until now."""
        state = self._state_of(pod)
        if state is not None:
            state.unscheduled.pop(pod.uid, None)
            state.assumed.pop(pod.uid, None)
            state.assigned[pod.uid] = pod

    def assume(self, pod: Pod) -> None:
        """Count the pod as assumed on the node that it names."""
        state = self._state_of(pod)
        if state is not None:
            state.unscheduled.pop(pod.uid, None)
            state.assumed[pod.uid] = pod

    def forget(self, pod: Pod) -> None:
        """Count the pod as assumed no longer; one that was deleted meanwhile stays unknown."""
        key = group_of(pod)
        state = None if key is None else self._groups.get(key)
        if state is not None:
            state.forget(pod)

    def remove(self, pod: Pod) -> None:
        """Forget a deleted pod."""
        key = group_of(pod)
        state = None if key is None else self._groups.get(key)
        if key is None or state is None:
            return
        state.drop(pod.uid)
        if not len(state):
            del self._groups[key]

    def fork(self) -> PodGroupStates:
        """Return a copy that changes independently."""
        twin = PodGroupStates()
        twin._groups = {key: state.copy() for key, state in self._groups.items()}
        return twin

    def _state_of(self, pod: Pod) -> PodGroupState | None:
        """Return the state of the pod's group, created for its first pod, or None for a pod without a group."""
        key = group_of(pod)
        return None if key is None else self._groups.setdefault(key, PodGroupState())
