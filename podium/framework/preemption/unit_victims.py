"""Selecting victims on one node where pods of groups run: some of them leave only with the rest of their group.

Owns which units must leave for the incoming pod. Pods of a unit on other nodes leave as well, but only the plugins'
states show that: the filters run for this node alone.

Source: kubernetes v1.37.2, pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
(SelectVictimsOnNode) and framework/preemption/types.go (getCrossNodesVictims).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from podium.cluster import Snapshot
from podium.framework.contract.dry_runs import NodeDryRun
from podium.framework.contract.status import PluginError, error_status
from podium.framework.preemption.candidates import Budgets, Candidate, Importance
from podium.framework.preemption.pod_groups import Unit, units_of
from podium.framework.preemption.victims import NO_VICTIMS, VictimSelection, none_needed
from podium.objects.core import Pod
from podium.objects.pod_groups import PodGroup


class UnitsByNode:
    """The units of all pods on nodes, by row. Cost: one step for each pod of the cluster, once."""

    def __init__(
        self,
        snapshot: Snapshot,
        find: Callable[[str], PodGroup | None],
        importance: Importance,
        is_protected: Callable[[Pod], bool],
    ) -> None:
        self._by_row: dict[int, list[Unit]] = {}
        for unit in units_of(snapshot, snapshot.order.tolist(), find, importance, by_group=True):
            if not any(map(is_protected, unit.pods)):
                for row in dict.fromkeys(unit.rows):
                    self._by_row.setdefault(row, []).append(unit)

    def below(self, pod: Pod, row: int) -> Sequence[Unit]:
        """Return the units with a pod on that row that have a lower priority than the pod."""
        return [unit for unit in self._by_row.get(row, ()) if unit.priority < pod.priority]


def select_units(dry_run: NodeDryRun, units: Sequence[Unit], budgets: Budgets) -> VictimSelection:
    """The victims on one node: remove all these units, then reprieve each one that can stay.

    Units whose eviction violates a budget are reprieved first; within both kinds the most important ones come first.
    """
    if not units:
        return NO_VICTIMS
    try:
        for unit in units:
            _remove(dry_run, unit)
        status = dry_run.status()
        if status is not None:
            return status
        violating, harmless = budgets.split_by_count(sorted(units, key=lambda unit: unit.rank))
        victims: list[Unit] = []
        violations = 0
        for unit, violation_count in chain(violating, ((unit, 0) for unit in harmless)):
            if not _reprieve(dry_run, unit):
                victims.append(unit)
                violations += violation_count
    except PluginError as error:
        return error_status(error)
    if not victims:
        return none_needed(dry_run.node.name)
    if violating and harmless:
        victims.sort(key=lambda unit: unit.rank)
    return Candidate(dry_run.node.name, tuple(pod for unit in victims for pod in unit.pods), violations)


def _remove(dry_run: NodeDryRun, unit: Unit) -> None:
    for pod in unit.pods:
        dry_run.remove(pod)


def _reprieve(dry_run: NodeDryRun, unit: Unit) -> bool:
    """Add a unit back if the incoming pod fits beside it; return whether it stays."""
    for pod in unit.pods:
        dry_run.add(pod)
    if dry_run.status() is None:
        return True
    _remove(dry_run, unit)
    return False
