"""Cached victims: pods of the same spec that preempt one after the other reuse each other's dry runs.

Owns which dry run results are cached, and for how long. A result depends on the pod's spec, the node, the pods on it,
the pods nominated to it, and the disruption budgets; it is reused while all of these are unchanged.

Cost: one step for each node that has changed since the last pod of the spec, and for each node with nominated pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Rows
from podium.cluster.changed_rows import ReplacedRows
from podium.framework.contract.post_filter import NodesDryRun, RowsWithNominations
from podium.framework.contract.steps import PAUSE, Steps
from podium.framework.preemption.candidates import COST_ROWS, Budgets, Costs, Importance
from podium.framework.preemption.victims import (
    Selections,
    VictimSelection,
    costs_of_selections,
    select_victims_of_many,
)
from podium.framework.profile.signature_cache import depends_on_spec_only
from podium.objects.core import Pod, PodSpec
from podium.objects.workloads import PodDisruptionBudget

_SPECS_MAX: Final = 8
_PODS_AT_ONCE: Final = 2_000
"""How many pods on the tried nodes make one stretch of work without a pause, about 10 ms."""


class Stretch:
    """The pods that one search has tried since its last pause."""

    __slots__ = ("_pods",)

    def __init__(self) -> None:
        self._pods = 0

    def ends_before(self, pods: int) -> bool:
        """Count the pods of the next part of the work; return whether a pause comes before it."""
        self._pods += pods
        if self._pods <= _PODS_AT_ONCE:
            return False
        self._pods = pods
        return True


class _Cached:
    """The results of one spec by row, with what candidates among them cost.

    Attributes:
        is_valid: whether the row has a result that still holds.
        rows_needed: how many rows the last search tried until it had enough candidates.
    """

    __slots__ = ("_answers", "_costs", "_nominations", "_rows", "is_valid", "rows_needed", "spec")

    def __init__(self, spec: PodSpec) -> None:
        self.spec = spec
        self.rows_needed = 0
        self.is_valid: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._answers: list[VictimSelection | None] = []
        self._costs: Costs = np.zeros((COST_ROWS, 0))
        self._rows = ReplacedRows()
        self._nominations: RowsWithNominations | None = None

    def follow(self, dry_run: NodesDryRun) -> None:
        """Drop the results of rows that have changed since the last call."""
        missing = len(dry_run.snapshot.nodes) - len(self._answers)
        if missing > 0:
            self._answers += [None] * missing
            self.is_valid = np.append(self.is_valid, np.zeros(missing, np.bool_))
            self._costs = np.append(self._costs, np.zeros((COST_ROWS, missing)), axis=1)
        # No step of Python is taken for an unchanged row: there are hundreds of them in each attempt.
        self.is_valid[self._rows.take(dry_run.snapshot)] = False
        nominations = dry_run.nominations
        if nominations is not self._nominations:
            self.is_valid[[*nominations.rows_changed_since(self._nominations)]] = False
            self._nominations = nominations

    def of(self, rows: Rows) -> tuple[list[VictimSelection | None], Costs]:
        """Return the results of these rows, valid or not, and what they cost."""
        return [*map(self._answers.__getitem__, rows.tolist())], self._costs[:, rows]

    def put(self, dry_run: NodesDryRun, rows: Rows, answers: Sequence[VictimSelection], costs: Costs) -> None:
        """Keep the results of these rows, unless another cluster was followed meanwhile."""
        if self._rows.snapshot is dry_run.snapshot and self._nominations is dry_run.nominations:
            for row, answer in zip(rows.tolist(), answers, strict=True):
                self._answers[row] = answer
            self._costs[:, rows], self.is_valid[rows] = costs, True


class VictimCache:
    """The cached results for the few most recent pod specs."""

    def __init__(self) -> None:
        self._budgets: list[PodDisruptionBudget] = []
        self._by_spec: dict[int, _Cached] = {}

    def select_victims(
        self,
        dry_run: NodesDryRun,
        rows: Rows,
        pod: Pod,
        budgets: Budgets,
        importance: Importance,
        stretch: Stretch,
    ) -> Steps[Selections]:
        """Return the answers of `select_victims_of_many`, from the cache where they are still valid.

        Pauses before work that would make the stretch too long.
        """
        cache = self._cache_of(pod.spec, budgets) if depends_on_spec_only(pod) else _Cached(pod.spec)
        cache.follow(dry_run)
        answers, costs = cache.of(rows)
        for part, pods in _in_parts(dry_run, rows, (~cache.is_valid[rows]).nonzero()[0]):
            if stretch.ends_before(pods):
                yield PAUSE
            part_rows = rows[part]
            part_answers, are_lasting = select_victims_of_many(dry_run, part_rows, pod, budgets, importance)
            costs[:, part] = part_costs = costs_of_selections(part_answers)
            for position, answer in zip(part.tolist(), part_answers, strict=True):
                answers[position] = answer
            if all(are_lasting):
                cache.put(dry_run, part_rows, part_answers, part_costs)
            else:
                lasting = [*compress(part_answers, are_lasting)]
                cache.put(dry_run, part_rows[are_lasting], lasting, part_costs[:, are_lasting])
        return Selections(cast("list[VictimSelection]", answers), costs)

    def rows_needed(self, pod: Pod) -> int:
        """Return how many rows the last search for such a pod tried until it had enough candidates; 0 if unknown."""
        cache = self._by_spec.get(id(pod.spec))
        return 0 if cache is None else cache.rows_needed

    def note_rows_needed(self, pod: Pod, rows: int) -> None:
        """Note how many rows a search for the pod has tried until it had enough candidates."""
        if (cache := self._by_spec.get(id(pod.spec))) is not None:
            cache.rows_needed = rows

    def _cache_of(self, spec: PodSpec, budgets: Budgets) -> _Cached:
        if budgets.all != self._budgets:
            self._budgets = budgets.all
            self._by_spec.clear()
        cache = self._by_spec.pop(id(spec), None) or _Cached(spec)
        self._by_spec[id(spec)] = cache  # the most recently used is last
        if len(self._by_spec) > _SPECS_MAX:
            del self._by_spec[next(iter(self._by_spec))]
        return cache


def _in_parts(dry_run: NodesDryRun, rows: Rows, positions: Rows) -> Iterator[tuple[Rows, int]]:
    """Yield the positions in parts, each with about `_PODS_AT_ONCE` pods on its rows, and with their number."""
    counts = [len(dry_run.pods(row)) for row in rows[positions].tolist()]
    if (count := sum(counts)) <= _PODS_AT_ONCE:
        if counts:
            yield positions, count
        return
    starts = np.cumsum(counts) - counts
    for part in np.split(np.arange(len(counts)), np.flatnonzero(np.diff(starts // _PODS_AT_ONCE)) + 1):
        yield positions[part], sum(counts[part[0] : part[-1] + 1])
