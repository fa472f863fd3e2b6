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
    rejections: dict[int, Status]


def dry_run_preemption(
    nodes: FilteredNodes,
    rows: Rows,
    goal: int,
    pod: Pod,
    budgets: Budgets,
    importance: Importance,
    victims_known: VictimsKnown,
) -> Steps[DryRunResult]:
    """Try nodes in this order, until there are as many candidates as wanted and one of them violates no budget."""
    sound: list[Candidate] = []
    violating: list[Candidate] = []
    rejections: dict[int, Status] = {}
    if not len(rows):
        return DryRunResult((), {})
    # One fork for all rows: no row is tried twice, and what a dry run leaves behind concerns its own row only.
    dry_run = nodes.dry_run_of_nodes()
    begin, in_order = 0, rows.tolist()
    while begin < len(in_order):
        # As many at once as are still wanted: more would only cost time.
        batch_size = max(goal - len(sound) - len(violating), _AT_ONCE_MIN)
        batch = in_order[begin : begin + (batch_size if dry_run is not None else 1)]
        begin += len(batch)
        if dry_run is not None:
            answers = yield from victims_known.select_victims(dry_run, batch, pod, budgets, importance)
        elif importance.below(pod, nodes.pods(batch[0])):
            answers = [_try_one(nodes, batch[0], pod, budgets, importance)]
            yield PAUSE
        else:
            # Those of lower priority are protected. A dry run would copy the state of all plugins first.
            answers = [NO_VICTIMS]
        for row, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Status):
                rejections[row] = answer
                continue
            among = violating if answer.violations else sound
            if len(among) < goal:
                among.append(answer)
            if sound and len(sound) + len(violating) >= goal:
                return DryRunResult((*sound, *violating), rejections)
    return DryRunResult((*sound, *violating), rejections)


def _try_one(nodes: FilteredNodes, row: int, pod: Pod, budgets: Budgets, importance: Importance) -> Found:
    with nodes.dry_run(row) as dry_run:
        return select_victims(dry_run, pod, budgets, importance)
