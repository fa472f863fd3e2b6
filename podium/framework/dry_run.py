"""Dry runs of preemption: nodes are tried until there are enough candidates.

Source: kubernetes pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podium.framework.interface import FilteredNodes
from podium.framework.preemption import Budgets, Candidate, Importance
from podium.framework.status import Status
from podium.framework.victims import Found, PodsByImportance, select_victims, select_victims_of_many
from podium.kube.objects import Pod


@dataclass(frozen=True, slots=True)
class DryRun:
    """What trying nodes came to: candidates, those without violated budgets first, and why the other rows are none."""

    candidates: tuple[Candidate, ...]
    rejected: dict[int, Status]


def dry_run(
    filtered: FilteredNodes,
    rows: Sequence[int],
    wanted: int,
    pod: Pod,
    budgets: Budgets,
    importance: Importance,
    by_importance: PodsByImportance,
) -> DryRun:
    """Try nodes in this order, until there are as many candidates as wanted and one of them violates no budget."""
    sound: list[Candidate] = []
    violating: list[Candidate] = []
    rejected: dict[int, Status] = {}
    for row, found in _try(filtered, rows, max(wanted, 1), pod, budgets, importance, by_importance):
        if isinstance(found, Status):
            rejected[row] = found
            continue
        among = violating if found.violations else sound
        if len(among) < wanted:
            among.append(found)
        if sound and len(sound) + len(violating) >= wanted:
            break
    return DryRun((*sound, *violating), rejected)


def _try(
    filtered: FilteredNodes,
    rows: Sequence[int],
    at_once: int,
    pod: Pod,
    budgets: Budgets,
    importance: Importance,
    by_importance: PodsByImportance,
) -> Iterator[tuple[int, Found]]:
    """Every row and what is found there: as many rows at once as it takes at least, or else one by one."""
    for begin in range(0, len(rows), at_once):
        some = rows[begin : begin + at_once]
        trials = filtered.trials()
        if trials is not None:
            yield from zip(
                some, select_victims_of_many(trials, some, pod, budgets, importance, by_importance), strict=True
            )
            continue
        for row in some:
            with filtered.trial(row) as trial:
                found = select_victims(trial, pod, budgets, importance)
            yield row, found
