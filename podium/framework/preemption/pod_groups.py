"""Preemption for a pod group as a whole, over all nodes.

Owns which pods are evicted together, their importance, and the choice of victims. Never tries the group itself: the
caller does, on forks of the snapshot.

Source: kubernetes pkg/scheduler/framework/preemption/podgrouppreemption.go and types.go, v1.36.2 and v1.37.2.
Differs: among victims of equal importance the first in node order is spared first; upstream leaves it to chance. Pods
that must not be victims, and pods of a budget that cannot be parsed, protect all pods that are evicted with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from podium.cluster import PodUsage, Snapshot
from podium.framework.contract.group_post_filter import GroupDryRun, GroupHelp, UnscheduledGroup
from podium.framework.contract.status import PluginError, Status, error_status, unresolvable, unschedulable
from podium.framework.contract.steps import PAUSE, Steps
from podium.framework.preemption.candidates import Budgets, Importance, is_leaving
from podium.objects.core import Pod
from podium.objects.pod_groups import PodGroup, group_of

_NEVER: Final = unschedulable("not eligible due to preemptionPolicy=Never.")
_NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming preemptor")


@dataclass(slots=True, eq=False)
class Unit:
    """Pods that are evicted together, with their rows.

    Attributes:
        priority: that of the pod, or of the group that is disrupted as a whole.
        started_s: when the unit started.
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
        return -self.priority, not self.is_of_group, -len(self.pods), self.started_s

    @property
    def is_of_group(self) -> bool:
        """The pods are of a group, even if a single one of them is evicted alone."""
        return self.pods[0].spec.scheduling_group is not None


def units_of(
    snapshot: Snapshot,
    rows: Iterable[int],
    find: Callable[[str], PodGroup | None],
    importance: Importance,
    *,
    by_group: bool,
) -> Iterable[Unit]:
    """Return the pods on these rows in units, in node order; a group that is evicted as a whole is one unit on them.

    Args:
        find: the PodGroup with that key; None if there is none.
        by_group: a pod of a group has the group's priority even if it is evicted alone, and a unit has started with the
            first of its pods. Otherwise the pod has its own, and the unit has started with the first in node order.
    """
    units: dict[str, Unit] = {}
    for row in rows:
        for uid, pod in snapshot.pods[row].items():
            key = group_of(pod)
            group = None if key is None else find(key)
            is_whole = group is not None and group.is_disrupted_as_a_whole
            priority = group.priority if group is not None and (is_whole or by_group) else pod.priority
            unit_uid = group.metadata.uid if group is not None and is_whole else uid
            unit, started_s = units.get(unit_uid), importance.started_s(pod)
            if unit is None:
                unit = units[unit_uid] = Unit(priority, started_s)
            elif by_group:
                unit.started_s = min(unit.started_s, started_s)
            unit.add(row, pod, snapshot.pod_usage(row, pod))
    return units.values()


def answer_without_victims(
    unscheduled: UnscheduledGroup, find: Callable[[str], PodGroup | None]
) -> GroupHelp | Status | None:
    """Return the answer for a group that must not preempt, or whose victims still terminate; None to look for some."""
    pods = unscheduled.pods
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return _NEVER
    if _is_preempting(unscheduled, find):
        nominations = {pod.uid: pod.status.nominated_node_name for pod in pods}
        return GroupHelp((), nominations, "ongoing preemption on nominated nodes")
    return None


def _empty_for(
    unscheduled: UnscheduledGroup,
    find: Callable[[str], PodGroup | None],
    importance: Importance,
    is_protected: Callable[[Pod], bool],
    *,
    by_group: bool,
) -> Steps[tuple[list[Unit], Snapshot, GroupDryRun] | Status]:
    """Return all that may be evicted, the most important unit first, a fork without it, and the group's run there.

    Returns:
        Why no eviction helps, if there is nothing to evict or the group does not even fit on that fork.
    """
    group, snapshot = unscheduled.group, unscheduled.snapshot
    all_units = units_of(snapshot, snapshot.order.tolist(), find, importance, by_group=by_group)
    units = [unit for unit in all_units if unit.priority < group.priority and not any(map(is_protected, unit.pods))]
    if not units:
        return _NO_VICTIMS
    world = snapshot.fork()
    for unit in units:
        unit.take_off(world)
    dry_run = yield from unscheduled.simulate(world)
    if dry_run.status is not None:
        return dry_run.status
    units.sort(key=lambda unit: unit.rank)
    return units, world, dry_run


