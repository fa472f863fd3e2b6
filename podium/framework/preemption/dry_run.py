"""Tries preemption on one node after another until there are enough candidates.

Pauses regularly, because dry runs on hundreds of nodes with all their pods take long.

Source: kubernetes pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, cast

import numpy as np

from podium.cluster import Rows
from podium.framework.contract.post_filter import FilteredNodes
from podium.framework.contract.status import Status
from podium.framework.contract.steps import PAUSE, Steps
from podium.framework.preemption.candidates import (
    COST_ROWS,
    COUNT,
    VIOLATIONS,
    Budgets,
    Candidate,
    Candidates,
    Costs,
    Importance,
)
from podium.framework.preemption.unit_victims import UnitsByNode, select_units
from podium.framework.preemption.victim_cache import Stretch, VictimCache
from podium.framework.preemption.victims import Selections, VictimSelection, potential_victims, select_victims
from podium.objects.core import Pod

_BATCH_MIN: Final = 32


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The candidates, those that violate no budget first, and the answers of the rows that were tried."""

    candidates: Candidates
    selections: Sequence[tuple[Rows, Sequence[VictimSelection]]]

    @property
    def rejections(self) -> dict[int, Status]:
        """The status of each row that is not a candidate. Cost: one step for each row; only failures need it."""
        pairs = chain.from_iterable(zip(rows.tolist(), answers, strict=True) for rows, answers in self.selections)
        return {row: answer for row, answer in pairs if isinstance(answer, Status)}


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
    stretch = Stretch()
    start = 0
    # A batch for each missing candidate would cost more than a few rows too many, which are mostly cached.
    guess = victim_cache.rows_needed(pod) * 9 // 8
    while start < len(rows):
        # As many rows as candidates are still needed, since more would only cost time; but never a tiny batch.
        batch_size = max(goal - collection.count, _BATCH_MIN, guess - start)
        batch = rows[start : start + (batch_size if dry_run is not None else 1)]
        start += len(batch)
        row = int(batch[0])
        if dry_run is not None:
            selections = yield from victim_cache.select_victims(dry_run, batch, pod, budgets, importance, stretch)
        elif units is not None:
            with nodes.dry_run(row) as node_dry_run:
                selections = Selections.of([select_units(node_dry_run, units.below(pod, row), budgets)])
            yield PAUSE
        elif isinstance(status := potential_victims(pod, nodes.pods(row), importance), Status):
            # The node has no potential victims. Skip the dry run, which would first copy the state of all plugins.
            selections = Selections.of([status])
        else:
            selections = Selections.of([_dry_run_row(nodes, row, pod, budgets, importance)])
            yield PAUSE
        if collection.add(batch, selections):
            break
    victim_cache.note_rows_needed(pod, collection.tried_count)
    return collection.result()


class Collection:
    """The candidates so far, until there are `goal`, one of which violates no budget."""

    def __init__(self, goal: int) -> None:
        self._goal = goal
        self._non_violating, self._violating = _Part(), _Part()
        self._tried: list[tuple[Rows, Sequence[VictimSelection]]] = []

    @property
    def count(self) -> int:
        """The number of candidates."""
        return len(self._non_violating.candidates) + len(self._violating.candidates)

    @property
    def tried_count(self) -> int:
        """The number of rows up to the last candidate that was needed, or of all that were tried."""
        return sum(len(rows) for rows, _ in self._tried)

    def add(self, rows: Rows, selections: Selections) -> bool:
        """Add the selections of these rows up to the goal; return True once it is reached."""
        answers, costs = selections.answers, selections.costs
        if np.count_nonzero(costs[VIOLATIONS]):
            return self._add_singly(rows, selections)
        # The usual batch of hundreds: no budget is violated.
        positions = costs[COUNT].nonzero()[0]
        missing = max(self._goal - self.count, 1)
        if len(positions) >= missing:
            positions = positions[:missing]
            end = int(positions[-1]) + 1
            rows, answers = rows[:end], answers[:end]
        self._tried.append((rows, answers))
        self._non_violating.add(map(answers.__getitem__, positions.tolist()), costs[:, positions])
        return self._is_enough()

    def _add_singly(self, rows: Rows, selections: Selections) -> bool:
        for position, answer in enumerate(selections.answers):
            self._tried.append((rows[position : position + 1], [answer]))
            if isinstance(answer, Status):
                continue
            part = self._violating if answer.violations else self._non_violating
            if len(part.candidates) < self._goal:
                part.add([answer], selections.costs[:, position : position + 1])
            if self._is_enough():
                return True
        return False

    def _is_enough(self) -> bool:
        return bool(self._non_violating.candidates) and self.count >= self._goal

    def result(self) -> DryRunResult:
        """Return what was added, the candidates that violate no budget first."""
        parts = self._non_violating, self._violating
        costs = np.concatenate([np.empty((COST_ROWS, 0)), *parts[0].costs, *parts[1].costs], axis=1)
        return DryRunResult(Candidates([*parts[0].candidates, *parts[1].candidates], costs), self._tried)


class _Part:
    """Candidates, and their costs as they came."""

    __slots__ = ("candidates", "costs")

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.costs: list[Costs] = []

    def add(self, candidates: Iterable[VictimSelection], costs: Costs) -> None:
        """Add candidates."""
        self.candidates += cast("Iterable[Candidate]", candidates)
        self.costs.append(costs)


def _dry_run_row(nodes: FilteredNodes, row: int, pod: Pod, budgets: Budgets, importance: Importance) -> VictimSelection:
    with nodes.dry_run(row) as dry_run:
        return select_victims(dry_run, pod, budgets, importance)
