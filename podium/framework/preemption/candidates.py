"""Plans preemption: which pods of lower priority to evict, and on which node that costs least.

Owns the importance of pods, the effect of disruption budgets on victims, and the choice among nodes. Never runs a dry
run: `podium.framework.preemption.victims` and `dry_run` do.

Source: kubernetes v1.36.2 and v1.37.2, pkg/scheduler/framework/preemption/preemption.go,
plugins/defaultpreemption/default_preemption.go and pkg/scheduler/framework/preemption/util.go.
Differs: nodes are tried one after the other, in the order of the snapshot from a random one on, so the plan is the
same whenever that start is. Where upstream leaves it to chance, here the first in that order wins: among pods of one
priority and start time, and among nodes that are equally good. A pod that has not started counts as starting now. Pods
of a disruption budget that cannot be parsed are never victims, and a budget with an invalid selector is violated by
any pod of its namespace; upstream does not see such budgets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from operator import attrgetter
from typing import Final, Protocol, TypeAlias, TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from podium.config import NEWEST, PreemptionRules
from podium.framework.contract.status import Code, Status
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.selectors import EVERYTHING, Selector, compile_selector
from podium.objects.times import time_or_none
from podium.objects.unreadable import UnreadableBudget
from podium.objects.workloads import PodDisruptionBudget, PodDisruptionBudgetStatus

Costs: TypeAlias = NDArray[np.float64]
"""What candidates cost. Shape: one row per number of `Candidate.cost`, one column per candidate."""

COST_ROWS: Final = 6
VIOLATIONS, COUNT, _FIRST_START, _IS_ONE_PENDING = 0, 3, 4, 5
_PRIORITY_OFFSET: Final = 1 << 31
"""Added to every priority to make it positive, so that more victims never cost less than fewer of the same priority."""
_ALLOWS_NOTHING: Final = PodDisruptionBudgetStatus()
_START_TIMES: Final = 1 << 16
"""How many parsed start times are cached: each is needed again in every attempt."""


class EvictedTogether(Protocol):
    """Pods that are evicted together or not at all."""

    @property
    def pods(self) -> Sequence[Pod]:
        """These pods."""


UnitT = TypeVar("UnitT", bound=EvictedTogether)


def _protect_no_pod(pod: Pod) -> bool:
    del pod
    return False


class Importance:
    """The order in which pods are kept: higher priority first; among equal priorities the pod that has run longer.

    Args:
        is_protected: returns True if a pod must never be a victim, and always the same answer for one pod. It may raise
            a PluginError for a pod that it cannot judge: then nothing is evicted from the pod's node.

    Units: `now_s` is in seconds since the epoch.
    """

    def __init__(self, now_s: float, is_protected: Callable[[Pod], bool] = _protect_no_pod) -> None:
        self._now_s = now_s
        self._is_protected = is_protected

    def below(self, pod: Pod, pods: Iterable[Pod]) -> list[Pod]:
        """Return the pods of lower priority than the pod: its potential victims. Raises: as `is_protected`."""
        priority, is_protected = pod.priority, self._is_protected
        return [pod for pod in pods if (pod.spec.priority or 0) < priority and not is_protected(pod)]

    def started_s(self, pod: Pod) -> float:
        """Return the pod's start time; now, if it has not started or its start time cannot be parsed."""
        start_s = started_s(pod)
        return self._now_s if start_s is None else start_s

    def first_starts_s(self, costs: Costs) -> NDArray[np.float64]:
        """Return the earliest start time among the victims of the highest priority. Shape: one for each candidate."""
        first_s: NDArray[np.float64] = costs[_FIRST_START]
        starts_s: NDArray[np.float64] = np.where(
            costs[_IS_ONE_PENDING] > 0.0, np.minimum(first_s, self._now_s), first_s
        )
        return starts_s

    def order(self, pods: Iterable[Pod]) -> list[Pod]:
        """Return the pods, the most important first."""
        return self.lasting_order([*pods])[0]

    def lasting_order(self, pods: list[Pod]) -> tuple[list[Pod], bool]:
        """Return the pods, the most important first; and whether this order lasts.

        A pod's start time may be in the future, if another machine's clock is ahead: then the order changes as time
        passes. A pod without one starts now.
        """
        if not pods:
            return pods, True
        now_s = self._now_s
        if _are_equal(pods):
            return pods, self.started_s(pods[0]) <= now_s
        # The same as `started_s`, without another call for each of many thousand pods.
        keys = [(-(pod.spec.priority or 0), now_s if (start_s := started_s(pod)) is None else start_s) for pod in pods]
        ranks = sorted(range(len(keys)), key=keys.__getitem__)
        return [pods[rank] for rank in ranks], all(start_s <= now_s for _, start_s in keys)


