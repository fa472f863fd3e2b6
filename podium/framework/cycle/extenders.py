"""Calls to HTTP extenders: after filtering, in scoring, and among preemption candidates.

Owns which extenders are called for which pod, and how their answers narrow down the feasible nodes, add to the scores,
and choose among preemption candidates.

Source: kubernetes v1.36.2, pkg/scheduler/schedule_one.go (findNodesThatPassExtenders, prioritizeNodes, selectHost) and
framework/preemption/preemption.go (callExtenders).
Differs: a message about a node that does not exist is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Final

import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.cluster.snapshot import BoolArray
from podium.config import Extender
from podium.framework.contract.questions import (
    SCALE,
    AskFilter,
    AskPreempt,
    AskPrioritize,
    ExtenderFailed,
    Filtered,
    Preemptable,
    Scored,
    Victims,
)
from podium.framework.contract.status import ScheduleError, Status, unresolvable, unschedulable
from podium.framework.contract.steps import Steps
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.explainer import Explainer
from podium.framework.cycle.filter_chain import FilterChain
from podium.framework.cycle.pre_filter import run_pre_filter
from podium.framework.cycle.scoring import choose
from podium.framework.cycle.search import (
    NONE_FEASIBLE,
    Feasible,
    Sampling,
    on_nominated_node,
    search_around,
)
from podium.objects.core import Node, Pod, PodSpec, once_per_spec

EXTENDER: Final = "Extender"
"""The plugin name under which an extender's rejections are recorded."""


class Extenders:
    """The extenders of a configuration, in call order: ignorable extenders come last.

    Args: `random` breaks ties among the best nodes that extenders have scored.
    """

    def __init__(self, configured: Iterable[Extender], random: Random) -> None:
        self.random = random
        # As upstream: a failure of the others ends the attempt before an ignorable one is asked in vain.
        self._every = tuple(sorted(configured, key=lambda extender: extender.ignorable))
        self.have_a_say = any(extender.filter_verb or extender.prioritize_verb for extender in self._every)

    def __bool__(self) -> bool:
        """Return True if any extender is configured."""
        return bool(self._every)

    def __iter__(self) -> Iterator[Extender]:
        """Yield all extenders, in order."""
        return iter(self._every)

    def interested_in(self, pod: Pod) -> Sequence[Extender]:
        """Return the extenders that manage a resource which the pod names, and those that manage none in particular."""
        if not self._every:
            return ()
        resources = _resource_names(pod.spec)
        return [
            extender
            for extender in self._every
            if not extender.managed_resources
            or any(managed.name in resources for managed in extender.managed_resources)
        ]


NO_EXTENDERS: Final = Extenders((), Random(0))


@once_per_spec
def _resource_names(spec: PodSpec) -> frozenset[str]:
    """Return the resources in the containers' requests and limits; pod-level resources are not considered."""
    resources = (container.resources for container in (*spec.containers, *spec.init_containers))
    return frozenset(name for requirements in resources for name in (*requirements.requests, *requirements.limits))


def find_feasible_asking(cycle: Cycle, sampling: Sampling, extenders: Sequence[Extender]) -> Steps[Feasible]:
    """Find feasible nodes as `search.find_feasible` does, and call these extenders.

    Raises:
        ScheduleError: a plugin failed, or an extender that is not ignorable.
    """
    names = run_pre_filter(cycle)
    if isinstance(names, Status):
        return NONE_FEASIBLE
    filters = FilterChain.of(cycle)
    nominated_node = on_nominated_node(cycle, filters)
    if nominated_node is not None and (yield from _accept(extenders, cycle, nominated_node.rows)):
        return nominated_node
    feasible = yield from search_around(cycle, filters, names, sampling)
    rows = yield from filter_by_extenders(extenders, cycle, feasible.rows)
    if len(rows) < len(feasible.rows):
        cycle.diagnosis.unschedulable_plugins.add(EXTENDER)
    return Feasible(rows, len(rows) + cycle.diagnosis.rejected_count)


def _accept(extenders: Sequence[Extender], cycle: Cycle, rows: Rows) -> Steps[bool]:
    """Return True if all extenders accept the node. False also if one of them fails, so that all nodes are examined."""
    try:
        return len((yield from filter_by_extenders(extenders, cycle, rows))) > 0
    except ScheduleError:
        return False


