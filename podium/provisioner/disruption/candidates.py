"""Candidates: the nodes that may be disrupted, what each costs, and what blocks the others.

Owns which nodes are candidates, and which of them consolidation considers. Never simulates where pods go.

Source: karpenter pkg/controllers/disruption/types.go (NewCandidate), consolidation.go (ShouldDisrupt) and
pkg/controllers/state/statenode.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from podium.objects.core import Pod
from podium.provisioner.apis.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ZONE
from podium.provisioner.apis.objects import BALANCED, WHEN_EMPTY, BudgetStatus, NodeClaim, NodePool
from podium.provisioner.cloudprovider.instance_types import InstanceType
from podium.provisioner.disruption.conditions import ClaimConditions
from podium.provisioner.provisioning.reasons import Reason
from podium.provisioner.state.costs import NODE_COST, removal_cost
from podium.provisioner.state.evictions import DO_NOT_DISRUPT, Evictions, is_active, is_reschedulable, lets_unready_go
from podium.provisioner.state.state_node import StateNode
from podium.provisioner.state.usable import node_fault


@dataclass(frozen=True, slots=True)
class Blocker:
    """A reason why a node is no candidate.

    Attributes:
        is_of_pods: Whether pods on it are the reason, which a NodeClaim with a `terminationGracePeriod` overrides.
        detail: What is behind the reason; empty if it says it all.
    """

    text: str
    is_of_pods: bool = False
    detail: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidate:
    """A node that may be disrupted.

    Attributes:
        instance_type: None if the catalogue does not have it.
        conditions: Those of its NodeClaim.
        pods: Those that are placed elsewhere when it goes.
        price: What it costs in an hour; 0 if that is not known.
        cost: What it costs to evict its pods, and 1 for the node.
    """

    state: StateNode
    pool: NodePool
    instance_type: InstanceType | None
    conditions: ClaimConditions
    pods: tuple[Pod, ...]
    price: float
    cost: float

    @property
    def name(self) -> str:
        """The node's name."""
        return self.state.name

    @property
    def pool_name(self) -> str:
        """The NodePool's name."""
        return self.pool.metadata.name

    @property
    def claim(self) -> NodeClaim:
        """The NodeClaim."""
        assert self.state.claim is not None
        return self.state.claim

    @property
    def capacity_type(self) -> str:
        """The capacity type; empty if it is not known."""
        return self.state.labels.get(CAPACITY_TYPE, "")

    @property
    def is_priced(self) -> bool:
        """Return True if `price` is known, and may be shown."""
        if self.instance_type is None:
            return False
        offering = self.instance_type.offering_of(self.state.labels.get(ZONE, ""), self.capacity_type)
        return offering is not None and offering.is_priced

    @property
    def savings_ratio(self) -> float:
        """The price for each unit of cost: the more, the better a candidate."""
        return self.price / self.cost

    @property
    def is_empty(self) -> bool:
        """Return True if no pod costs anything to evict. There may be pods."""
        # Not the number of pods: those with a strongly negative cost count as free to move, so such a node is empty for
        # upstream.
        return self.cost <= NODE_COST

    @property
    def is_balanced(self) -> bool:
        """Return True if the NodePool weighs what is saved against what is disrupted."""
        return self.pool.spec.disruption.consolidation_policy == BALANCED

    @property
    def goes_when_empty(self) -> bool:
        """Return True if the node goes as an empty one."""
        return self._may_be_consolidated and self.is_empty

    @property
    def has_drifted(self) -> bool:
        """Return True if the node is to be replaced because it has drifted."""
        return self.pool.spec.replicas is None and bool(self.conditions.drifted)

    @property
    def is_consolidatable(self) -> bool:
        """Return True if consolidation considers the node."""
        return self._may_be_consolidated and not self.is_empty and self.unfitness is None

    @property
    def unfitness(self) -> str | None:
        """The reason why consolidation never considers the node; None if it may, or if Karpenter gives no reason."""
        return next(self.unfitnesses(), None)

    @property
    def disabled_text(self) -> str:
        """The sentence that the NodePool never consolidates."""
        return Reason(
            f'NodePool "{self.pool_name}" has consolidation disabled',
            f"NodePool {self.pool_name} never lets nodes go (consolidateAfter: Never)",
        )

    def unfitnesses(self) -> Iterator[str]:
        """Yield everything that keeps consolidation from ever considering the node, as far as Karpenter reports it."""
        # Static NodePools keep their number of nodes, and Karpenter reports nothing about them.
        if self.pool.spec.replicas is not None:
            return
        labels = self.state.labels
        if self.instance_type is None:
            name = labels.get(INSTANCE_TYPE, "")
            yield Reason(f'Instance Type "{name}" not found', f"The catalogue does not have its instance type {name}")
        for label in (CAPACITY_TYPE, ZONE):
            if label not in labels:
                yield Reason(f'Node does not have label "{label}"', f"It lacks the label {label}")
        disruption = self.pool.spec.disruption
        if disruption.consolidate_after_s is None:
            yield self.disabled_text
        if disruption.consolidation_policy == WHEN_EMPTY and not self.is_empty:
            yield Reason(
                f'NodePool "{self.pool_name}" has consolidation policy WhenEmpty, but node is not empty',
                f"NodePool {self.pool_name} lets only empty nodes go (consolidationPolicy: WhenEmpty)",
            )

    @property
    def _may_be_consolidated(self) -> bool:
        return (
            self.pool.spec.replicas is None
            and self.pool.spec.disruption.consolidate_after_s is not None
            and self.conditions.is_consolidatable
        )