def is_leaving(pod: Pod) -> bool:
    """Return whether the pod is being deleted because a scheduler has preempted it."""
    if not pod.is_terminating:
        return False
    condition = pod.status.condition("DisruptionTarget")
    return condition is not None and (condition.status, condition.reason) == ("True", "PreemptionByScheduler")


def started_s(pod: Pod) -> float | None:
    """Return the pod's start time; None if it has not started or its start time cannot be parsed."""
    text = pod.status.start_time
    return _start_time_s(text) if text else None


_start_time_s = lru_cache(_START_TIMES)(time_or_none)


def _are_equal(pods: Sequence[Pod]) -> bool:
    """Return whether the pods have one priority and one start time, as those of a node often do."""
    keys = [(pod.spec.priority, pod.status.start_time) for pod in pods]
    return keys.count(keys[0]) == len(keys)


class Budgets:
    """The disruptions that each PodDisruptionBudget still allows.

    Cost: a selector is compiled when the first pod of its namespace is checked, and matched once against each set of
    labels.
    """

    def __init__(self, budgets: Iterable[PodDisruptionBudget], rules: PreemptionRules = NEWEST.preemption) -> None:
        self.all = list(budgets)
        self._stops_at_exhausted = rules.stop_at_exhausted_budget
        self._budgets: dict[str, list[PodDisruptionBudget]] = {}
        for budget in self.all:
            self._budgets.setdefault(budget.metadata.namespace, []).append(budget)
        self._unreadable: dict[str, list[Selector]] = {}
        for budget in self.all:
            if isinstance(budget, UnreadableBudget):
                self._unreadable.setdefault(budget.metadata.namespace, []).append(_may_select(budget))
        self._compiled: dict[str, list[tuple[PodDisruptionBudget, Selector]]] = {}
        self._selecting: dict[tuple[str, frozenset[tuple[str, str]]], list[PodDisruptionBudget]] = {}

    @property
    def has_unreadable(self) -> bool:
        """There is a budget that cannot be parsed, so the disruptions that it allows are unknown."""
        return bool(self._unreadable)

    def forbid(self, pod: Pod) -> bool:
        """Return True if a budget that cannot be parsed may cover the pod."""
        selectors = self._unreadable.get(pod.metadata.namespace, ())
        return any(selector.matches(pod.metadata.labels) for selector in selectors)

    def split(self, pods: Sequence[Pod]) -> tuple[list[Pod], list[Pod]]:
        """Return the pods whose eviction, after those before them, would violate a budget; and the others, in order."""
        if not self._budgets:
            return [], list(pods)
        disruptions_allowed: dict[str, int] = {}
        violating: list[Pod] = []
        harmless: list[Pod] = []
        for pod in pods:
            (violating if self._violates(pod, disruptions_allowed) else harmless).append(pod)
        return violating, harmless

    def split_units(self, units: Iterable[UnitT]) -> tuple[list[UnitT], list[UnitT]]:
        """Split units, pods that are evicted together, like `split`: each counts up to the first violated budget."""
        disruptions_allowed: dict[str, int] = {}
        violating: list[UnitT] = []
        harmless: list[UnitT] = []
        for unit in units:
            is_too_much = any(
                self._counts_below_zero(budget, disruptions_allowed, pod)
                for pod in unit.pods
                for budget in self._budgets_of(pod)
            )
            (violating if is_too_much else harmless).append(unit)
        return violating, harmless

    def split_by_count(self, units: Iterable[UnitT]) -> tuple[list[tuple[UnitT, int]], list[UnitT]]:
        """Like `split_units`, with the number of a unit's pods that violate a budget: each counts up to the first."""
        disruptions_allowed: dict[str, int] = {}
        violating: list[tuple[UnitT, int]] = []
        harmless: list[UnitT] = []
        for unit in units:
            count = sum(
                any(self._counts_below_zero(budget, disruptions_allowed, pod) for budget in self._budgets_of(pod))
                for pod in unit.pods
            )
            if count:
                violating.append((unit, count))
            else:
                harmless.append(unit)
        return violating, harmless

    def _violates(self, pod: Pod, disruptions_allowed: dict[str, int]) -> bool:
        """Count the pod's eviction against its budgets; return whether it violates one of them."""
        violations = (self._counts_below_zero(budget, disruptions_allowed, pod) for budget in self._budgets_of(pod))
        return any(violations if self._stops_at_exhausted else list(violations))

    @staticmethod
    def _counts_below_zero(budget: PodDisruptionBudget, disruptions_allowed: dict[str, int], pod: Pod) -> bool:
        # The API server has already counted the disruption of a pod in `disruptedPods`.
        if pod.metadata.name in budget.status.disrupted_pods:
            return False
        disruptions_allowed[budget.key] = disruptions_allowed.get(budget.key, budget.status.disruptions_allowed) - 1
        return disruptions_allowed[budget.key] < 0

    def _budgets_of(self, pod: Pod) -> Sequence[PodDisruptionBudget]:
        """Return the budgets that select the pod; none if it has no labels."""
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        if not labels or namespace not in self._budgets:
            return ()
        key = namespace, frozenset(labels.items())
        selecting = self._selecting.get(key)
        if selecting is None:
            selectors = self._compiled.get(namespace)
            if selectors is None:
                selectors = self._compiled[namespace] = list(_with_selectors(self._budgets[namespace]))
            selecting = self._selecting[key] = [budget for budget, selector in selectors if selector.matches(labels)]
        return selecting


