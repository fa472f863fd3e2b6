"""Tries preemption on one node after another until there are enough candidates.

Pauses regularly, because dry runs on hundreds of nodes with all their pods take long.

Source: kubernetes pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from podium.cluster import Rows
from podium.framework.contract.post_filter import FilteredNodes
from podium.framework.contract.status import Status
from podium.framework.contract.steps import PAUSE, Steps
from podium.framework.preemption.candidates import Budgets, Candidate, Importance
from podium.framework.preemption.unit_victims import UnitsByNode, select_units
from podium.framework.preemption.victim_cache import VictimCache
from podium.framework.preemption.victims import VictimSelection, potential_victims, select_victims
from podium.objects.core import Pod

_BATCH_MIN: Final = 32
_violations = attrgetter("violations")


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The candidates, those that violate no budget first, and the status of each row that is not a candidate."""

    candidates: tuple[Candidate, ...]
    rejections: dict[int, Status]


def dry_run_preemption(
    nodes: FilteredNodes,
    rows: Rows,
    goal: int,
    pod: Pod,
    budgets: Budgets,
    importance: Importance,
    victim_cache: VictimCache,
    units: UnitsByNode | None = None,
) -> Steps[DryRunResult]:
    """Try the nodes of these rows in order, until there are `goal` candidates, one of which violates no budget.

    Args:
        units: which pods are evicted together; None if each can be evicted alone.
    """
    collection = Collection(goal)
    if not len(rows):
        return collection.result()
    # All rows share one fork: no row is tried twice, and a dry run changes only the state of its own row.
    dry_run = nodes.dry_run_of_nodes() if units is None else None
    start = 0
    while start < len(rows):
        # As many rows as candidates are still needed, since more would only cost time; but never a tiny batch.
        batch_size = max(goal - collection.count, _BATCH_MIN)
        batch = rows[start : start + (batch_size if dry_run is not None else 1)].tolist()
        start += len(batch)
        if dry_run is not None:
            answers = yield from victim_cache.select_victims(dry_run, batch, pod, budgets, importance)
        elif units is not None:
            with nodes.dry_run(batch[0]) as node_dry_run:
                answers = [select_units(node_dry_run, units.below(pod, batch[0]), budgets)]
            yield PAUSE
        elif isinstance(status := potential_victims(pod, nodes.pods(batch[0]), importance), Status):
            # The node has no potential victims. Skip the dry run, which would first copy the state of all plugins.
            answers = [status]
        else:
            answers = [_dry_run_row(nodes, batch[0], pod, budgets, importance)]
            yield PAUSE
        if collection.add(batch, answers):
            break
    return collection.result()


class Collection:
    """The candidates so far, until there are `goal`, one of which violates no budget."""

    def __init__(self, goal: int) -> None:
        self._goal = goal
        self._non_violating: list[Candidate] = []
        self._violating: list[Candidate] = []
        self._rejections: dict[int, Status] = {}

    @property
    def count(self) -> int:
        """The number of candidates."""
        return len(self._non_violating) + len(self._violating)

    def add(self, rows: Sequence[int], answers: Sequence[VictimSelection]) -> bool:
        """Add the answers of these rows up to the goal; return True once it is reached."""
        candidates = [answer for answer in answers if type(answer) is Candidate]
        missing = self._goal - self.count - len(candidates)
        # The usual batch of hundreds: no budget is violated, and the goal is not reached before its last row.
        if (missing > 0 or (missing == 0 and candidates[-1] is answers[-1])) and not any(map(_violations, candidates)):
            self._non_violating += candidates
            if len(candidates) < len(answers):
                pairs = zip(rows, answers, strict=True)
                self._rejections.update([(row, answer) for row, answer in pairs if type(answer) is Status])
            return self._is_enough()
        return self._add_singly(rows, answers)

    def _add_singly(self, rows: Sequence[int], answers: Sequence[VictimSelection]) -> bool:
        for row, answer in zip(rows, answers, strict=True):
            if isinstance(answer, Status):
                self._rejections[row] = answer
                continue
            candidates = self._violating if answer.violations else self._non_violating
            if len(candidates) < self._goal:
                candidates.append(answer)
            if self._is_enough():
                return True
        return False

    def _is_enough(self) -> bool:
        return bool(self._non_violating) and self.count >= self._goal

    def result(self) -> DryRunResult:
        """Return what was added, the candidates that violate no budget first."""
        return DryRunResult((*self._non_violating, *self._violating), self._rejections)


def _dry_run_row(nodes: FilteredNodes, row: int, pod: Pod, budgets: Budgets, importance: Importance) -> VictimSelection:
    with nodes.dry_run(row) as dry_run:
        return select_victims(dry_run, pod, budgets, importance)
