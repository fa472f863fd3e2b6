"""The free capacity of the nodes, and which nodes a replica may run on.

Owns the arithmetic of one question: how many replicas fit on each node. Placed replicas are subtracted from the
question's own arrays, never from the cluster.

Shape: every array has one entry per node, in the estimator's node order.
Units: millicores of cpu, bytes of memory and storage, counts of any other resource.
Source: karmada pkg/estimator/server/framework/plugins/noderesource/noderesource.go, v1.18.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np

from podium.cluster import IntArray, Snapshot
from podium.cluster.snapshot import BoolArray
from podium.estimator.amounts import Demand
from podium.estimator.claims import Claims, CompiledClaim
from podium.estimator.requirements import NodeClaim

NOTHING: Final = np.int64(0)
# Callers choose the resource names, so the cache needs a limit.
_RESOURCES_KEPT_MAX: Final = 64
_CLAIMS_KEPT_MAX: Final = 256


class FreeCapacity(Protocol):
    """The free capacity of a list of nodes."""

    def free_pods(self) -> IntArray:
        """Return how many more pods each node takes."""
        ...

    def free(self, resource: str) -> IntArray:
        """Return the free amount of the resource on each node; zeros if no node has the resource."""
        ...

    def allowed_nodes(self, claim: NodeClaim | None) -> BoolArray:
        """Return which nodes a replica with that claim may run on."""
        ...


class ClusterCapacity:
    """The free capacity of a cluster's nodes in one snapshot. Results are kept for the next question.

    Args:
        snapshot: must not change while this object is in use.
        claims: the cache of compiled claims.
    """

    def __init__(self, snapshot: Snapshot, claims: Claims) -> None:
        self._snapshot = snapshot
        self._claims = claims
        self._free_pods: IntArray | None = None
        self._free: dict[str, IntArray] = {}
        self._allowed: dict[CompiledClaim, BoolArray] = {}

    def free_pods(self) -> IntArray:
        """Return how many more pods each node takes: 0 if the node is closed. Read-only."""
        if self._free_pods is None:
            self._free_pods = self._remaining(self._snapshot.allowed_pods, self._snapshot.pod_count)
            if self._snapshot.closed:
                self._free_pods[np.isin(self._snapshot.order, list(self._snapshot.closed))] = 0
        return self._free_pods

    def free(self, resource: str) -> IntArray:
        """Return the free amount of the resource on each node. Read-only."""
        amounts = self._free.get(resource)
        if amounts is None:
            amounts = self._remaining(self._snapshot.allocatable(resource), self._snapshot.requested(resource))
            if len(self._free) < _RESOURCES_KEPT_MAX:
                self._free[resource] = amounts
        return amounts

    def allowed_nodes(self, claim: NodeClaim | None) -> BoolArray:
        """Return which nodes a replica with that claim may run on. Read-only."""
        compiled_claim = self._claims.compile_claim(claim)
        rows = self._allowed.get(compiled_claim)
        if rows is None:
            rows = compiled_claim.allowed_nodes(self._snapshot, self._snapshot.order)
            if len(self._allowed) < _CLAIMS_KEPT_MAX:
                self._allowed[compiled_claim] = rows
        return rows

    def _remaining(self, totals: IntArray, usage: IntArray) -> IntArray:
        rows = self._snapshot.order
        amounts: IntArray = totals.take(rows) - usage.take(rows)
        return np.maximum(amounts, NOTHING, out=amounts)


class UniformCapacity:
    """Nodes of which only the sizes are known. Every replica may run on them.

    Args:
        sizes: the free amounts of every resource on each node.
    """

    def __init__(self, sizes: Sequence[Mapping[str, int]], pods_each: int) -> None:
        self._sizes = sizes
        self._pods_each = pods_each

    def free_pods(self) -> IntArray:
        """Return how many pods each node takes."""
        return np.full(len(self._sizes), self._pods_each, np.int64)

    def free(self, resource: str) -> IntArray:
        """Return the amount of the resource on each node."""
        return np.maximum(np.array([size.get(resource, 0) for size in self._sizes], np.int64), NOTHING)

    def allowed_nodes(self, claim: NodeClaim | None) -> BoolArray:
        """Return a mask that allows every node."""
        del claim
        return np.ones(len(self._sizes), np.bool_)


class RemainingCapacity:
    """A free capacity from which placed replicas are subtracted."""

    def __init__(self, capacity: FreeCapacity, resources: Iterable[str]) -> None:
        self._capacity = capacity
        self.pods = capacity.free_pods().tolist()
        self.amounts = {resource: capacity.free(resource).tolist() for resource in resources}

    def free_pods(self) -> IntArray:
        """Return how many more pods each node takes."""
        return np.array(self.pods, np.int64)

    def free(self, resource: str) -> IntArray:
        """Return the free amount of the resource on each node."""
        amounts = self.amounts.get(resource)
        return self._capacity.free(resource) if amounts is None else np.array(amounts, np.int64)

    def allowed_nodes(self, claim: NodeClaim | None) -> BoolArray:
        """Return which nodes a replica with that claim may run on; placed replicas do not change it."""
        return self._capacity.allowed_nodes(claim)


def fitting(capacity: FreeCapacity, demands: Iterable[Demand], claim: NodeClaim | None) -> IntArray:
    """Return how many replicas fit on each node. A replica without demands uses only a pod slot."""
    counts = capacity.free_pods().copy()
    for resource, amount in demands:
        np.minimum(counts, capacity.free(resource) // amount, out=counts)
    counts *= capacity.allowed_nodes(claim)
    return counts
