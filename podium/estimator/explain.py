"""Explains how many replicas fit on each node, and what limits them."""

from __future__ import annotations

from dataclasses import dataclass

from podium.cluster import Snapshot
from podium.cluster.matching.taints import CORDONED, is_repelled
from podium.estimator.amounts import demands
from podium.estimator.claims import Claims
from podium.estimator.free_capacity import ClusterCapacity, fitting
from podium.estimator.requirements import Requirements
from podium.objects.core import Node, Toleration
from podium.objects.tolerations import is_tolerated, taint_text


@dataclass(frozen=True, slots=True)
class NodeEstimate:
    """The estimate for one node. `limit` is the resource that runs out first, or the reason why no replica fits."""

    node: str
    replicas: int
    limit: str


def explain_nodes(snapshot: Snapshot, claims: Claims, requirements: Requirements | None) -> list[NodeEstimate]:
    """Return the estimates for all nodes, in the estimator's node order.

    Cost: one pass over the nodes in Python.

    Raises:
        FieldError: an amount cannot be read.
    """
    capacity = ClusterCapacity(snapshot, claims)
    needs = demands(requirements.resource_request) if requirements is not None else ()
    claim = requirements.node_claim if requirements is not None else None
    compiled_claim = claims.compile_claim(claim)
    rows = snapshot.order
    matching, tolerated_nodes = (
        compiled_claim.matching_nodes(snapshot, rows),
        compiled_claim.tolerated_nodes(snapshot, rows),
    )
    counts = fitting(capacity, needs, claim).tolist()
    bounds = {"pods": capacity.free_pods().tolist()}
    bounds |= {resource: (capacity.free(resource) // amount).tolist() for resource, amount in needs}
    tolerations = claim.tolerations if claim is not None else ()
    estimates = []
    for place, row in enumerate(rows.tolist()):
        node = snapshot.nodes[row]
        assert node is not None
        if not tolerated_nodes[place]:
            limit = _repelling(node, tolerations)
        elif not matching[place]:
            limit = "affinity"
        else:
            limit = min(bounds, key=lambda name: bounds[name][place])
        estimates.append(NodeEstimate(node.name, counts[place], limit))
    return estimates


def _repelling(node: Node, tolerations: tuple[Toleration, ...]) -> str:
    if node.spec.unschedulable and not is_tolerated(tolerations, CORDONED):
        return "cordoned"
    return next(f"taint {taint_text(taint)}" for taint in node.spec.taints if is_repelled(tolerations, (taint,)))
