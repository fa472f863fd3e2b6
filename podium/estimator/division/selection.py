"""Selects clusters by spread constraints.

Source: karmada pkg/scheduler/core/spreadconstraint/select_clusters*.go, v1.18.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from podium.estimator.division.bindings import BindingSpec, Placement, SpreadConstraint
from podium.estimator.division.candidates import Candidate
from podium.estimator.division.errors import DivisionError
from podium.estimator.division.groups import Group, best_groups

_WEIGHT_UNIT = 1000


def select_clusters(candidates: Sequence[Candidate], spec: BindingSpec, replicas: int) -> list[Candidate]:
    """Return the selected clusters, in the order in which they were selected.

    Args:
        candidates: the best first.
        replicas: how many the selected clusters must have available together, unless all get all replicas.

    Raises:
        DivisionError: the constraints cannot be met.
    """
    placement = spec.rules
    if not placement.spread_constraints or constraints_are_ignored(placement):
        return list(candidates)
    cluster_constraint = placement.constraint_by("cluster")
    region_constraint = placement.constraint_by("region")
    if region_constraint is not None:
        return _select_by_region(candidates, spec, region_constraint, cluster_constraint or SpreadConstraint())
    if cluster_constraint is None:
        raise DivisionError("just support cluster and region spread constraint")
    return _select_by_cluster(candidates, cluster_constraint, None if placement.is_duplicated else replicas)


def constraints_are_ignored(placement: Placement) -> bool:
    """Return True if the division by static weights goes to all clusters, whatever the constraints say."""
    strategy = placement.replica_scheduling
    if strategy is None or strategy.replica_scheduling_type != "Divided":
        return False
    weights = strategy.weight_preference
    return strategy.replica_division_preference == "Weighted" and (
        weights is None or (bool(weights.static_weight_list) and not weights.dynamic_weight)
    )


def _select_by_cluster(
    candidates: Sequence[Candidate], constraint: SpreadConstraint, replicas: int | None
) -> list[Candidate]:
    if len(candidates) < constraint.min_groups:
        raise DivisionError("the number of feasible clusters is less than spreadConstraint.MinGroups")
    # A maximum of 0 selects nothing; it does not mean that there is no limit.
    count = min(len(candidates), max(0, constraint.max_groups))
    selection, reserve = list(candidates[:count]), list(candidates[count:])
    if replicas is None:
        return selection
    # Clusters are replaced from the last one on, until there are enough available replicas.
    place, total = count - 1, sum(candidate.available for candidate in selection)
    while total < replicas and place >= 0:
        largest = max(range(len(reserve)), key=lambda index: reserve[index].available, default=None)
        if largest is not None and reserve[largest].available > selection[place].available:
            total += reserve[largest].available - selection[place].available
            selection[place], reserve[largest] = reserve[largest], selection[place]
        place -= 1
    if total < replicas or not selection:
        raise DivisionError(f"no enough resource when selecting {count} clusters")
    return selection


def _select_by_region(
    candidates: Sequence[Candidate],
    spec: BindingSpec,
    region_constraint: SpreadConstraint,
    cluster_constraint: SpreadConstraint,
) -> list[Candidate]:
    regions: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if candidate.cluster.spec.region:
            regions.setdefault(candidate.cluster.spec.region, []).append(candidate)
    if len(regions) < region_constraint.min_groups:
        raise DivisionError("the number of feasible region is less than spreadConstraint.MinGroups")
    cluster_min = max(cluster_constraint.min_groups, region_constraint.min_groups)
    groups = [
        Group(name, len(members), _group_weight(members, spec, region_constraint.min_groups, cluster_min))
        for name, members in regions.items()
    ]
    names = [
        group.name
        for group in best_groups(
            groups, region_constraint.min_groups, region_constraint.max_groups, cluster_constraint.min_groups
        )
    ]
    if not names:
        raise DivisionError("the number of clusters is less than the cluster spreadConstraint.MinGroups")
    selection = [regions[name][0] for name in names]
    candidates_left = sorted(
        (candidate for name in names for candidate in regions[name][1:]), key=lambda candidate: candidate.rank
    )
    # More regions than clusters are allowed still give one cluster each.
    return selection + candidates_left[: max(0, cluster_constraint.max_groups - len(selection))]


def _group_weight(members: Sequence[Candidate], spec: BindingSpec, group_min: int, cluster_min: int) -> int:
    """Return the weight of a group of clusters: first by how much it has available, then by the clusters' scores.

    Args:
        group_min: how many groups share the replicas at least.
        cluster_min: from how many clusters on it is enough that they have those replicas.
    """
    if spec.rules.is_duplicated:
        scores = [member.score for member in members if member.available >= spec.replicas]
        return _WEIGHT_UNIT * len(scores) + sum(scores) // len(scores) if scores else 0
    if not group_min:
        raise DivisionError("spread constraint by region: minGroups must be greater than 0")
    share = ceil(spec.replicas / group_min)
    available = score = count = 0
    for count, member in enumerate(members, start=1):
        available += member.available
        score += member.score
        if count >= cluster_min and available >= share:
            break
    return _WEIGHT_UNIT * min(available, share) + score // count
