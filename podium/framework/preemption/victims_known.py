"""Pods that preempt one after the other: what one of a kind has found on a node, the next finds there too.

Owns what is kept of dry runs, and until when. An answer goes by the spec of the pod, the node, the pods on it, those
that the node is promised to, and the disruption budgets; it is given again while all of these are as they were.

Cost: a comparison of the identities of what a node's answer goes by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import is_
from typing import Final, TypeAlias, cast

from podium.framework.contract.interface import Trials
from podium.framework.contract.status import Code
from podium.framework.cycle.extenders import PAUSE, Steps
from podium.framework.cycle.signature_cache import goes_by_its_spec
from podium.framework.preemption.candidates import Budgets, Candidate, Importance
from podium.framework.preemption.victims import Found, select_victims_of_many
from podium.objects.core import Pod, PodSpec
from podium.objects.workloads import PodDisruptionBudget

_SPECS_MAX: Final = 8
_PODS_AT_ONCE: Final = 2_000
"""How many pods the nodes have that are tried without a pause, about 10 ms of work."""

_Known: TypeAlias = tuple[object, object, tuple[object, ...], Found]
"""An answer, behind what it goes by."""


class VictimsKnown:
    """The answers for pods of the latest few specs."""

    def __init__(self) -> None:
        self._budgets: list[PodDisruptionBudget] = []
        self._of: dict[int, tuple[PodSpec, dict[int, _Known]]] = {}

    def select_victims(
        self,
        trials: Trials,
        rows: Sequence[int],
        pod: Pod,
        budgets: Budgets,
        importance: Importance,
    ) -> Steps[list[Found]]:
        """As `select_victims_of_many`."""
        known = self._known(pod.spec, budgets) if goes_by_its_spec(pod) else {}
        bases = trials.bases(rows)
        answers: list[Found | None] = []
        # No function is called for a row that is as it was: there are hundreds of them in each attempt.
        for row, (node, pods, promised) in zip(rows, bases, strict=True):
            was = known.get(row)
            if (
                was is None
                or was[0] is not node
                or was[1] is not pods
                or (was[2] is not promised and not _are_same(was[2], promised))
            ):
                answers.append(None)
            else:
                answers.append(was[3])
        news = [position for position, answer in enumerate(answers) if answer is None]
        for some in _in_parts(trials, rows, news):
            tried = select_victims_of_many(trials, [rows[each] for each in some], pod, budgets, importance)
            for position, found in zip(some, tried, strict=True):
                answers[position] = found
                row = rows[position]
                if _lasts(found, trials.pods(row).values(), importance):
                    known[row] = (*bases[position], found)
                else:
                    known.pop(row, None)
            yield PAUSE
        return cast("list[Found]", answers)

    def _known(self, spec: PodSpec, budgets: Budgets) -> dict[int, _Known]:
        if budgets.all != self._budgets:
            self._budgets = budgets.all
            self._of.clear()
        _, known = self._of.pop(id(spec), (spec, {}))
        self._of[id(spec)] = spec, known  # the latest met is last
        if len(self._of) > _SPECS_MAX:
            del self._of[next(iter(self._of))]
        return known


def _in_parts(trials: Trials, rows: Sequence[int], positions: Iterable[int]) -> Iterator[list[int]]:
    """The positions, together as long as not too many pods are on their rows."""
    part: list[int] = []
    count = 0
    for position in positions:
        part.append(position)
        count += len(trials.pods(rows[position]))
        if count >= _PODS_AT_ONCE:
            yield part
            part, count = [], 0
    if part:
        yield part


def _are_same(before: Sequence[object], now: Sequence[object]) -> bool:
    """Whether these are the same objects: equal ones may differ in what comes first."""
    return len(before) == len(now) and all(map(is_, before, now))


def _lasts(found: Found, pods: Iterable[Pod], importance: Importance) -> bool:
    """Whether the answer stays the same as time goes by: no error, and nobody has started in the future."""
    if isinstance(found, Candidate):
        return not any(map(importance.starts_later, pods))
    return found.code is not Code.ERROR
