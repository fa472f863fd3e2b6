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
from itertools import compress
from math import inf
from operator import attrgetter
from typing import Final, Protocol, TypeVar

from msgspec.structs import replace

from podium.config import NEWEST, PreemptionRules
from podium.framework.contract.status import Code, Status
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.selectors import EVERYTHING, Selector, compile_selector
from podium.objects.times import time_or_none
from podium.objects.unreadable import UnreadableBudget
from podium.objects.workloads import PodDisruptionBudget, PodDisruptionBudgetStatus

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
        priority = pod.priority
        return [candidate for candidate in pods if candidate.priority < priority and not self._is_protected(candidate)]

    def started_s(self, pod: Pod) -> float:
        """Return the pod's start time; now, if it has not started or its start time cannot be parsed."""
        start_s = started_s(pod)
        return self._now_s if start_s is None else start_s

    def first_start_s(self, candidate: Candidate) -> float:
        """Return the earliest start time among the victims of the highest priority."""
        first_s, is_one_pending = candidate.first_start
        return min(first_s, self._now_s) if is_one_pending else first_s

    def starts_later(self, pod: Pod) -> bool:
        """Return True if the pod's start time is in the future, because another machine's clock is ahead."""
        return self.started_s(pod) > self._now_s

    def order(self, pods: Iterable[Pod]) -> list[Pod]:
        """Return the pods, the most important first."""
        # The same as `started_s`, without another call for each of many thousand pods.
        now_s = self._now_s
        return sorted(pods, key=lambda pod: (-pod.priority, now_s if (start_s := started_s(pod)) is None else start_s))


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
    the most important victim; the sum of priorities; the number of victims. `first_start` is when the first of the
    victims of the highest priority started, and whether one of them has not.
    """

    node_name: str
    victims: tuple[Pod, ...]
    violations: int
    cost: tuple[int, ...] = field(init=False, repr=False, compare=False)
    first_start: tuple[float, bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the cost now, while the victims are in the processor's cache."""
        priorities = [victim.priority for victim in self.victims]
        count = len(priorities)
        cost = (self.violations, priorities[0], sum(priorities) + count * _PRIORITY_OFFSET, count)
        object.__setattr__(self, "cost", cost)
        highest = max(priorities)
        each_s = zip(map(started_s, self.victims), priorities, strict=True)
        starts_s = {start_s for start_s, priority in each_s if priority == highest}
        first_s = min((start_s for start_s in starts_s if start_s is not None), default=inf)
        object.__setattr__(self, "first_start", (first_s, None in starts_s))


_cost, _first_start = attrgetter("cost"), attrgetter("first_start")


def choose(candidates: Sequence[Candidate], importance: Importance) -> Candidate:
    """Return the candidate that costs least."""
    costs = list(map(_cost, candidates))
    least = min(costs)
    cheapest = list(compress(candidates, map(least.__eq__, costs)))
    starts = list(map(_first_start, cheapest))
    # Hundreds of pods of one Deployment may have started together, and each call takes time.
    if starts.count(starts[0]) == len(starts):
        return cheapest[0]
    # Pods that started last lose the least work.
    return max(cheapest, key=importance.first_start_s)


def errors_of(statuses: Iterable[Status]) -> str:
    """Return the errors among the statuses in one line, as upstream joins them; empty if there are none."""
    distinct = dict.fromkeys(status.message for status in statuses if status.code is Code.ERROR)
    return next(iter(distinct)) if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""
