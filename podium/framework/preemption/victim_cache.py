"""Cached victims: pods of the same spec that preempt one after the other reuse each other's dry runs.

Owns which dry run results are cached, and for how long. A result depends on the pod's spec, the node, the pods on it,
the pods nominated to it, and the disruption budgets; it is reused while all of these are unchanged.

Cost: comparing the identities of the objects that a node's result depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress
from operator import is_, is_not
from typing import Final, cast

from podium.framework.contract.post_filter import Bases, NodesDryRun
from podium.framework.contract.status import Code
from podium.framework.contract.steps import PAUSE, Steps
from podium.framework.preemption.candidates import Budgets, Candidate, Importance
from podium.framework.preemption.victims import VictimSelection, select_victims_of_many
from podium.framework.profile.signature_cache import depends_on_spec_only
from podium.objects.core import Pod, PodSpec
from podium.objects.workloads import PodDisruptionBudget

_SPECS_MAX: Final = 8
_PODS_AT_ONCE: Final = 2_000
"""How many pods on the tried nodes make one stretch of work without a pause, about 10 ms."""


class _Selections:
    """The cached results of one spec by row, None where there is none, and the objects that they depend on."""

    __slots__ = ("answers", "nodes", "nominated_pods", "pods", "spec")

    def __init__(self, spec: PodSpec) -> None:
        self.spec = spec
        self.nodes: list[object] = []
        self.pods: list[object] = []
        self.nominated_pods: list[tuple[object, ...]] = []
        self.answers: list[VictimSelection | None] = []

    def valid(self, rows: Sequence[int], bases: Bases) -> list[VictimSelection | None]:
        """Return the result of each row; None if there is none that is still valid."""
        missing = max(rows) + 1 - len(self.answers)
        if missing > 0:
            self.nodes += [None] * missing
            self.pods += [None] * missing
            self.nominated_pods += [()] * missing
            self.answers += [None] * missing
        nodes, pods, nominated_pods = bases
        answers = [*map(self.answers.__getitem__, rows)]
        # No step of Python is taken for an unchanged row: there are hundreds of them in each attempt.
        for position in chain(_changed_positions(nodes, self.nodes, rows), _changed_positions(pods, self.pods, rows)):
            answers[position] = None
        for position in _changed_positions(nominated_pods, self.nominated_pods, rows):
            if not _are_same(self.nominated_pods[rows[position]], nominated_pods[position]):
                answers[position] = None
        return answers

    def put(self, row: int, position: int, bases: Bases, answer: VictimSelection | None) -> None:
        """Keep the result of a row, of which the bases have that position."""
        nodes, pods, nominated_pods = bases
        self.nodes[row], self.pods[row] = nodes[position], pods[position]
        self.nominated_pods[row], self.answers[row] = nominated_pods[position], answer


class VictimCache:
    """The cached results for the few most recent pod specs."""

    def __init__(self) -> None:
        self._budgets: list[PodDisruptionBudget] = []
        self._by_spec: dict[int, _Selections] = {}

    def select_victims(
        self,
        dry_run: NodesDryRun,
        rows: Sequence[int],
        pod: Pod,
        budgets: Budgets,
        importance: Importance,
    ) -> Steps[list[VictimSelection]]:
        """Return the answer of `select_victims_of_many`, from the cache where it is still valid."""
        cache = self._cache_of(pod.spec, budgets) if depends_on_spec_only(pod) else _Selections(pod.spec)
        bases = dry_run.bases(rows)
        answers = cache.valid(rows, bases)
        news = [position for position, answer in enumerate(answers) if answer is None]
        for part in _in_parts(dry_run, rows, news):
            part_answers = select_victims_of_many(
                dry_run, [rows[position_in_part] for position_in_part in part], pod, budgets, importance
            )
            for position, victims in zip(part, part_answers, strict=True):
                answers[position] = victims
                row = rows[position]
                lasts = _lasts(victims, dry_run.pods(row).values(), importance)
                cache.put(row, position, bases, victims if lasts else None)
            yield PAUSE
        return cast("list[VictimSelection]", answers)

    def _cache_of(self, spec: PodSpec, budgets: Budgets) -> _Selections:
        if budgets.all != self._budgets:
            self._budgets = budgets.all
            self._by_spec.clear()
        cache = self._by_spec.pop(id(spec), None) or _Selections(spec)
        self._by_spec[id(spec)] = cache  # the most recently used is last
        if len(self._by_spec) > _SPECS_MAX:
            del self._by_spec[next(iter(self._by_spec))]
        return cache


def _changed_positions(current: Sequence[object], former: Sequence[object], rows: Iterable[int]) -> Iterator[int]:
    """Return the positions of rows with another object than before."""
    return compress(range(len(current)), map(is_not, current, map(former.__getitem__, rows)))


def _in_parts(dry_run: NodesDryRun, rows: Sequence[int], positions: Iterable[int]) -> Iterator[list[int]]:
    """Yield the positions in parts, each with about `_PODS_AT_ONCE` pods on its rows."""
    part: list[int] = []
    count = 0
    for position in positions:
        part.append(position)
        count += len(dry_run.pods(rows[position]))
        if count >= _PODS_AT_ONCE:
            yield part
            part, count = [], 0
    if part:
        yield part


def _are_same(former: Sequence[object], current: Sequence[object]) -> bool:
    """Return True if these are identical objects. Equality is not enough: equal mappings may differ in their order."""
    return len(former) == len(current) and all(map(is_, former, current))


def _lasts(answer: VictimSelection, pods: Iterable[Pod], importance: Importance) -> bool:
    """Return True if the result stays valid over time: it is not an error, and no pod's start time is in the future."""
    if isinstance(answer, Candidate):
        return not any(map(importance.starts_later, pods))
    return answer.code is not Code.ERROR
