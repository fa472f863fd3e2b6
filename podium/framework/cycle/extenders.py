"""The requests to HTTP extenders in an attempt, and what their answers change. Holds values and rules, does no I/O.

Owns which extenders are called for which pod, which answers are invalid, and how valid answers narrow down the feasible
nodes, add to the scores, and choose among preemption candidates. An attempt is a generator: it yields a question and is
sent the answer; its caller makes the request. A long attempt also yields pauses.

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
"""The plugin name under which an extender's rejections are recorded."""
MAX_EXTENDER_PRIORITY: Final = 10
_SCALE: Final = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY
_CONTRIBUTION_MAX: Final = 1 << 62


def name_of(extender: Extender) -> str:
    """The extender's URL, without the parts that may be secret."""
    try:
        parts = urlsplit(extender.url_prefix)
    except ValueError:
        return "(no URL)"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


# ---------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class ExtenderFailed:
    """The extender gave no answer, or an invalid one."""

    extender: Extender
    detail: str

    @property
    def message(self) -> str:
        """The detail, and the extender's name."""
        return f'extender "{name_of(self.extender)}": {self.detail}'


@dataclass(frozen=True, slots=True)
class Filtered:
    """The nodes that an extender accepts, in its order, and why it rejected others, by name."""

    node_names: Sequence[str]
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores by node name from each extender that was called. Several scores for one node add up."""

    each: Sequence[Sequence[tuple[str, int]] | ExtenderFailed]


@dataclass(frozen=True, slots=True)
class Victims:
    """The victims on one node, and how many PodDisruptionBudgets their eviction would violate."""

    pods: tuple[Pod, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class Preemptable:
    """The preemption candidates that an extender accepts, with their victims."""

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
        """The answer; a failure if it accepts nodes that were not in the request."""
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
        """The scores; a failure if one is too big to be added up."""
        for name, score in scores:
            if abs(score * extender.weight * _SCALE) > _CONTRIBUTION_MAX:
                return ExtenderFailed(extender, f'score {score} of node "{name}" is out of range')
        return scores


@dataclass(frozen=True, slots=True)
class AskPreempt:
    """On which of these nodes may the pod preempt, and which pods are the victims there?"""

    extender: Extender
    pod: Pod
    candidates: Mapping[str, Victims]
    snapshot: Snapshot

    def accept(self, answer: Mapping[str, tuple[Sequence[str], int]]) -> Preemptable | ExtenderFailed:
        """The answer (by node name the uids of the victims and the number of violations), with uids resolved to pods.

        A node without victims is a failure; from an ignorable extender it only removes that node.
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
    """No question: other tasks may run here, as long as the snapshot stays as it is."""


PAUSE: Final = Pause()

Question: TypeAlias = AskFilter | AskPrioritize | AskPreempt
Steps: TypeAlias = Generator[Question | Pause, Answer | None, T]
"""A computation that yields questions to extenders, and pauses if it is long. After a pause it is sent None."""


def run_unasked(steps: Steps[T]) -> T:
    """Run steps that have no extender to call to their end, ignoring pauses."""
    try:
        while True:
            step = next(steps)
            assert isinstance(step, Pause), f"extenders have to be asked: {step}"
    except StopIteration as end:
        result: T = end.value
        return result


# ---------------------------------------------------------------- who is asked


class Extenders:
    """The extenders of a configuration, in call order: ignorable extenders come last.

    Args: `random` breaks ties among the best nodes that extenders have scored.
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
        """The extenders that manage a resource which the pod names, and those that manage none in particular."""
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
    """The resources in the containers' requests and limits; pod-level resources are not considered."""
    resources = (container.resources for container in (*spec.containers, *spec.init_containers))
    return frozenset(name for each in resources for name in (*each.requests, *each.limits))


# ---------------------------------------------------------------- filter


def filter_by_extenders(
    extenders: Sequence[Extender], pod: Pod, snapshot: Snapshot, rows: Rows, diagnosis: Diagnosis
) -> Steps[Rows]:
    """The rows that every extender accepts. Each extender is sent the rows that the ones before it accepted.

    Raises:
        ScheduleError: an extender failed that is not ignorable.
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
    """The total with the extenders' scores added, and which nodes they have scored. A failing extender adds nothing."""
    asked = [each for each in extenders if each.prioritize_verb]
    # An extender without a prioritize verb scores every node with 0.
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
    """A random one of the best nodes, if extenders have scored any of them: those are preferred among equals."""
    best = np.flatnonzero((total == total.max()) & is_scored)
    return int(best[random.randrange(len(best))]) if len(best) else None


# ---------------------------------------------------------------- preempt


def narrow_by_extenders(
    extenders: Sequence[Extender], pod: Pod, snapshot: Snapshot, candidates: Mapping[str, Victims]
) -> Steps[Mapping[str, Victims]]:
    """The candidates, by node name, that every extender accepts, with the victims that the last extender returned.

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


class AskingPostFilterPlugin(PostFilterPlugin):
    """A PostFilter plugin that calls extenders before it preempts, and pauses for other tasks."""

    @abstractmethod
    def post_filter_asking(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, filtered: FilteredNodes, extenders: Sequence[Extender]
    ) -> Steps[tuple[PostFilterResult | None, Status | None]]:
        """As `post_filter`, calling these extenders."""

    def post_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, filtered: FilteredNodes
    ) -> tuple[PostFilterResult | None, Status | None]:
        """The result without any extender."""
        return run_unasked(self.post_filter_asking(state, pod, snapshot, filtered, ()))
