"""The policy Balanced: nodes go only if the share of costs that is saved is worth the share of pods that move.

Owns the totals of a NodePool and the comparison.

Source: karpenter pkg/controllers/disruption/balanced.go and pkg/state/cost/cost.go, v1.15.0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from podium.provisioner.apis.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ZONE
from podium.provisioner.disruption.candidates import Candidate
from podium.provisioner.disruption.conditions import first_named
from podium.provisioner.disruption.consolidation import Command
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.state.costs import removal_cost, sum_in_order
from podium.provisioner.state.state_node import StateNode
from podium.provisioner.state.validation import is_owned_by_daemon_set

SCORE_MIN: Final = 0.5
"""What the share of savings must be of the share of disruption, at least."""

_PRICED_BY: Final = (NODE_POOL, INSTANCE_TYPE, ZONE, CAPACITY_TYPE)


@dataclass(frozen=True, slots=True)
class PoolTotals:
    """All nodes of a NodePool together.

    Attributes:
        price: What they cost in an hour.
        cost: What it costs to evict all of their pods, and 1 for each node.
    """

    price: float
    cost: float


class Balance:
    """Judges commands by the totals of the NodePools that have the policy."""

    def __init__(self, totals: Mapping[str, PoolTotals], well_known: frozenset[str]) -> None:
        self._totals = totals
        self._well_known = well_known

    @classmethod
    def of(cls, basis: PlanBasis, candidates: Sequence[Candidate]) -> Balance:
        """Return the balance of a cluster with these candidates."""
        prices = _prices(basis)
        costs: dict[str, float] = {}
        # A candidate's cost is known already; the others' pods still count, since they would be disturbed as well.
        candidate_costs = {candidate.name: candidate.cost for candidate in candidates}
        for state in basis.nodes:
            pool = state.labels.get(NODE_POOL)
            if pool is not None:
                cost = candidate_costs[state.name] if state.name in candidate_costs else _other_cost(basis, state)
                costs[pool] = costs.get(pool, 0.0) + cost
        pools = {candidate.pool_name for candidate in candidates}
        return cls(
            # Without a price of any NodeClaim, upstream falls back to the candidates alone rather than divide by 0.
            {pool: PoolTotals(prices.get(pool) or _sum_of(candidates, pool), costs[pool]) for pool in pools},
            basis.well_known,
        )

    def approves(self, command: Command) -> bool:
        """Return True if every NodePool with the policy agrees. Savings are shared by the prices of leaving nodes."""
        savings, price = command.savings(self._well_known), command.price
        pools: dict[str, list[Candidate]] = {}
        for candidate in command.candidates:
            pools.setdefault(candidate.pool_name, []).append(candidate)
        for name, candidates in pools.items():
            if not candidates[0].is_balanced:
                continue
            share = savings
            # The saving of a command over several NodePools has no owner. Upstream shares it out by what each pays now.
            if len(pools) > 1 and price > 0:
                share = savings * (_sum_of(candidates, name) / price)
            if self._score(name, share, sum_in_order(candidate.cost for candidate in candidates)) < SCORE_MIN:
                return False
        return True

    def may_approve(self, candidate: Candidate) -> bool:
        # A lower bound that needs no simulation: a replacement only ever makes the saving smaller.
        """Return True if the candidate could be removed if nothing had to take its place."""
        totals = self._totals.get(candidate.pool_name)
        if not candidate.is_balanced or totals is None or totals.price <= 0:
            return True
        return self._score(candidate.pool_name, candidate.price, candidate.cost) >= SCORE_MIN

    def _score(self, pool: str, savings: float, cost: float) -> float:
        totals = self._totals.get(pool)
        if totals is None or totals.price <= 0 or totals.cost <= 0 or savings <= 0:
            return 0.0
        return score(savings, cost, totals)


def score(savings: float, cost: float, totals: PoolTotals) -> float:
    """Return the share of the costs that is saved, for each share of the disruption."""
    disruption = cost / totals.cost
    return savings / totals.price / disruption if disruption else math.inf


def _prices(basis: PlanBasis) -> Mapping[str, float]:
    """Return the price of the NodeClaims of each NodePool, as far as their labels say it."""
    prices: dict[str, float] = {}
    # Of NodeClaims, not nodes: a machine that has not joined yet costs money already.
    for claim in basis.objects.node_claims:
        labels = claim.metadata.labels
        if all(key in labels for key in _PRICED_BY):
            instance_type = first_named(basis.catalogue.instance_types, labels[INSTANCE_TYPE])
            price = instance_type.price_of(labels[ZONE], labels[CAPACITY_TYPE]) if instance_type is not None else 0.0
            prices[labels[NODE_POOL]] = prices.get(labels[NODE_POOL], 0.0) + price
    return prices


def _other_cost(basis: PlanBasis, state: StateNode) -> float:
    """Return the cost of a node that is no candidate: of all its pods but those of DaemonSets."""
    pods = (pod for pod in state.pods if not is_owned_by_daemon_set(pod))
    return removal_cost(pods, reads_deletion_cost=basis.settings.reads_deletion_cost)


def _sum_of(candidates: Iterable[Candidate], pool: str) -> float:
    return sum_in_order(candidate.price for candidate in candidates if candidate.pool_name == pool)
