"""Feasible clusters with what selection and assignment compare them by.

Source: karmada pkg/scheduler/core/spreadconstraint/group_clusters.go and util.go, v1.18.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from podium.estimator.cluster_objects import Cluster
from podium.estimator.division.bindings import BindingSpec
from podium.estimator.division.cluster_selectors import ClusterMatcher, compile_affinity

_SCORE_OF_TARGET: Final = 100
_LAST_TIER: Final = 1000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A feasible cluster.

    Attributes:
        tier: 0 for the observed affinity group, and one more for each of its overflow groups.
        score: greater for a cluster of the previous result.
        allocatable: the replicas that the cluster takes beside those it has.
        available: with those it has.
    """

    cluster: Cluster
    tier: int
    score: int
    allocatable: int
    available: int

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.cluster.key

    @property
    def rank(self) -> tuple[int, int, int, str]:
        """The place in the order of preference, the best first."""
        return self.tier, -self.score, -self.available, self.name


def rank_candidates(
    clusters: Iterable[Cluster], spec: BindingSpec, group: str, available: Mapping[str, int]
) -> list[Candidate]:
    """Return the feasible clusters, the best first.

    Args:
        group: the name of the observed affinity group, or "".
        available: the replicas that each cluster takes beside those it has.
    """
    tiers = _tiers(spec, group)
    assigned: dict[str, int] = {}
    for target in spec.clusters:
        assigned.setdefault(target.name, target.replicas)
    candidates = [
        Candidate(
            cluster,
            next((tier for tier, matches in enumerate(tiers) if matches(cluster)), _LAST_TIER) if tiers else 0,
            _SCORE_OF_TARGET if cluster.key in assigned else 0,
            available[cluster.key],
            available[cluster.key] + assigned.get(cluster.key, 0),
        )
        for cluster in clusters
    ]
    return sorted(candidates, key=lambda candidate: candidate.rank)


def _tiers(spec: BindingSpec, group: str) -> list[ClusterMatcher]:
    """Return the tests of the observed affinity group and its overflow groups; none if there are no named groups."""
    if spec.rules.cluster_affinity is not None or not spec.rules.cluster_affinities:
        return []
    term = spec.rules.term_named(group)
    if term is None:
        return [lambda _: False]
    return [compile_affinity(affinity) for affinity in (term, *(term.overflow_affinities or ()))]
