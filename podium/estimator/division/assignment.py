"""Assigns replicas to the selected clusters.

Source: karmada pkg/scheduler/core/assignment.go, division_algorithm.go and common.go, v1.18.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from podium.estimator.division.bindings import BindingSpec, ClusterPreferences, TargetCluster
from podium.estimator.division.candidates import Candidate
from podium.estimator.division.cluster_selectors import compile_affinity
from podium.estimator.division.dispenser import divide_by_weights
from podium.estimator.division.errors import DivisionError, NotEnoughReplicas
from podium.lib.go_sort import go_sorted


class Strategy(enum.Enum):
    """The way in which replicas are assigned."""

    DUPLICATED = "Duplicated"
    STATIC_WEIGHT = "StaticWeight"
    DYNAMIC_WEIGHT = "DynamicWeight"
    AGGREGATED = "Aggregated"


@dataclass(frozen=True, slots=True)
class Assignment:
    """The replicas of each cluster, in upstream's order.

    Attributes:
        clusters: without those that get no replicas, unless the workload is not divided at all.
        is_order_random: True if upstream's order depends on the order of a map.
    """

    clusters: tuple[TargetCluster, ...]
    is_order_random: bool = False


def strategy_of(spec: BindingSpec) -> Strategy:
    """Return the strategy that the placement names.

    Raises:
        DivisionError: there is no such strategy.
    """
    scheduling = spec.rules.replica_scheduling
    if scheduling is None or spec.rules.is_duplicated:
        return Strategy.DUPLICATED
    if scheduling.replica_scheduling_type == "Divided":
        if scheduling.replica_division_preference == "Aggregated":
            return Strategy.AGGREGATED
        if scheduling.replica_division_preference == "Weighted":
            weights = scheduling.weight_preference
            is_dynamic = weights is not None and bool(weights.dynamic_weight)
            return Strategy.DYNAMIC_WEIGHT if is_dynamic else Strategy.STATIC_WEIGHT
    raise DivisionError(
        "unsupported replica scheduling strategy, "
        f"replicaSchedulingType: {scheduling.replica_scheduling_type}, "
        f"replicaDivisionPreference: {scheduling.replica_division_preference}, please try another scheduling strategy"
    )


def is_divided(spec: BindingSpec) -> bool:
    """Return True if the clusters get numbers of replicas; several components, or no pods, go to all of them alike."""
    return (spec.replicas > 0 or spec.replica_requirements is not None) and len(spec.components) <= 1


def assign_replicas(
    selection: Sequence[Candidate], spec: BindingSpec, group: str, *, is_fresh: bool, random: Random | None = None
) -> Assignment:
    """Return the replicas of each cluster.

    Args:
        selection: in the order in which they were selected.
        group: the name of the observed affinity group, or "".
        is_fresh: forget the previous result, as far as the strategy takes it into account.
        random: draws the order where upstream takes that of a map. None takes the previous result's.

    Raises:
        DivisionError: the workload cannot be divided.
    """
    if not selection:
        raise DivisionError("no clusters available to schedule")
    if not is_divided(spec):
        return Assignment(tuple(TargetCluster(name=candidate.name) for candidate in selection))
    term = spec.rules.term_named(group) if group else None
    division = _Division(spec, strategy_of(spec), is_fresh, random)
    if term is None or term.overflow_affinities is None:
        return division.divide(selection, spec.replicas)
    return _divide_by_tiers(division, selection, spec.replicas)


def _divide_by_tiers(division: _Division, selection: Sequence[Candidate], replicas: int) -> Assignment:
    """Fill the tiers of overflow one after the other, each as far as its available replicas go."""
    targets: list[TargetCluster] = []
    is_order_random = False
    for tier in sorted({candidate.tier for candidate in selection}):
        members = [candidate for candidate in selection if candidate.tier == tier]
        share = min(replicas, sum(candidate.available for candidate in members))
        part = division.divide(members, share)
        targets += part.clusters
        is_order_random |= part.is_order_random
        replicas -= share
        if replicas <= 0:
            return Assignment(tuple(targets), is_order_random)
    raise NotEnoughReplicas("Clusters available replicas are not enough to schedule.")


@dataclass(frozen=True, slots=True)
class _Division:
    spec: BindingSpec
    strategy: Strategy
    is_fresh: bool
    random: Random | None

    def divide(self, candidates: Sequence[Candidate], replicas: int) -> Assignment:
        """Return the replicas of each cluster that gets any."""
        if self.strategy is Strategy.DUPLICATED:
            return _without_zeros((candidate.name, replicas) for candidate in candidates)
        if self.strategy is Strategy.STATIC_WEIGHT:
            return _without_zeros(
                divide_by_weights(replicas, self._static_weights(candidates), self.spec.resource.uid).items()
            )
        return self._divide_by_available(candidates, replicas)

    def _static_weights(self, candidates: Sequence[Candidate]) -> dict[str, int]:
        preferences = self.spec.strategy.weight_preference
        return static_weights(candidates, preferences or ClusterPreferences())

    def _divide_by_available(self, candidates: Sequence[Candidate], replicas: int) -> Assignment:
        names = {candidate.name for candidate in candidates}
        previous = [target for target in self.spec.clusters if target.name in names]
        assigned = _wrap(sum(target.replicas for target in previous))
        allocatable = [(candidate.name, candidate.allocatable) for candidate in candidates]
        if self.is_fresh:
            returned: Counter[str] = Counter()
            for target in previous:
                returned[target.name] += target.replicas
            weights = [(name, _wrap(count + returned[name])) for name, count in allocatable]
            return _without_zeros(self._dispense(weights, replicas, (), "failed to do fresh scale").items())
        if assigned == replicas:
            return _without_zeros((target.name, target.replicas) for target in previous)
        if assigned > replicas:
            weights = [(target.name, target.replicas) for target in previous]
            return _without_zeros(self._dispense(weights, replicas, (), "failed to scale down").items())
        extra = self._dispense(allocatable, replicas - assigned, previous, "failed to scale up")
        return self._add(previous, extra)

    def _dispense(
        self, weights: Sequence[tuple[str, int]], replicas: int, base: Sequence[TargetCluster], step: str
    ) -> dict[str, int]:
        """Divide replicas by available replicas, over as few clusters as possible if the strategy is Aggregated.

        Args:
            base: the clusters that keep their replicas and come first.
        """
        # Upstream adds up in 32 bits; a recorded answer depends on it.
        total = _wrap(sum(count for _, count in weights))
        if total < replicas:
            raise NotEnoughReplicas(f"{step}: Clusters available replicas {total} are not enough to schedule.")
        weights = go_sorted(weights, key=lambda weight: -weight[1])
        if self.strategy is Strategy.AGGREGATED:
            base_names = {target.name for target in base if target.replicas > 0}
            weights = _shortest_prefix(sorted(weights, key=lambda weight: weight[0] not in base_names), replicas)
        return divide_by_weights(replicas, dict(weights), self.spec.resource.uid)

    def _add(self, previous: Sequence[TargetCluster], extra: Mapping[str, int]) -> Assignment:
        if not extra:
            return _without_zeros((target.name, target.replicas) for target in previous)
        base = {target.name: target.replicas for target in previous}
        unchanged = [(name, count) for name, count in base.items() if name not in extra]
        if self.random is not None:
            self.random.shuffle(unchanged)
        increased = [(name, count + base.get(name, 0)) for name, count in extra.items()]
        is_order_random = sum(count > 0 for _, count in unchanged) > 1
        return _without_zeros((*increased, *unchanged), is_order_random)


def static_weights(candidates: Iterable[Candidate], preferences: ClusterPreferences) -> dict[str, int]:
    """Return the weight of each cluster: the greatest of the rules that match it, and 1 for all if there is none."""
    rules = [(compile_affinity(rule.target_cluster), rule.weight) for rule in preferences.static_weight_list]
    weights = {
        candidate.name: max((weight for matches, weight in rules if matches(candidate.cluster)), default=0)
        for candidate in candidates
    }
    return {name: weight for name, weight in weights.items() if weight > 0} or dict.fromkeys(weights, 1)


def _shortest_prefix(weights: Sequence[tuple[str, int]], replicas: int) -> list[tuple[str, int]]:
    total = 0
    for index, (_, count) in enumerate(weights):
        total = _wrap(total + count)
        if total >= replicas:
            return list(weights[: index + 1])
    return list(weights)


def _without_zeros(targets: Iterable[tuple[str, int]], is_order_random: bool = False) -> Assignment:
    clusters = tuple(TargetCluster(name=name, replicas=replicas) for name, replicas in targets if replicas > 0)
    return Assignment(clusters, is_order_random)


def _wrap(number: int) -> int:
    """Return the number's low 32 bits as an int32."""
    return (number + 2**31) % 2**32 - 2**31
