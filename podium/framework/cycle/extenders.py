"""What HTTP extenders are asked in an attempt, and what their answers change: values and rules, without any I/O.

Owns who is asked about which pod, which answers make no sense, and how the others narrow down the feasible nodes, add
to the scores, and choose among the candidates of a preemption. An attempt yields a question and is sent the answer;
whoever drives it does the asking. Where an attempt is long, it yields pauses as well.

Source: kubernetes pkg/scheduler/extender.go, schedule_one.go (findNodesThatPassExtenders, prioritizeNodes, selectHost)
and framework/preemption/preemption.go (callExtenders), v1.36.2.
Differs: an answer counts by the names of its nodes. Upstream scores what an extender without a node cache hands back
as empty nodes, and takes nodes from it that were not among those asked about; here such nodes are the same error as
with a node cache. A node named twice counts once. A message about a node that is not there is left out. Every error
names the extender.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias, TypeVar
from urllib.parse import urlsplit, urlunsplit

import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray, Rows, Snapshot
from podium.config import Extender
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.interface import MAX_NODE_SCORE, FilteredNodes, PostFilterPlugin, PostFilterResult
from podium.framework.contract.status import ScheduleError, Status, unresolvable, unschedulable
from podium.framework.cycle.diagnosis import Diagnosis
from podium.objects.core import Node, Pod, PodSpec, once_per_spec

T = TypeVar("T")

EXTENDER: Final = "Extender"
"""The name under which pods are rejected that an extender has turned down."""
MAX_EXTENDER_PRIORITY: Final = 10
_SCALE: Final = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY
_CONTRIBUTION_MAX: Final = 1 << 62


def name_of(extender: Extender) -> str:
    """The extender's URL, without what may be secret in it."""
    try:
        parts = urlsplit(extender.url_prefix)
    except ValueError:
        return "(no URL)"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


# ---------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class ExtenderFailed:
    """There is no answer, or none that makes sense."""

    extender: Extender
    detail: str

    @property
    def message(self) -> str:
        """The detail, and whose fault it is."""
        return f'extender "{name_of(self.extender)}": {self.detail}'


@dataclass(frozen=True, slots=True)
class Filtered:
    """The nodes that an extender lets through, in its order, and why others are out, by name."""

    node_names: Sequence[str]
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Scored:
    """What each extender that was asked says: a score by node name, more than one of which add up."""

    each: Sequence[Sequence[tuple[str, int]] | ExtenderFailed]


