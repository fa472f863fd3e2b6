"""How many replicas fit on each node, and what limits them."""

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


def explained(snapshot: Snapshot, claims: Claims, requirements: Requirements | None) -> list[NodeEstimate]:
    """The estimates for all nodes, in the estimator's node order.

    Cost: one pass over the nodes in Python.

    Raises:
        FieldError: an amount cannot be read.
    """
    capacity = ClusterCapacity(snapshot, claims)
    wanted = demands(requirements.resource_request) if requirements is not None else ()
    claim = requirements.node_claim if requirements is not None else None
    compiled = claims.compiled(claim)
    rows = snapshot.order
    matched, tolerated = compiled.matched(snapshot, rows), compiled.tolerated(snapshot, rows)
    counts = fitting(capacity, wanted, claim).tolist()
    bounds = {"pods": capacity.free_pods().tolist()}
    bounds |= {resource: (capacity.free(resource) // amount).tolist() for resource, amount in wanted}
    tolerations = claim.tolerations if claim is not None else ()
    found = []
    for place, row in enumerate(rows.tolist()):
        node = snapshot.nodes[row]
        assert node is not None
        if not tolerated[place]:
            limit = _repelling(node, tolerations)
        elif not matched[place]:
            limit = "affinity"
        else:
            limit = min(bounds, key=lambda name: bounds[name][place])
        found.append(NodeEstimate(node.name, counts[place], limit))
    return found


def _repelling(node: Node, tolerations: tuple[Toleration, ...]) -> str:
    if node.spec.unschedulable and not is_tolerated(tolerations, CORDONED):
        return "cordoned"
    return next(f"taint {taint_text(taint)}" for taint in node.spec.taints if is_repelled(tolerations, (taint,)))
