"""Several passes of Karpenter's provisioner, one after the other, as its loop makes them: what a plan comes to.

Owns when there is another pass. One pass buys nodes for the pods that it can place with what it knows; what is bought
is launched in one zone, which the next pass knows. Three replicas that may not share a zone take three passes.

Differs: every pod is taken as bound, and every node as ready, before the next pass.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Pod
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.provisioning.launched import launched_claim, launched_node
from podium.provisioner.provisioning.launching import with_candidates, within_node_limits
from podium.provisioner.provisioning.plan import NodePlan, Plan, Unschedulable
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.provisioner import provision
from podium.provisioner.scheduling.amounts import requests_of, total

PASSES_MAX: Final = 100
"""How many passes a plan has at most: each places a pod, and nobody reads further."""


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """The passes of a plan.

    Attributes:
        total: The plan that they come to: all nodes, each with the pods that it has in the end.
        numbers: By node of it, in which pass it is bought; the first is 1.
        plans: Each pass by itself.
    """

    total: Plan
    numbers: tuple[int, ...]
    plans: tuple[Plan, ...]

    @property
    def count(self) -> int:
        """How many passes place pods. After the last of them there may be one that finds no further place."""
        return sum(1 for plan in self.plans if plan.nodes or plan.existing)


def plan_passes(basis: PlanBasis, now_s: float, limit: TimeLimit = UNLIMITED, passes_max: int = PASSES_MAX) -> Passes:
    """Plan all pods that wait, and those of nodes that are leaving, until no pass places a further pod.

    Args:
        now_s: the time, in seconds since the epoch.
        limit: when to end with the pods planned by then.

    Raises:
        FieldError: an object has a value that has no meaning.
    """
    plans: list[Plan] = []
    taken_names = {item.metadata.name for item in (*basis.objects.nodes, *basis.objects.node_claims)}
    names = (name for number in itertools.count(1) if (name := f"new-{number}") not in taken_names)
    while True:
        plan = provision(basis, now_s, limit)
        if plans:
            # Before each creation Karpenter looks at the limit of nodes, which no instance type has.
            plan = _within_limits(basis, plan)
        named_nodes = tuple(replace(node, name=next(names)) for node in plan.nodes)
        plans.append(replace(plan, nodes=named_nodes))
        is_last = not plan.unschedulable or not (plan.nodes or plan.existing) or len(plans) >= passes_max
        if is_last or limit.is_noticed:
            return _passes(plans)
        basis = basis.with_nodes_of(_objects_after(basis, plans[-1]))


def _within_limits(basis: PlanBasis, plan: Plan) -> Plan:
    nodes = within_node_limits(basis, plan.nodes)
    staying = {
        pod.key: Unschedulable(pod, f"node limits have been exhausted for nodepool (NodePool={node.pool})")
        for node in plan.nodes
        if node not in nodes
        for pod in node.pods
    }
    return replace(plan, nodes=nodes, unschedulable={**plan.unschedulable, **staying})


def _objects_after(basis: PlanBasis, plan: Plan) -> ClusterObjects:
    """Return the cluster with the nodes of a pass, and its pods on their nodes."""
    # As its cheapest type, in its cheapest zone: the next pass has to know one.
    launched = tuple(with_candidates(basis, plan.nodes))
    places = {pod.uid: name for name, pods in plan.existing.items() for pod in pods}
    places |= {pod.uid: node.name for node in launched for pod in node.pods}
    objects = basis.objects
    return replace(
        objects,
        nodes=(*objects.nodes, *map(launched_node, launched)),
        node_claims=(*objects.node_claims, *map(launched_claim, launched)),
        pods=tuple(pod.on_node(places[pod.uid]) if pod.uid in places else pod for pod in objects.pods),
    )


def _passes(plans: Sequence[Plan]) -> Passes:
    # Later passes place pods on nodes of earlier ones, which are no nodes that were there.
    numbered_nodes = [(number, node) for number, plan in enumerate(plans, 1) for node in plan.nodes]
    bought_names = {node.name for _, node in numbered_nodes}
    arrivals: dict[str, tuple[Pod, ...]] = {}
    for plan in plans:
        for name, pods in plan.existing.items():
            arrivals[name] = (*arrivals.get(name, ()), *pods)
    sum_of_passes = replace(
        plans[0],
        nodes=tuple(_with_pods(node, arrivals.get(node.name, ())) for _, node in numbered_nodes),
        existing={name: pods for name, pods in arrivals.items() if name not in bought_names},
        unschedulable=plans[-1].unschedulable,
    )
    return Passes(sum_of_passes, tuple(number for number, _ in numbered_nodes), tuple(plans))


def _with_pods(node: NodePlan, pods: Iterable[Pod]) -> NodePlan:
    """Return the node with the pods that later passes place there, too."""
    pods = tuple(pods)
    if not pods:
        return node
    return replace(node, pods=(*node.pods, *pods), requests=total(node.requests, *map(requests_of, pods)))
