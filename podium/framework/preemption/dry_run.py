"""Dry runs of preemption on node after node, until there are enough candidates.

Pauses regularly, because dry runs on hundreds of nodes with all their pods take long.

Source: kubernetes pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption), v1.36.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podium.cluster import Rows
from podium.framework.contract.post_filter import FilteredNodes
from podium.framework.contract.status import Status
from podium.framework.contract.steps import PAUSE, Steps
from podium.framework.preemption.candidates import Budgets, Candidate, Importance
from podium.framework.preemption.victims import NO_VICTIMS, Found, select_victims
from podium.framework.preemption.victims_known import VictimsKnown
from podium.objects.core import Pod

_AT_ONCE_MIN: Final = 32


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The result: candidates, those without violated budgets first, and why the other rows are not candidates."""

    candidates: tuple[Candidate, ...]
    rejected: dict[int, Status]


def dry_run_preemption(
    filtered: FilteredNodes,
    rows: Rows,
    wanted: int,
    pod: Pod,
    budgets: Budgets,
    importance: Importance,
    known: VictimsKnown,
) -> Steps[DryRunResult]:
    """Try nodes in this order, until there are as many candidates as wanted and one of them violates no budget."""
    sound: list[Candidate] = []
    violating: list[Candidate] = []
    rejected: dict[int, Status] = {}
    if not len(rows):
        return DryRunResult((), {})
    # One fork for all rows: no row is tried twice, and what a dry run leaves behind concerns its own row only.
    dry_run = filtered.dry_run_of_nodes()
    begin, in_order = 0, rows.tolist()
    while begin < len(in_order):
        # As many at once as are still wanted: more would only cost time.
        most = max(wanted - len(sound) - len(violating), _AT_ONCE_MIN)
        some = in_order[begin : begin + (most if dry_run is not None else 1)]
        begin += len(some)
        if dry_run is not None:
            answers = yield from known.select_victims(dry_run, some, pod, budgets, importance)
        elif importance.below(pod, filtered.pods(some[0])):
            answers = [_try_one(filtered, some[0], pod, budgets, importance)]
            yield PAUSE
        else:
            # Those of lower priority are protected. A dry run would copy the state of all plugins first.
            answers = [NO_VICTIMS]
        for row, found in zip(some, answers, strict=True):
            if isinstance(found, Status):
                rejected[row] = found
                continue
            among = violating if found.violations else sound
            if len(among) < wanted:
                among.append(found)
            if sound and len(sound) + len(violating) >= wanted:
                return DryRunResult((*sound, *violating), rejected)
    return DryRunResult((*sound, *violating), rejected)


def _try_one(filtered: FilteredNodes, row: int, pod: Pod, budgets: Budgets, importance: Importance) -> Found:
    with filtered.dry_run(row) as dry_run:
        return select_victims(dry_run, pod, budgets, importance)