@dataclass(frozen=True, slots=True)
class Victims:
    """The pods that would leave one node, and how many disruption budgets that would violate."""

    pods: tuple[Pod, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class Preemptable:
    """The nodes on which room may be made, and how."""

    victims: Mapping[str, Victims]


Answer: TypeAlias = Filtered | Scored | Preemptable | ExtenderFailed


# ---------------------------------------------------------------- questions


@dataclass(frozen=True, slots=True)
class AskFilter:
    """On which of these nodes may the pod run?"""

    extender: Extender
    pod: Pod
    nodes: Sequence[Node]

    def accept(
        self, node_names: Iterable[str], failed: Mapping[str, str], unresolvable: Mapping[str, str]
    ) -> Filtered | ExtenderFailed:
        """The answer, unless it lets nodes through that were not asked about."""
        asked = {node.name for node in self.nodes}
        passed = tuple(dict.fromkeys(node_names))
        for name in passed:
            if name not in asked:
                detail = f'claims a filtered node "{name}" which is not found in the input node list'
                return ExtenderFailed(self.extender, detail)
        return Filtered(passed, failed, unresolvable)


@dataclass(frozen=True, slots=True)
class AskPrioritize:
    """How good are these nodes for the pod? All extenders are asked at the same time."""

    extenders: Sequence[Extender]
    pod: Pod
    nodes: Sequence[Node]

    @staticmethod
    def accept(extender: Extender, scores: Sequence[tuple[str, int]]) -> Sequence[tuple[str, int]] | ExtenderFailed:
        """The scores, unless one is too big to be added up."""
        for name, score in scores:
            if abs(score * extender.weight * _SCALE) > _CONTRIBUTION_MAX:
                return ExtenderFailed(extender, f'score {score} of node "{name}" is out of range')
        return scores


@dataclass(frozen=True, slots=True)
class AskPreempt:
    """On which of these nodes may room be made for the pod, and who has to go there?"""

    extender: Extender
    pod: Pod
    candidates: Mapping[str, Victims]
    snapshot: Snapshot

    def accept(self, answer: Mapping[str, tuple[Sequence[str], int]]) -> Preemptable | ExtenderFailed:
        """The answer, by node name the uids of victims and the number of violations, as pods.

        A node without victims is a mistake; one of an extender that may be ignored costs only that node.
        """
        victims: dict[str, Victims] = {}
        for name, (uids, violations) in answer.items():
            row = self.snapshot.row_of.get(name)
            if row is None:
                return ExtenderFailed(self.extender, f'claims to make room on node "{name}", which is not found')
            on_node = self.snapshot.pods[row]
            unknown = next((uid for uid in uids if uid not in on_node), None)
            if unknown is not None:
                where = f"(UID: {unknown}) on node: {name}, but the pod is not found on that node"
                return ExtenderFailed(self.extender, f"claims to preempt pod {where}")
            if uids:
                victims[name] = Victims(tuple(on_node[uid] for uid in dict.fromkeys(uids)), violations)
            elif not self.extender.ignorable:
                return ExtenderFailed(self.extender, f'expected at least one victim pod on node "{name}"')
        return Preemptable(victims)


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is asked: here others may have their turn, as long as the snapshot stays as it is."""


PAUSE: Final = Pause()

Question: TypeAlias = AskFilter | AskPrioritize | AskPreempt
Steps: TypeAlias = Generator[Question | Pause, Answer | None, T]
"""A computation that asks extenders on its way, and pauses where it is long. After a pause it is sent nothing."""


def run_unasked(steps: Steps[T]) -> T:
    """The result of steps that have nobody to ask, made in one go."""
    try:
        while True:
            step = next(steps)
            assert isinstance(step, Pause), f"extenders have to be asked: {step}"
    except StopIteration as end:
        result: T = end.value
        return result


# ---------------------------------------------------------------- who is asked


class Extenders:
    """The extenders of a configuration, in the order in which they are asked: those that may be ignored come last.

    Args: `random` decides among equally good nodes that an extender has scored.
    """

    def __init__(self, configured: Iterable[Extender], random: Random) -> None:
        self.random = random
        self._every = tuple(sorted(configured, key=lambda each: each.ignorable))
        self.have_a_say = any(each.filter_verb or each.prioritize_verb for each in self._every)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._every)

    def __iter__(self) -> Iterator[Extender]:
        """All, in order."""
        return iter(self._every)

    def interested_in(self, pod: Pod) -> Sequence[Extender]:
        """Those that manage no resources, or one that the pod names."""
        if not self._every:
            return ()
        resources = _resource_names(pod.spec)
        return [
            each
            for each in self._every
            if not each.managed_resources or any(managed.name in resources for managed in each.managed_resources)
        ]


NO_EXTENDERS: Final = Extenders((), Random(0))


@once_per_spec
def _resource_names(spec: PodSpec) -> frozenset[str]:
    """What the containers request or limit; what the pod asks for as a whole is not looked at."""
    resources = (container.resources for container in (*spec.containers, *spec.init_containers))
    return frozenset(name for each in resources for name in (*each.requests, *each.limits))


# ---------------------------------------------------------------- filter


def filter_by_extenders(
    extenders: Sequence[Extender], pod: Pod, snapshot: Snapshot, rows: Rows, diagnosis: Diagnosis
) -> Steps[Rows]:
    """The rows that every extender lets through, each asked about what those before it have left.

    Raises:
        ScheduleError: one failed that must not be ignored.
    """
    for extender in extenders:
        if not extender.filter_verb or not len(rows):
            continue
        answer = yield AskFilter(extender, pod, _nodes(snapshot, rows))
        if isinstance(answer, ExtenderFailed):
            if extender.ignorable:
                continue
            raise ScheduleError(answer.message)
        assert isinstance(answer, Filtered), answer
        for name, message in {**answer.failed, **answer.unresolvable}.items():
            row = snapshot.row_of.get(name)
            if row is not None:
                is_final = name in answer.unresolvable
                diagnosis.overrule(row, unresolvable(message) if is_final else unschedulable(message))
        rows = np.array([snapshot.row_of[name] for name in answer.node_names], np.intp)
    return rows


def _nodes(snapshot: Snapshot, rows: Rows) -> list[Node]:
    return [node for row in rows.tolist() if (node := snapshot.nodes[row]) is not None]


# ---------------------------------------------------------------- prioritize


def score_by_extenders(
    extenders: Sequence[Extender], pod: Pod, snapshot: Snapshot, rows: Rows, total: IntArray
) -> Steps[tuple[IntArray, NDArray[np.bool_]]]:
    """The total with what the extenders add, and which nodes they have scored. One that fails adds nothing."""
    asked = [each for each in extenders if each.prioritize_verb]
    # One without a verb scores every node, with 0.
    is_scored = np.full(len(rows), len(asked) < len(extenders))
    if not asked:
        return total, is_scored
    answer = yield AskPrioritize(asked, pod, _nodes(snapshot, rows))
    assert isinstance(answer, Scored), answer
    position_of = {snapshot.name(row): position for position, row in enumerate(rows.tolist())}
    total = total.copy()
    for extender, scores in zip(asked, answer.each, strict=True):
        if isinstance(scores, ExtenderFailed):
            continue
        for name, score in scores:
            position = position_of.get(name)
            if position is not None:
                total[position] += score * extender.weight * _SCALE
                is_scored[position] = True
    return total, is_scored


def choose_at_random(total: IntArray, is_scored: NDArray[np.bool_], random: Random) -> int | None:
    """One of the best nodes that extenders have scored, if there is one: such a node goes before its equals."""
    best = np.flatnonzero((total == total.max()) & is_scored)
    return int(best[random.randrange(len(best))]) if len(best) else None


# ---------------------------------------------------------------- preempt


def narrow_by_extenders(
    extenders: Sequence[Extender], pod: Pod, snapshot: Snapshot, candidates: Mapping[str, Victims]
) -> Steps[Mapping[str, Victims]]:
    """The candidates, by node name, that every extender agrees to, with the victims that the last of them wants.

    Raises:
        ScheduleError: one failed that must not be ignored.
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


class AskingPostFilterPlugin(PostFilterPlugin):
    """A PostFilter plugin that lets extenders have their say before it makes room, and others their turn."""

    @abstractmethod
    def post_filter_asking(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, filtered: FilteredNodes, extenders: Sequence[Extender]
    ) -> Steps[tuple[PostFilterResult | None, Status | None]]:
        """As `post_filter`; to be asked are these extenders."""

    def post_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, filtered: FilteredNodes
    ) -> tuple[PostFilterResult | None, Status | None]:
        """The outcome where there are no extenders."""
        return run_unasked(self.post_filter_asking(state, pod, snapshot, filtered, ()))