def filter_by_extenders(extenders: Sequence[Extender], cycle: Cycle, rows: Rows) -> Steps[Rows]:
    """Return the rows that every extender accepts. Each extender is sent the rows that the ones before it accepted.

    Raises:
        ScheduleError: an extender failed that is not ignorable.

    Shape: some of `rows`, in their order.
    """
    snapshot = cycle.snapshot
    for extender in extenders:
        if not extender.filter_verb or not len(rows):
            continue
        answer = yield AskFilter(extender, cycle.pod, _nodes(snapshot, rows))
        if isinstance(answer, ExtenderFailed):
            if extender.ignorable:
                continue
            raise ScheduleError(answer.message)
        assert isinstance(answer, Filtered), answer
        for name, message in {**answer.failed, **answer.unresolvable}.items():
            row = snapshot.row_of.get(name)
            # An extender may name nodes that it was not asked about, or that are gone.
            if row is not None:
                is_final = name in answer.unresolvable
                cycle.diagnosis.overrule(row, unresolvable(message) if is_final else unschedulable(message))
        rows = np.array([snapshot.row_of[name] for name in answer.node_names], np.intp)
    return rows


def _nodes(snapshot: Snapshot, rows: Rows) -> list[Node]:
    return [node for row in rows.tolist() if (node := snapshot.nodes[row]) is not None]


def score_by_extenders(
    extenders: Sequence[Extender], cycle: Cycle, rows: Rows, total: IntArray, explainer: Explainer | None = None
) -> Steps[tuple[IntArray, BoolArray]]:
    """Return the total including extenders' scores, and which nodes these scored. A failing one adds nothing.

    Args:
        explainer: receives what each extender has returned, if it is given.

    Shape: both have one entry per row of `rows`.
    """
    snapshot = cycle.snapshot
    prioritizers = [extender for extender in extenders if extender.prioritize_verb]
    # An extender without a prioritize verb scores every node with 0.
    is_scored = np.full(len(rows), len(prioritizers) < len(extenders))
    if explainer is not None:
        for extender in extenders:
            if not extender.prioritize_verb:
                explainer.on_extended(cycle, extender, [(snapshot.name(row), 0) for row in rows.tolist()])
    if not prioritizers:
        return total, is_scored
    answer = yield AskPrioritize(prioritizers, cycle.pod, _nodes(snapshot, rows))
    assert isinstance(answer, Scored), answer
    position_of = {snapshot.name(row): position for position, row in enumerate(rows.tolist())}
    # The given total may be the cached scores of the signature.
    total = total.copy()
    for extender, scores in zip(prioritizers, answer.each, strict=True):
        if explainer is not None:
            explainer.on_extended(cycle, extender, scores)
        if isinstance(scores, ExtenderFailed):
            continue
        for name, score in scores:
            position = position_of.get(name)
            if position is not None:
                total[position] += score * extender.weight * SCALE
                is_scored[position] = True
    return total, is_scored


def choose_among_scored(is_scored: BoolArray, random: Random, total: IntArray) -> int:
    """Return the position of the node that wins: among equals a random one of those that extenders have scored."""
    best = np.flatnonzero((total == total.max()) & is_scored)
    return int(best[random.randrange(len(best))]) if len(best) else choose(total)


def narrow_by_extenders(
    extenders: Sequence[Extender], pod: Pod, snapshot: Snapshot, candidates: Mapping[str, Victims]
) -> Steps[Mapping[str, Victims]]:
    """Return the candidates that every extender accepts, by node name, with the last extender's victims.

    Raises:
        ScheduleError: an extender failed that is not ignorable.
    """
    for extender in extenders:
        if not extender.preempt_verb:
            continue
        if not candidates:
            break
        answer = yield AskPreempt(extender, pod, candidates, snapshot)
        if isinstance(answer, ExtenderFailed):
            if extender.ignorable:
                continue
            raise ScheduleError(answer.message)
        assert isinstance(answer, Preemptable), answer
        candidates = answer.victims
    return candidates