def _may_select(budget: UnreadableBudget) -> Selector:
    """Return a selector that matches every pod that the budget may cover."""
    try:
        return compile_selector(budget.spec.selector) if budget.is_selector_read else EVERYTHING
    except FieldError:
        return EVERYTHING


def _with_selectors(budgets: Iterable[PodDisruptionBudget]) -> Iterator[tuple[PodDisruptionBudget, Selector]]:
    """Yield the budgets that may select a pod: empty selectors select nothing here, invalid ones perhaps any."""
    for budget in budgets:
        try:
            selector = compile_selector(budget.spec.selector)
        except FieldError:
            yield replace(budget, status=_ALLOWS_NOTHING), EVERYTHING
            continue
        if not selector.everything and not selector.nothing:
            yield budget, selector


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that the pod would fit on without these victims, the most important one first.

    `cost` compares candidates, lower is better, and the first difference decides: violated budgets; the priority of
    the most important victim; the sum of priorities; the number of victims. Its last two numbers are when the first of
    the victims of the highest priority started, and 1 if one of them has not; the latest of these is best.
    """

    node_name: str
    victims: tuple[Pod, ...]
    violations: int
    cost: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the cost now, while the victims are in the processor's cache."""
        first, count = self.victims[0], len(self.victims)
        if _are_equal(self.victims):
            priority, start_s = first.spec.priority or 0, started_s(first)
            start = (inf, 1.0) if start_s is None else (start_s, 0.0)
            cost = self.violations, priority, count * (priority + _PRIORITY_OFFSET), count, *start
            object.__setattr__(self, "cost", cost)
            return
        priorities = [victim.spec.priority or 0 for victim in self.victims]
        highest = max(priorities)
        if priorities.count(highest) == count:
            starts_s = {*map(started_s, self.victims)}
        else:
            pairs = zip(self.victims, priorities, strict=True)
            starts_s = {started_s(victim) for victim, priority in pairs if priority == highest}
        first_s = min((start_s for start_s in starts_s if start_s is not None), default=inf)
        # Exact as floats: the sums stay below 2**53 up to two million victims.
        priority_sum = sum(priorities) + count * _PRIORITY_OFFSET
        cost = self.violations, priorities[0], priority_sum, count, first_s, float(None in starts_s)
        object.__setattr__(self, "cost", cost)


_cost = attrgetter("cost")


class Candidates:
    """The candidates of a search in order, with their costs as columns: hundreds are compared for each pod.

    Args:
        costs: theirs, if they are known already.
    """

    __slots__ = ("_candidates", "_costs")

    def __init__(self, candidates: Sequence[Candidate], costs: Costs | None = None) -> None:
        self._candidates = candidates
        self._costs = costs_of(candidates) if costs is None else costs

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self._candidates)

    def __iter__(self) -> Iterator[Candidate]:
        """Return each candidate."""
        return iter(self._candidates)

    def cheapest(self, importance: Importance) -> Candidate:
        """Return the candidate that costs least."""
        positions = np.arange(len(self._candidates))
        for row in self._costs[: COUNT + 1]:
            values = row[positions]
            positions = positions[values == values.min()]
        # Pods that started last lose the least work; among equals the first candidate is taken.
        latest = int(importance.first_starts_s(self._costs[:, positions]).argmax())
        return self._candidates[int(positions[latest])]


def costs_of(candidates: Iterable[Candidate]) -> Costs:
    """Return the costs of these candidates. Shape: one column per candidate."""
    return np.array([*map(_cost, candidates)], np.float64).reshape(-1, COST_ROWS).T


def errors_of(statuses: Iterable[Status]) -> str:
    """Return the errors among the statuses in one line, as upstream joins them; empty if there are none."""
    distinct = dict.fromkeys(status.message for status in statuses if status.code is Code.ERROR)
    return next(iter(distinct)) if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""
