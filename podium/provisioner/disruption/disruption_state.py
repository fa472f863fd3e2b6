"""A cluster at a time, as the methods of disruption see it: candidates, blockers, budgets, and what would follow.

Owns nothing of its own: it puts the parts together that belong to one time.

Source: karpenter pkg/controllers/disruption/helpers.go (GetCandidatesWithTotals, BuildDisruptionBudgetMapping),
v1.15.0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeAlias

from podium.provisioner.apis.budgets import UNLIMITED, DisruptionBudgets, DisruptionReason, PoolNode
from podium.provisioner.apis.labels import NODE_POOL
from podium.provisioner.apis.objects import ClusterObjects, is_true
from podium.provisioner.cloudprovider.catalogue import Catalogue
from podium.provisioner.disruption.balance import Balance
from podium.provisioner.disruption.candidates import Blocker, Candidate, CandidateFinder
from podium.provisioner.disruption.conditions import ClaimConditions, conditions_of
from podium.provisioner.disruption.consolidation import Consolidation
from podium.provisioner.disruption.simulation import Simulator
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.templates import is_of_provider
from podium.provisioner.state.evictions import Evictions
from podium.provisioner.state.settings import Settings
from podium.provisioner.state.state_node import StateNode

MakeSimulator: TypeAlias = Callable[[PlanBasis, Evictions, float], Simulator]
"""Makes a simulator for a cluster, its PodDisruptionBudgets and the time."""


class DisruptionState:
    """The cluster at a time.

    Args:
        conditions: those of the NodeClaims, by name, which may be of another time.
        now_s: the time, in seconds since the epoch.
        fixed_nodes: the names of nodes that are never candidates.
        ignores_budgets: whether any number of nodes may be disrupted.
        make_simulator: makes what says where pods go; by default Karpenter's rules.
    """

    def __init__(
        self,
        basis: PlanBasis,
        conditions: Mapping[str, ClaimConditions],
        now_s: float,
        fixed_nodes: AbstractSet[str] = frozenset(),
        *,
        ignores_budgets: bool = False,
        make_simulator: MakeSimulator = Simulator,
    ) -> None:
        self.basis = basis
        self.conditions = conditions
        self.now_s = now_s
        self.fixed_nodes = fixed_nodes
        self._ignores_budgets = ignores_budgets
        self._make_simulator = make_simulator
        self._evictions = Evictions(basis.objects.budgets, now_s)
        self._pools = {
            pool.metadata.name: pool
            for pool in basis.objects.node_pools
            if is_of_provider(pool.spec.template.spec.node_class_ref, basis.settings.node_class)
        }
        self._finder = CandidateFinder(
            basis.pods_on,
            self._pools,
            basis.catalogue.instance_types,
            conditions,
            self._evictions,
            reads_deletion_cost=basis.settings.reads_deletion_cost,
            closed_pools=basis.objects.closed_pools,
            left_out=basis.objects.left_out,
        )

    @classmethod
    def of(
        cls,
        objects: ClusterObjects,
        catalogue: Catalogue,
        settings: Settings,
        now_s: float,
        make_simulator: MakeSimulator = Simulator,
    ) -> DisruptionState:
        """Return the state of a cluster with the conditions that Karpenter would set now.

        Args:
            now_s: the time, in seconds since the epoch.
            make_simulator: makes what says where pods go; by default Karpenter's rules.

        Raises:
            FieldError: an object has a value that has no meaning.
        """
        conditions = conditions_of(objects.node_claims, objects.node_pools, catalogue, now_s, settings.node_class)
        return cls(PlanBasis(objects, catalogue, settings), conditions, now_s, make_simulator=make_simulator)

    def later(self, seconds: float) -> DisruptionState:
        """Return the same cluster some time later, with the conditions of now."""
        return self._like(self.basis, self.now_s + seconds, self.fixed_nodes)

    def with_objects(self, objects: ClusterObjects, fixed_nodes: AbstractSet[str]) -> DisruptionState:
        """Return the same time with other nodes, NodeClaims and pods."""
        return self._like(self.basis.with_nodes_of(objects), self.now_s, fixed_nodes)

    def without_budgets(self) -> DisruptionState:
        """Return the same state, where any number of nodes may be disrupted."""
        return self._like(self.basis, self.now_s, self.fixed_nodes, ignores_budgets=True)

    def _like(
        self, basis: PlanBasis, now_s: float, fixed_nodes: AbstractSet[str], *, ignores_budgets: bool = False
    ) -> DisruptionState:
        return DisruptionState(
            basis,
            self.conditions,
            now_s,
            fixed_nodes,
            ignores_budgets=ignores_budgets or self._ignores_budgets,
            make_simulator=self._make_simulator,
        )

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The nodes that nothing blocks, in order of name."""
        candidates = (self._finder.candidate(node) for node in self.basis.nodes if node.name not in self.fixed_nodes)
        return tuple(candidate for candidate in candidates if candidate is not None)

    @cached_property
    def drift_candidates(self) -> tuple[Candidate, ...]:
        """The nodes that have drifted and that nothing blocks for good, in order of name."""
        # Not without `fixed_nodes`: a node that a plan has just bought cannot have drifted.
        candidates = (self._finder.candidate(node, is_eventual=True) for node in self.basis.nodes)
        return tuple(candidate for candidate in candidates if candidate is not None and candidate.has_drifted)

    @cached_property
    def consolidatable(self) -> tuple[Candidate, ...]:
        """The candidates that consolidation considers, the best savings first, then by name."""
        return by_savings(candidate for candidate in self.candidates if candidate.is_consolidatable)

    @cached_property
    def simulator(self) -> Simulator:
        """Simulates the cluster without some of its nodes."""
        return self._make_simulator(self.basis, self._evictions, self.now_s)

    @cached_property
    def consolidation(self) -> Consolidation:
        """Finds whether nodes can go together."""
        return Consolidation(self.basis, self.simulator)

    @cached_property
    def balance(self) -> Balance:
        """Judges commands for NodePools with the policy Balanced."""
        return Balance.of(self.basis, self.candidates)

    def blockers(self) -> dict[str, tuple[Blocker, ...]]:
        """Return what keeps managed nodes from being candidates, by the name of the node or of its NodeClaim."""
        by_name = {_shown_name(node): self.blockers_of(node) for node in self.basis.nodes if node.claim}
        return {name: blockers for name, blockers in by_name.items() if blockers}

    def blockers_of(self, state: StateNode) -> tuple[Blocker, ...]:
        """Return everything that keeps the node from being a candidate."""
        return tuple(self._finder.blockers(state))

    def budgets(self, reason: DisruptionReason) -> dict[str, int]:
        """Return the number of nodes of each NodePool that may be disrupted for this reason."""
        if self._ignores_budgets:
            # Only for a report of what budgets keep from happening.
            return dict.fromkeys(self._pools, UNLIMITED)
        moment = datetime.fromtimestamp(self.now_s, UTC)
        return {
            name: DisruptionBudgets.parse(pool.spec.disruption.budgets).remaining(
                reason, self._pool_nodes[name], moment
            )
            for name, pool in self._pools.items()
        }

    @cached_property
    def _pool_nodes(self) -> Mapping[str, list[PoolNode]]:
        nodes: dict[str, list[PoolNode]] = defaultdict(list)
        for node in self.basis.nodes:
            nodes[node.labels.get(NODE_POOL, "")].append(_pool_node(node))
        return nodes


def by_savings(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates by savings ratio, the best first, then by name."""
    # Upstream's sort is not stable; names decide where ratios are equal.
    return tuple(sorted(candidates, key=lambda candidate: (-candidate.savings_ratio, candidate.name)))


def _shown_name(state: StateNode) -> str:
    return state.node.metadata.name if state.node is not None else state.name


def _pool_node(state: StateNode) -> PoolNode:
    conditions = state.node.status.conditions if state.node is not None else ()
    return PoolNode(
        managed=state.claim is not None,
        initialized=state.is_initialized,
        ready=any(condition.type == "Ready" and condition.status == "True" for condition in conditions),
        rebooting=state.is_rebooting,
        marked_for_deletion=state.is_leaving,
        instance_terminating=state.claim is not None and is_true(state.claim.status.conditions, "InstanceTerminating"),
    )
