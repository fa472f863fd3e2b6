"""Explains the number of replicas that each cluster gets, and which changes would give it more.

What would bring more in is found by asking again with one thing changed, so that it holds for that change alone.

Cost: some twenty divisions for each cluster, until `DIVIDED_CLUSTERS_MAX` clusters have been divided over in all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec.structs import replace as with_fields

from podium.estimator.division.assignment import Strategy, is_divided, static_weights, strategy_of
from podium.estimator.division.attempts import Attempt, Outcome, Question, divide
from podium.estimator.division.availability import SCHEDULER_ESTIMATOR, GivenAnswers
from podium.estimator.division.bindings import BindingSpec, ClusterAffinity, ClusterPreferences, StaticClusterWeight
from podium.estimator.division.candidates import Candidate
from podium.estimator.division.filters import AFFINITY_MISMATCH, API_MISSING, EVICTING, UNTOLERATED
from podium.estimator.requirements import MAX_INT32

DIVIDED_CLUSTERS_MAX: Final = 100_000
"""Enough for 2,500 divisions over 40 clusters, and for 20 over 5,000."""
NOT_TRIED: Final = "not tried: too many clusters"
"""The remedy where the limit has been reached."""
_WEIGHT_MAX: Final = 1 << 40
_EDITS: Final = {
    API_MISSING: "serve the workload's kind there, as status.apiEnablements says",
    AFFINITY_MISMATCH: "select it by the placement's affinity",
    EVICTING: "wait until its eviction has ended",
    UNTOLERATED: "tolerate the taint in placement.clusterTolerations",
}


@dataclass(frozen=True, slots=True)
class ClusterShare:
    """One cluster's share.

    Attributes:
        replicas: by the result; None where a cluster gets the object without a number.
        why: the reason for this number.
        remedy: the least change that brings more replicas in, or "" if none was found.
    """

    cluster: str
    replicas: int | None
    why: str
    remedy: str


def explain_shares(question: Question, outcome: Outcome) -> list[ClusterShare]:
    """Explain the share of each cluster, in the order of the result, then those that get nothing."""
    attempt = outcome.attempts[-1]
    shares = {target.name: target.replicas for target in outcome.clusters}
    ranked = [candidate.name for candidate in attempt.candidates]
    names = dict.fromkeys([*shares, *ranked, *(cluster.key for cluster in question.clusters)])
    present = {cluster.key for cluster in question.clusters}
    explanation = _Explanation(question, outcome, attempt)
    counts = is_divided(question.spec)
    return [
        ClusterShare(
            name,
            shares.get(name, 0) if counts else None,
            explanation.why(name) if name in present else "it is no longer there",
            explanation.more(name, shares.get(name, 0)) if name in present else "",
        )
        for name in names
    ]


class _Explanation:
    def __init__(self, question: Question, outcome: Outcome, attempt: Attempt) -> None:
        self._question = question
        self._outcome = outcome
        self._attempt = attempt
        self._candidates = {candidate.name: candidate for candidate in attempt.candidates}
        self._selected = {candidate.name for candidate in attempt.selection or ()}
        self._reasons = attempt.filter_result.reasons
        self._targets = {target.name for target in outcome.clusters}
        self._divisions_left = DIVIDED_CLUSTERS_MAX // max(1, len(question.clusters))

    def why(self, name: str) -> str:
        """Return the reason for the cluster's number of replicas."""
        if name in self._reasons:
            return " | ".join(self._reasons[name])
        if name not in self._candidates:
            return "the cluster is being deleted"
        if self._attempt.error is not None:
            return f"has {self._candidates[name].available} available, but {self._attempt.error}"
        if name not in self._selected:
            return f"not among the {len(self._selected)} clusters that the spread constraints select"
        return self._why_assigned(self._candidates[name])

    def _why_assigned(self, candidate: Candidate) -> str:
        spec = self._question.spec
        if not is_divided(spec):
            return "every selected cluster gets the object"
        strategy = strategy_of(spec)
        if strategy is Strategy.DUPLICATED:
            return f"every selected cluster gets all {spec.replicas}"
        if strategy is Strategy.STATIC_WEIGHT:
            weights = static_weights(self._attempt.selection or (), _preferences(spec))
            return f"weight {weights.get(candidate.name, 0)} of {sum(weights.values())}"
        assigned = spec.assigned_replicas(candidate.name)
        room = (
            f"takes {candidate.allocatable} more beside its {assigned}" if assigned else f"takes {candidate.available}"
        )
        if strategy is Strategy.AGGREGATED and candidate.name not in self._targets:
            return f"{room}; clusters before it are enough"
        return room

    def more(self, name: str, replicas: int) -> str:
        """Return the least change that brings more replicas in."""
        if name in self._reasons:
            texts = [_edit(reason) for reason in self._reasons[name]]
            return "; ".join(texts)
        is_complete = replicas >= self._question.spec.replicas
        if name not in self._candidates or is_complete or not is_divided(self._question.spec):
            return ""
        strategy = strategy_of(self._question.spec)
        if self._divisions_left <= 0:
            return NOT_TRIED
        if strategy is Strategy.DUPLICATED:
            return "a greater maxGroups"
        if strategy is Strategy.STATIC_WEIGHT:
            weights = static_weights(self._attempt.selection or (), _preferences(self._question.spec))
            weight = self._least(lambda value: self._with_weight(name, value), weights.get(name, 0), name, replicas)
            return f"weight {weight}" if weight is not None else ""
        allocatable = self._candidates[name].allocatable
        least = self._least(lambda value: self._with_available(name, value), allocatable, name, replicas)
        return f"{least - allocatable:,} more available replicas" if least is not None else ""

    def _least(self, edit: Callable[[int], Question], value: int, name: str, replicas: int) -> int | None:
        """Return the least value above the present one with which the cluster gets more replicas."""

        def brings_more(number: int) -> bool:
            self._divisions_left -= 1
            targets = divide(edit(number)).clusters
            return any(target.name == name and target.replicas > replicas for target in targets)

        # Doubling, then bisection: a share grows with its weight or room, though by steps.
        low, step = value, 1
        while not brings_more(min(value + step, _WEIGHT_MAX)):
            low, step = value + step, step * 2
            if low >= min(_WEIGHT_MAX, MAX_INT32):
                return None
        high = min(value + step, _WEIGHT_MAX)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if brings_more(middle) else (middle, high)
        return high

    def _with_available(self, name: str, allocatable: int) -> Question:
        """Return the question with other available replicas of one cluster, and those of the others as they are."""
        # One estimator with the minimum of all: raising one of several might change nothing.
        available: dict[str, int | str] = {}
        for attempt in self._outcome.attempts:
            if attempt.availability is not None:
                available |= attempt.availability.replicas
        answers = GivenAnswers({**available, name: min(allocatable, MAX_INT32 - 1)})
        return replace(self._question, estimators={SCHEDULER_ESTIMATOR: answers})

    def _with_weight(self, name: str, weight: int) -> Question:
        spec = self._question.spec
        rule = StaticClusterWeight(target_cluster=ClusterAffinity(cluster_names=(name,)), weight=weight)
        rules = (*_explicit_rules(self._attempt.selection or (), _preferences(spec)), rule)
        scheduling = with_fields(spec.strategy, weight_preference=ClusterPreferences(static_weight_list=rules))
        placement = with_fields(spec.rules, replica_scheduling=scheduling)
        return replace(self._question, spec=with_fields(spec, placement=placement))


def _explicit_rules(selection: Sequence[Candidate], preferences: ClusterPreferences) -> list[StaticClusterWeight]:
    """Return a rule for each cluster with the weight it has, since weights that are left out depend on each other."""
    return [
        StaticClusterWeight(target_cluster=ClusterAffinity(cluster_names=(name,)), weight=weight)
        for name, weight in static_weights(selection, preferences).items()
    ]


def _preferences(spec: BindingSpec) -> ClusterPreferences:
    return spec.strategy.weight_preference or ClusterPreferences()


def _edit(reason: str) -> str:
    return next((text for beginning, text in _EDITS.items() if reason.startswith(beginning)), _property_edit(reason))


def _property_edit(reason: str) -> str:
    """Return the edit for a property without which clusters cannot be spread, or "" for another reason."""
    head, tail = "cluster(s) did not have ", " property"
    return f"set spec.{reason[len(head) : -len(tail)]}" if reason.startswith(head) and reason.endswith(tail) else ""
