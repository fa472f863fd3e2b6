"""Simulates where pods would go if some nodes went.

Owns which pods and which nodes are simulated. Decides nothing.

Source: karpenter pkg/controllers/disruption/helpers.go (SimulateScheduling), v1.15.0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from podium.provisioner.apis.labels import NODE_POOL
from podium.provisioner.disruption.broken_gangs import BrokenGang, broken_gang_warnings
from podium.provisioner.disruption.candidates import Candidate, names_of
from podium.provisioner.disruption.conditions import is_under_consolidate_after
from podium.provisioner.provisioning.plan import NodePlan, Plan, Unschedulable, plan_of
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.provisioner import pending_pods, pods_of_leaving
from podium.provisioner.provisioning.reasons import Reason
from podium.provisioner.provisioning.solve import Solver
from podium.provisioner.state.evictions import Evictions
from podium.provisioner.state.state_node import StateNode

STRANDED_SHOWN_MAX: Final = 5


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """The places of the pods after some nodes went.

    Attributes:
        plan: Where all of them would go, the waiting ones too.
        stranded: By pod, why it would find no place; waiting pods have none now, so they do not count.
    """

    plan: Plan
    stranded: Mapping[str, str]

    def stranded_text(self) -> Reason:
        """Return the sentence that pods would find no place, with the reasons of the first of them."""
        first_reasons = sorted(self.stranded.items())[:STRANDED_SHOWN_MAX]
        text = "not all pods would schedule, " + "".join(f"{pod} => {reason} " for pod, reason in first_reasons)
        podium_words = f"{len(self.stranded)} pods would find no other node: {'; '.join(map(': '.join, first_reasons))}"
        # As upstream, which also counts none.
        hidden_count = len(self.stranded) - STRANDED_SHOWN_MAX
        return Reason(f"{text} and {hidden_count} other(s)" if hidden_count >= 0 else text, podium_words)


class Simulator:
    """Simulates what is left of a cluster without some of its nodes.

    Args:
        now_s: the time, in seconds since the epoch.
    """

    def __init__(self, basis: PlanBasis, evictions: Evictions, now_s: float) -> None:
        self._basis = basis
        self._evictions = evictions
        self._pending, _ = pending_pods(basis)
        self._leaving = pods_of_leaving(basis, evictions)
        self._pending_keys = frozenset(pod.key for pod in self._pending)
        self._leaving_keys = frozenset(pod.key for pod in self._leaving)
        self._active = tuple(node for node in basis.nodes if not node.is_leaving)
        self._resting = self._find_resting(now_s)

    def without(
        self,
        candidates: Sequence[Candidate],
        *,
        is_consolidation: bool = False,
        is_strict: bool = False,
        credit: Mapping[str, int] | None = None,
    ) -> Simulation | None:
        """Simulate that the candidates go. Return None without a NodePool to buy from, which Karpenter calls a
        fault.

        Args:
            is_consolidation: whether nodes under `consolidateAfter` take no pods that run.
            is_strict: whether a pod that could use a reservation waits for it.
            credit: by reservation, places that become free.
        """
        basis = self._basis
        if not basis.pools:
            return None
        names = {candidate.name for candidate in candidates}
        # A pod that a budget blocks for good is left out, as upstream: the node may go while the pod is placed nowhere.
        moving = [
            pod for candidate in candidates for pod in candidate.pods if self._evictions.is_currently_reschedulable(pod)
        ]
        pods = [*self._pending, *moving, *self._leaving]
        solver = Solver(
            basis,
            nodes=[state for state in self._active if state.name not in names],
            pods=pods,
            is_strict=is_strict,
            credit=credit,
            resting=self._resting if is_consolidation else frozenset(),
        )
        results = solver.solve()
        plan = plan_of(results, pods, lower_min_values=basis.settings.lower_min_values)
        unschedulable = dict(plan.unschedulable)
        for node in results.existing:
            # The node may never join. Only pods of leaving nodes may count on it, since they have nowhere else to go.
            if not node.state.is_initialized:
                text = uninitialized_text(node.state)
                unschedulable.update(
                    (pod.key, Unschedulable(pod, text)) for pod in node.pods if pod.key not in self._leaving_keys
                )
        # A pod that waited before is no reason to keep a node.
        stranded = {key: stay.reason for key, stay in unschedulable.items() if key not in self._pending_keys}
        return Simulation(dataclasses.replace(plan, unschedulable=unschedulable), stranded)

    def broken_gangs(self, candidates: Sequence[Candidate]) -> Sequence[BrokenGang]:  # noqa: ARG002
        """Return the gangs that keep the candidates from going: none, by Karpenter's rules."""
        return ()

    def warnings(self, candidates: Sequence[Candidate], nodes: Iterable[NodePlan]) -> Iterator[str]:  # noqa: ARG002
        """Yield what is ignored or taken for granted when nodes take the place of the candidates, as sentences.

        By Karpenter's rules these are the gangs that break meanwhile, since it knows none.
        """
        return broken_gang_warnings(self._basis, names_of(candidates))

    def _find_resting(self, now_s: float) -> AbstractSet[str]:
        pools = {pool.metadata.name: pool for pool in self._basis.pools}
        resting_nodes: set[str] = set()
        for state in self._active:
            pool = pools.get(state.labels.get(NODE_POOL, ""))
            if state.claim is not None and pool is not None and is_under_consolidate_after(state.claim, pool, now_s):
                resting_nodes.add(state.name)
        return frozenset(resting_nodes)


def uninitialized_text(state: StateNode) -> Reason:
    """Return the reason that pods would go to a node that is not initialized yet."""
    parts = [f"nodeclaim/{state.claim.metadata.name}"] if state.claim is not None else []
    if state.node is not None:
        parts.append(f"node/{state.node.metadata.name}")
    karpenters = f"would schedule against uninitialized {', '.join(parts)}"
    return Reason(karpenters, f"would go to {state.name}, which has not joined the cluster or is not ready yet")
