"""Selecting victims on one node pod by pod, or on many nodes at once if all filters depend on usage only.

Owns which pods must leave a node, and which of them are reprieved. Never chooses among nodes.

Source: kubernetes v1.36.2, pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
(SelectVictimsOnNode).
Differs: many nodes are handled in parallel: all potential victims are removed, then the most important one of each node
is added back, then the next one of each node. The answers are the same, which a test with random clusters checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np

from podium.cluster import IntArray, Rows
from podium.cluster.snapshot import BoolArray
from podium.framework.contract.dry_runs import NodeDryRun
from podium.framework.contract.post_filter import NodesDryRun
from podium.framework.contract.status import Code, PluginError, ScheduleError, Status, error_status, unresolvable
from podium.framework.preemption.candidates import COST_ROWS, Budgets, Candidate, Costs, Importance
from podium.objects.core import Pod

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")

VictimSelection: TypeAlias = Candidate | Status
"""A candidate; or a status: UnschedulableAndUnresolvable if there are no pods of lower priority, the filters'
rejection if the pod does not fit even without them, or an Error."""

_NO_COST: Final = (0.0,) * COST_ROWS


class Selections(NamedTuple):
    """The answers for some rows, in their order.

    Shape: `costs` has one column per answer, those of statuses are zeros.
    """

    answers: Sequence[VictimSelection]
    costs: Costs

    @classmethod
    def of(cls, answers: Sequence[VictimSelection]) -> Self:
        """Return these answers with the costs of the candidates among them."""
        return cls(answers, costs_of_selections(answers))


def costs_of_selections(answers: Iterable[VictimSelection]) -> Costs:
    """Return what the candidates among the answers cost, and zeros for statuses. Shape: one column per answer."""
    rows = [answer.cost if isinstance(answer, Candidate) else _NO_COST for answer in answers]
    return np.array(rows, np.float64).reshape(-1, COST_ROWS).T


def potential_victims(pod: Pod, pods: Iterable[Pod], importance: Importance) -> list[Pod] | Status:
    """Return the pods that may be evicted, or the status if there are none or one of them cannot be judged."""
    try:
        return importance.below(pod, pods) or NO_VICTIMS
    except PluginError as error:
        return error_status(error)


def select_victims(dry_run: NodeDryRun, pod: Pod, budgets: Budgets, importance: Importance) -> VictimSelection:
    """Return the victims on one node: remove all pods of lower priority, then reprieve each one that can stay.

    Pods whose eviction violates a budget are reprieved first; within both groups the most important pods come first.
    """
    node = dry_run.node
    lower = potential_victims(pod, node.pods, importance)
    if isinstance(lower, Status):
        return lower
    try:
        for victim in lower:
            dry_run.remove(victim)
        status = dry_run.status()
        if status is not None:
            return status
        violating, harmless = budgets.split(importance.order(lower))
        victims = [victim for victim in violating if not _reprieve(dry_run, victim)]
        violations = len(victims)
        victims += [victim for victim in harmless if not _reprieve(dry_run, victim)]
    except PluginError as error:
        return error_status(error)
    if not victims:
        return none_needed(node.name)
    if violating and harmless:
        victims = importance.order(victims)
    return Candidate(node.name, tuple(victims), violations)


def _reprieve(dry_run: NodeDryRun, victim: Pod) -> bool:
    """Add a pod back if the incoming one fits beside it; return whether it stays."""
    dry_run.add(victim)
    if dry_run.status() is None:
        return True
    dry_run.remove(victim)
    return False


def none_needed(node_name: str) -> Status:
    """Return the error for a node where the pod would fit without any victim."""
    return error_status(f'expected at least one victim pod on node "{node_name}"')


@dataclass(slots=True)
class _Node:
    """A node being tried, and its potential victims in the order in which they may come back.

    The first `violating_count` of them are those whose eviction violates a budget. `is_lasting` is whether this order
    does not change as time passes.
    """

    name: str
    pods: list[Pod]
    violating_count: int
    is_lasting: bool

    def answer(self, stays: Sequence[bool], importance: Importance) -> VictimSelection:
        """Return the result, given which of the victims can stay."""
        victims = [pod for pod, stay in zip(self.pods, stays, strict=True) if not stay]
        if not victims:
            return none_needed(self.name)
        count = self.violating_count
        if 0 < count < len(self.pods):
            victims = importance.order(victims)
        return Candidate(self.name, tuple(victims), count - sum(stays[:count]) if count else 0)


def select_victims_of_many(
    dry_run: NodesDryRun, rows: Rows, pod: Pod, budgets: Budgets, importance: Importance
) -> tuple[list[VictimSelection], list[bool]]:
    """Return the answer of `select_victims` for each of the rows, and whether it is not an error and lasts.

    Cost: one pass of the usage filters for each turn. There are as many turns as the fullest node has potential
    victims.
    """
    row_list = rows.tolist()
    nodes = [_node(dry_run, row, pod, budgets, importance) for row in row_list]
    positions = [position for position, node in enumerate(nodes) if isinstance(node, _Node)]
    try:
        statuses, stays = _take_turns(dry_run, rows[positions], [node for node in nodes if isinstance(node, _Node)])
    except ScheduleError as error:
        statuses, stays = dict.fromkeys(row_list, error_status(error)), []
    answers: list[VictimSelection] = []
    are_lasting: list[bool] = []
    end = 0
    for row, node in zip(row_list, nodes, strict=True):
        answer: VictimSelection
        if isinstance(node, Status):
            answer = node
        else:
            begin, end = end, end + len(node.pods)
            answer = statuses[row] if row in statuses else node.answer(stays[begin:end], importance)
        answers.append(answer)
        if isinstance(answer, Status):
            are_lasting.append(answer.code is not Code.ERROR)
        else:
            are_lasting.append(node.is_lasting if isinstance(node, _Node) else True)
    return answers, are_lasting


def _node(dry_run: NodesDryRun, row: int, pod: Pod, budgets: Budgets, importance: Importance) -> _Node | Status:
    lower = potential_victims(pod, dry_run.pods(row).values(), importance)
    if isinstance(lower, Status):
        return lower
    pods, is_lasting = importance.lasting_order(lower)
    violating, harmless = budgets.split(pods)
    return _Node(dry_run.name(row), violating + harmless, len(violating), is_lasting)


def _take_turns(dry_run: NodesDryRun, rows: Rows, nodes: Sequence[_Node]) -> tuple[Mapping[int, Status], list[bool]]:
    """Return the rejections of rows where the pod fits in no case, and which pods of the others can stay."""
    counts = np.array([len(node.pods) for node in nodes], np.intp)
    starts = np.cumsum(counts) - counts
    row_of_each = np.repeat(rows, counts)
    usage = dry_run.usage_of(row_of_each.tolist(), (pod for node in nodes for pod in node.pods))
    stays: BoolArray = np.zeros(len(row_of_each), np.bool_)
    dry_run.start(row_of_each, usage)
    statuses = dry_run.statuses(rows)
    fitting = np.array([row not in statuses for row in rows.tolist()], np.bool_)
    for turn in range(int(counts[fitting].max(initial=0))):
        positions_left = np.flatnonzero(fitting & (counts > turn))
        stays[starts[positions_left] + turn] = _can_stay(
            dry_run, rows[positions_left], usage[:, starts[positions_left] + turn]
        )
    return statuses, stays.tolist()


def _can_stay(dry_run: NodesDryRun, rows: Rows, usage: IntArray) -> BoolArray:
    """Add one pod back to each of the rows, and remove it again where the incoming pod does not fit beside it."""
    dry_run.add(rows, usage)
    fits = dry_run.fits(rows)
    dry_run.remove(rows[~fits], usage[:, ~fits])
    return fits