def names_of(candidates: Iterable[Candidate]) -> frozenset[str]:
    """Return the names of the candidates' Node objects."""
    return frozenset(candidate.state.node.metadata.name for candidate in candidates if candidate.state.node is not None)


class CandidateFinder:
    """Finds what blocks a node, and makes candidates of those that nothing blocks.

    Args:
        pods_on: gives all pods of a node.
        pools: the provider's NodePools, by name.
        conditions: those of the NodeClaims, by name.
        reads_deletion_cost: whether a pod's `pod-deletion-cost` counts where it has no `disruption-cost`.
        closed_pools: by NodePool that cannot be read, why.
        left_out: by node that no plan may remove, why.
    """

    def __init__(
        self,
        pods_on: Callable[[StateNode], Sequence[Pod]],
        pools: Mapping[str, NodePool],
        instance_types: Sequence[InstanceType],
        conditions: Mapping[str, ClaimConditions],
        evictions: Evictions,
        *,
        reads_deletion_cost: bool = True,
        closed_pools: Mapping[str, str] = MappingProxyType({}),
        left_out: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._closed_pools = closed_pools
        self._left_out = left_out
        self._pods_on = pods_on
        # Upstream indexes NodePools by their instance types, so without any type no NodePool is found.
        self._pools = pools if instance_types else {}
        # Of several with one name, the last counts, as upstream.
        self._types = {instance_type.name: instance_type for instance_type in instance_types}
        # NodeOverlays may make one instance type another for each NodePool.
        self._types_of_pools = {
            (pool, instance_type.name): instance_type
            for instance_type in instance_types
            for pool in instance_type.requirements.get(NODE_POOL).values
        }
        self._conditions = conditions
        self._evictions = evictions
        self._reads_deletion_cost = reads_deletion_cost

    def _type_of(self, labels: Mapping[str, str]) -> InstanceType | None:
        name = labels.get(INSTANCE_TYPE, "")
        return self._types_of_pools.get((labels.get(NODE_POOL, ""), name)) or self._types.get(name)

    def candidate(self, state: StateNode, *, is_eventual: bool = False) -> Candidate | None:
        """Return the node as a candidate, or None if it is blocked, or if it is not managed.

        Args:
            is_eventual: whether pods do not block a node whose NodeClaim has a `terminationGracePeriod`.
        """
        claim = state.claim
        if claim is None:
            return None
        # With a terminationGracePeriod pods cannot hold the node for ever, so drift does not wait for them.
        ignores_pods = is_eventual and claim.spec.termination_grace_period is not None
        if any(not (ignores_pods and blocker.is_of_pods) for blocker in self.blockers(state)):
            return None
        pods = tuple(pod for pod in self._pods_on(state) if is_reschedulable(pod))
        labels = state.labels
        instance_type = self._type_of(labels)
        return Candidate(
            state=state,
            pool=self._pools[labels[NODE_POOL]],
            instance_type=instance_type,
            conditions=self._conditions.get(claim.metadata.name, ClaimConditions()),
            pods=pods,
            # An offering that is gone has the price 0: the node can be deleted, but nothing is cheaper than it.
            price=instance_type.price_of(labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, "")) if instance_type else 0.0,
            cost=removal_cost(pods, reads_deletion_cost=self._reads_deletion_cost),
        )

    def blockers(self, state: StateNode) -> Iterator[Blocker]:
        """Yield everything that keeps the node from being a candidate; Karpenter reports the first."""
        if state.name in self._left_out:
            yield Blocker(self._left_out[state.name])
            return
        if state.claim is None:
            yield Blocker(Reason("Node isn't managed by karpenter", "It belongs to no NodeClaim"))
            return
        # The label decides nothing here: a node is managed if it has a NodeClaim. Without a Node there is nothing more
        # to ask.
        if state.node is None:
            yield Blocker(Reason("Nodeclaim does not have an associated node", "It has not joined the cluster yet"))
            return
        if state.is_rebooting:
            yield Blocker(Reason("Node is rebooting", "It reboots"))
        if state.is_leaving:
            yield Blocker(Reason("Node is deleting or marked for deletion", "It is going already"))
        if not state.is_initialized:
            karpenters = "Node isn't initialized" if state.is_registered else "Node isn't initialized nor registered"
            yield Blocker(Reason(karpenters, "It has joined and is not ready for pods yet"))
        # Exactly "true", while on pods a duration counts, too: upstream does not read one on nodes.
        if state.annotations.get(DO_NOT_DISRUPT) == "true":
            karpenters = f'Disruption is blocked through the "{DO_NOT_DISRUPT}" annotation'
            yield Blocker(Reason(karpenters, f"Its annotation {DO_NOT_DISRUPT} keeps it"))
        pool = state.labels.get(NODE_POOL)
        if pool is None:
            karpenters = f"Node doesn't have required label (label={NODE_POOL})"
            yield Blocker(Reason(karpenters, f"It lacks the label {NODE_POOL}"))
        elif pool in self._closed_pools:
            text = f"NodePool {pool} cannot be used ({self._closed_pools[pool]})"
            yield Blocker(Reason(f"NodePool not found (NodePool={pool}): {text}", text))
        elif pool not in self._pools:
            yield Blocker(Reason(f"NodePool not found (NodePool={pool})", f"There is no NodePool {pool}"))
        fault = node_fault(state.node, self._pods_on(state))
        if fault is not None:
            # Not of the pods: not even a terminationGracePeriod says where such a pod could go.
            yield Blocker(f"{fault} cannot be judged")
        yield from self._pod_blockers(self._pods_on(state))

    def _pod_blockers(self, pods: Sequence[Pod]) -> Iterator[Blocker]:
        for pod in pods:
            if is_active(pod) and self._evictions.is_protected(pod):
                karpenters = f'Pod has "{DO_NOT_DISRUPT}" annotation (Pod={pod.key})'
                podium_words = f"The annotation {DO_NOT_DISRUPT} of pod {pod.key} keeps it"
                yield Blocker(Reason(karpenters, podium_words), is_of_pods=True)
        # Only after all annotations: Karpenter reports the first blocker, and it looks at budgets last.
        for pod in pods:
            blocker = self._budget_blocker(pod)
            if blocker is not None:
                yield blocker

    def _budget_blocker(self, pod: Pod) -> Blocker | None:
        if not self._evictions.is_evictable(pod):
            return None
        budgets = self._evictions.budgets_of(pod)
        # The eviction API answers 500 where several budgets select one pod, so such a pod can never be evicted.
        if len(budgets) > 1:
            keys = [budget.key for budget in budgets]
            text = Reason(
                f"Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{' '.join(keys)}])",
                f"Pod {pod.key} has several PodDisruptionBudgets and cannot be evicted: {', '.join(keys)}",
            )
            return Blocker(text, is_of_pods=True)
        for budget in budgets:
            if budget.status.disruptions_allowed == 0 and not lets_unready_go(budget, pod):
                text = Reason(
                    f"Pdb prevents pod evictions (PodDisruptionBudget=[{budget.key}])",
                    f"PodDisruptionBudget {budget.key} lets none of its pods be evicted now",
                )
                return Blocker(text, is_of_pods=True, detail=_health_text(budget.status))
        return None


def _health_text(status: BudgetStatus) -> str:
    """Return that pods are not ready, where that is why a budget lets none go; else nothing."""
    unready = status.expected_pods - status.current_healthy
    if unready <= 0:
        return ""
    return f"{unready} of its {status.expected_pods} pods are not ready, and {status.desired_healthy} have to be"