def preempt_for_group(
    unscheduled: UnscheduledGroup,
    find: Callable[[str], PodGroup | None],
    budgets: Budgets,
    importance: Importance,
    is_protected: Callable[[Pod], bool],
) -> Steps[GroupHelp | Status]:
    """The pods to evict so that the group fits, on the nodes where its pods fit without all less important pods.

    Every unit comes back, the most important one first, unless a pod of the group no longer fits on its node then.

    Returns:
        The victims with the nodes for the pods of the group, or why there are none.
    """
    emptied = yield from _empty_for(unscheduled, find, importance, is_protected, by_group=True)
    if isinstance(emptied, Status):
        return emptied
    units, _, dry_run = emptied
    violating, harmless = budgets.split_by_count(units)
    victims: list[Unit] = []
    violations = 0
    try:
        for unit, violation_count in chain(violating, ((unit, 0) for unit in harmless)):
            yield PAUSE
            if not _reprieve(dry_run, unit):
                victims.append(unit)
                violations += violation_count
    except PluginError as error:
        return error_status(error)
    victims.sort(key=lambda unit: unit.rank)
    victim_pods = tuple(pod for unit in victims for pod in unit.pods)
    message = f"found a placement for podgroup, preempting {len(victim_pods)} victims"
    disruptions = sum(unit.is_of_group for unit in victims)
    return GroupHelp(victim_pods, dry_run.nominations, message, disruptions, violations)


def _reprieve(dry_run: GroupDryRun, unit: Unit) -> bool:
    """Put a unit back if the group still fits beside it; return whether it stays."""
    for row, pod, usage in zip(unit.rows, unit.pods, unit.usages, strict=True):
        dry_run.add(row, pod, usage)
    if dry_run.still_fits():
        return True
    for row, pod in zip(unit.rows, unit.pods, strict=True):
        dry_run.remove(row, pod)
    return False


def _is_preempting(unscheduled: UnscheduledGroup, find: Callable[[str], PodGroup | None]) -> bool:
    """Return whether victims still terminate on a node that a pod of the group is nominated to."""
    snapshot, names = unscheduled.snapshot, {pod.status.nominated_node_name for pod in unscheduled.pods}
    rows = [row for name in names if (row := snapshot.row_of.get(name)) is not None]
    return any(
        is_leaving(pod) and priority_of(pod, find) < unscheduled.group.priority
        for row in rows
        for pod in snapshot.pods[row].values()
    )


def priority_of(pod: Pod, find: Callable[[str], PodGroup | None]) -> int:
    """Return the priority that protects the pod from preemption: that of its group, its own without one."""
    key = group_of(pod)
    group = None if key is None else find(key)
    return pod.priority if group is None else group.priority


def preempt_for_loose_group(
    unscheduled: UnscheduledGroup,
    find: Callable[[str], PodGroup | None],
    budgets: Budgets,
    importance: Importance,
    is_protected: Callable[[Pod], bool],
) -> Steps[GroupHelp | Status]:
    """Return the pods to evict so that the group fits: as few as possible, and the least important ones.

    The group is tried again for every unit that comes back, so its pods may go to other nodes.

    Returns:
        The victims, or why there are none.
    """
    if any(pod.spec.preemption_policy == "Never" for pod in unscheduled.pods):
        return _NEVER
    emptied = yield from _empty_for(unscheduled, find, importance, is_protected, by_group=False)
    if isinstance(emptied, Status):
        return emptied
    units, world, _ = emptied
    victims: list[Unit] = []
    for unit in (unit_of_half for half in budgets.split_units(units) for unit_of_half in half):
        unit.put_back(world)
        dry_run = yield from unscheduled.simulate(world)
        if dry_run.status is not None:
            unit.take_off(world)
            victims.append(unit)
    victims.sort(key=lambda unit: unit.rank)
    return GroupHelp(tuple(pod for unit in victims for pod in unit.pods))
