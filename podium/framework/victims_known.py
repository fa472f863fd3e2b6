"""Pods that preempt one after the other: what one of a kind has found on a node, the next finds there too.

Owns what is kept of dry runs, and until when. An answer goes by the spec of the pod, the node, the pods on it, those
that the node is promised to, and the disruption budgets; it is given again while all of these are as they were.

Cost: a comparison of the identities of what a node's answer goes by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Final, TypeAlias, cast

from podium.framework.class_cache import goes_by_its_spec
from podium.framework.interface import Trials
from podium.framework.preemption import Budgets, Candidate, Importance
from podium.framework.status import Code
from podium.framework.victims import Found, select_victims_of_many
from podium.kube.objects import Pod, PodSpec
from podium.kube.workload_objects import PodDisruptionBudget

_SPECS_MAX: Final = 8

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
    ) -> list[Found]:
        """As `select_victims_of_many`."""
        if not goes_by_its_spec(pod):
            return select_victims_of_many(trials, rows, pod, budgets, importance)
        known = self._known(pod.spec, budgets)
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
        if news:
            tried = select_victims_of_many(trials, [rows[each] for each in news], pod, budgets, importance)
            for position, found in zip(news, tried, strict=True):
                answers[position] = found
                row = rows[position]
                if _lasts(found, trials.pods(row).values(), importance):
                    known[row] = (*bases[position], found)
                else:
                    known.pop(row, None)
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


def _are_same(before: Sequence[object], now: Sequence[object]) -> bool:
    """Whether these are the same objects: equal ones may differ in what comes first."""
    return len(before) == len(now) and all(map(is_, before, now))


def _lasts(found: Found, pods: Iterable[Pod], importance: Importance) -> bool:
    """Whether the answer stays the same as time goes by: no error, and nobody has started in the future."""
    if isinstance(found, Candidate):
        return not any(map(importance.starts_later, pods))
    return found.code is not Code.ERROR
