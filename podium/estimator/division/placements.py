"""Checks and completes a placement as Karmada's webhook does before its scheduler sees it.

Source: karmada pkg/util/helper/policy.go and pkg/util/validation/validation.go, v1.18.
Differs: strategies and weights that upstream's schema refuses are refused here, since no API server is asked.
"""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from podium.estimator.division.bindings import ClusterAffinityTerm, Placement, ReplicaSchedulingStrategy
from podium.estimator.errors import EstimateError

_FIELDS = ("cluster", "region", "zone", "provider")
_TYPES = ("Duplicated", "Divided")
_PREFERENCES = ("Aggregated", "Weighted")


def admitted_placement(placement: Placement) -> Placement:
    """Return the placement with its defaults.

    Raises:
        EstimateError: the webhook would refuse it.
    """
    constraints = tuple(
        replace(
            constraint,
            spread_by_field=constraint.spread_by_field or ("" if constraint.spread_by_label else "cluster"),
            min_groups=constraint.min_groups or 1,
        )
        for constraint in placement.spread_constraints
    )
    strategy = placement.replica_scheduling
    if strategy is not None:
        scheduling_type = strategy.replica_scheduling_type or "Divided"
        preference = strategy.replica_division_preference
        if scheduling_type == "Divided" and not preference:
            preference = "Weighted"
        strategy = replace(strategy, replica_scheduling_type=scheduling_type, replica_division_preference=preference)
    placement = replace(placement, spread_constraints=constraints, replica_scheduling=strategy)
    _demand_valid_constraints(placement)
    if strategy is not None:
        _demand_valid_strategy(strategy)
    _demand_valid_groups(placement)
    return placement


def _demand_valid_constraints(placement: Placement) -> None:
    path = "placement.spreadConstraints"
    for index, constraint in enumerate(placement.spread_constraints):
        if constraint.spread_by_field and constraint.spread_by_label:
            raise EstimateError(f"{path}[{index}]: spreadByLabel should not co-exist with spreadByField")
        if constraint.spread_by_field and constraint.spread_by_field not in _FIELDS:
            raise EstimateError(f"{path}[{index}].spreadByField: expected one of {', '.join(_FIELDS)}")
        if constraint.min_groups < 0 or constraint.max_groups < 0:
            raise EstimateError(f"{path}[{index}]: minGroups and maxGroups must not be negative")
        if 0 < constraint.max_groups < constraint.min_groups:
            raise EstimateError(f"{path}[{index}]: maxGroups must not be less than minGroups")
    # Upstream's scheduler would take the last of several, and select nothing without one by cluster.
    counts = Counter(item.spread_by_field for item in placement.spread_constraints if item.spread_by_field)
    for field, count in counts.items():
        if count > 1:
            raise EstimateError(f"{path}: several constraints by {field}")
    if counts and "cluster" not in counts:
        raise EstimateError(f"{path}: a constraint by cluster is required beside those by other fields")


def _demand_valid_strategy(strategy: ReplicaSchedulingStrategy) -> None:
    path = "placement.replicaScheduling"
    if strategy.replica_scheduling_type not in _TYPES:
        raise EstimateError(f"{path}.replicaSchedulingType: expected one of {', '.join(_TYPES)}")
    preference = strategy.replica_division_preference
    if preference and preference not in _PREFERENCES:
        raise EstimateError(f"{path}.replicaDivisionPreference: expected one of {', '.join(_PREFERENCES)}")
    weights = strategy.weight_preference
    if weights is None:
        return
    if weights.dynamic_weight not in ("", "AvailableReplicas"):
        raise EstimateError(f"{path}.weightPreference.dynamicWeight: expected AvailableReplicas")
    for index, rule in enumerate(weights.static_weight_list):
        if rule.weight < 1:
            raise EstimateError(f"{path}.weightPreference.staticWeightList[{index}].weight: must be at least 1")


def _demand_valid_groups(placement: Placement) -> None:
    terms: tuple[ClusterAffinityTerm, ...] = placement.cluster_affinities
    if terms and placement.cluster_affinity is not None:
        raise EstimateError("placement.clusterAffinities: must not be combined with clusterAffinity")
    strategy = placement.replica_scheduling
    weights = strategy.weight_preference if strategy is not None else None
    can_overflow = (
        strategy is not None
        and strategy.replica_scheduling_type == "Divided"
        and (
            strategy.replica_division_preference == "Aggregated"
            or (weights is not None and bool(weights.dynamic_weight))
        )
    )
    if not can_overflow and any(term.overflow_affinities is not None for term in terms):
        raise EstimateError(
            "placement.clusterAffinities: overflowAffinities need dynamic weights or the preference Aggregated"
        )
    names = [term.affinity_name for term in terms]
    for index, name in enumerate(names):
        if not name:
            raise EstimateError(f"placement.clusterAffinities[{index}].affinityName: Required value")
        if name in names[:index]:
            raise EstimateError(f"placement.clusterAffinities[{index}].affinityName: {name} is given twice")
