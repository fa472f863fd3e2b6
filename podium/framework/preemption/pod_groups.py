"""Preemption for a pod group as a whole, over all nodes.

Owns which pods are evicted together, their importance, and the choice of victims. Never tries the group itself: the
caller does, on forks of the snapshot.

Source: kubernetes pkg/scheduler/framework/preemption/podgrouppreemption.go and types.go, v1.36.2.
Differs: among victims of equal importance the first in node order is spared first; upstream leaves it to chance. Pods
that must not be victims, and pods of a budget that cannot be parsed, protect all pods that are evicted with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from podium.cluster import PodUsage, Snapshot
from podium.framework.contract.post_filter import GroupHelp
from podium.framework.contract.status import Status, unresolvable, unschedulable
from podium.framework.contract.steps import Steps
from podium.framework.preemption.candidates import Budgets, Importance
from podium.objects.core import Pod
from podium.objects.pod_groups import PodGroup, group_of

_NEVER: Final = unschedulable("not eligible due to preemptionPolicy=Never.")
_NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming preemptor")


@dataclass(slots=True, eq=False)
class Unit:
    """Pods that are evicted together, with their rows.

    Attributes:
        priority: that of the pod, or of the group that is disrupted as a whole.
        started_s: when the first of the pods in node order started.
    """

    priority: int
    started_s: float
    pods: list[Pod] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    usages: list[PodUsage] = field(default_factory=list)

    def add(self, row: int, pod: Pod, usage: PodUsage) -> None:
        """Add a pod."""
        self.rows.append(row)
        self.pods.append(pod)
        self.usages.append(usage)

    def take_off(self, snapshot: Snapshot) -> None:
        """Remove the pods from their nodes."""
        for row, pod in zip(self.rows, self.pods, strict=True):
            snapshot.remove_pod(row, pod.uid)

    def put_back(self, snapshot: Snapshot) -> None:
        """Put the pods back on their nodes."""
        for row, pod, usage in zip(self.rows, self.pods, self.usages, strict=True):
            snapshot.add_pod(row, pod, usage)

    @property
    def rank(self) -> tuple[int, bool, int, float]:
        """The most important unit has the smallest rank: pods of any group before pods of none, larger units first."""
        is_grouped = self.pods[0].spec.scheduling_group is not None
        return -self.priority, not is_grouped, -len(self.pods) if is_grouped else 0, self.started_s


def units_of(snapshot: Snapshot, find: Callable[[str], PodGroup | None], importance: Importance) -> Iterable[Unit]:
    """Return all pods on nodes, each in one unit, in node order.

    Args:
        find: the PodGroup with that key; None if there is none.
    """
    units: dict[str, Unit] = {}
    for row in snapshot.order.tolist():
        usages = snapshot.pod_usages(row)
        for uid, pod in snapshot.pods[row].items():
            key = group_of(pod)
            group = None if key is None else find(key)
            priority = pod.priority
            if group is not None and group.is_disrupted_as_a_whole:
                uid, priority = group.metadata.uid, group.priority
            unit = units.get(uid)
            if unit is None:
                unit = units[uid] = Unit(priority, importance.started_s(pod))
            unit.add(row, pod, usages[pod.uid])
    return units.values()


def preempt_for_group(
    group: PodGroup,
    pods: Sequence[Pod],
    snapshot: Snapshot,
    fits: Callable[[Snapshot], Steps[Status | None]],
    find: Callable[[str], PodGroup | None],
    budgets: Budgets,
    importance: Importance,
    is_protected: Callable[[Pod], bool],
) -> Steps[GroupHelp | Status]:
    """Return the pods to evict so that the group fits: as few as possible, and the least important ones.

    Args:
        fits: tries the group on a fork; None if it can be scheduled there.

    Returns:
        The victims, or why there are none.
    """
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return _NEVER
    units = [
        unit
        for unit in units_of(snapshot, find, importance)
        if unit.priority < group.priority and not any(map(is_protected, unit.pods))
    ]
    if not units:
        return _NO_VICTIMS
    world = snapshot.fork()
    for unit in units:
        unit.take_off(world)
    status = yield from fits(world)
    if status is not None:
        return status
    units.sort(key=lambda unit: unit.rank)
    victims: list[Unit] = []
    for unit in (unit_of_half for half in budgets.split_units(units) for unit_of_half in half):
        unit.put_back(world)
        if (yield from fits(world)) is not None:
            unit.take_off(world)
            victims.append(unit)
    victims.sort(key=lambda unit: unit.rank)
    return GroupHelp(tuple(pod for unit in victims for pod in unit.pods))
