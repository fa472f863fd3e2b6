"""What is free on the nodes, in the order of nodes, and who may go there.

Owns the arithmetic of one question: how many replicas fit on each node. What is placed is taken off the question's own
columns, never off the cluster.

Shape: every array has one entry per node, in the order in which nodes are looked at.
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
# Whoever asks decides how many there are.
_RESOURCES_KEPT_MAX: Final = 64
_CLAIMS_KEPT_MAX: Final = 256


class FreeCapacity(Protocol):
    """Nodes with something free on them."""

    def free_pods(self) -> IntArray:
        """How many more pods each node takes."""
        ...

    def free(self, resource: str) -> IntArray:
        """What each node has left of the resource; zeros for one that no node has."""
        ...

    def allowed(self, claim: NodeClaim | None) -> BoolArray:
        """Which nodes a replica with that claim may run on."""
        ...


class ClusterRoom:
    """The nodes of a cluster as they are just now. What has been asked once is kept for the next question.

    Args:
        snapshot: not to change as long as the room is used.
        claims: remembered compiled claims.
    """

    def __init__(self, snapshot: Snapshot, claims: Claims) -> None:
        self._snapshot = snapshot
        self._claims = claims
        self._free_pods: IntArray | None = None
        self._free: dict[str, IntArray] = {}
        self._allowed: dict[CompiledClaim, BoolArray] = {}

    def free_pods(self) -> IntArray:
        """How many more pods each node takes: none where a node is closed. Not to be written to."""
        if self._free_pods is None:
            self._free_pods = self._left(self._snapshot.allowed_pods, self._snapshot.pod_count)
            if self._snapshot.closed:
                self._free_pods[np.isin(self._snapshot.order, list(self._snapshot.closed))] = 0
        return self._free_pods

    def free(self, resource: str) -> IntArray:
        """What each node has left of the resource. Not to be written to."""
        known = self._free.get(resource)
        if known is None:
            known = self._left(self._snapshot.allocatable(resource), self._snapshot.requested(resource))
            if len(self._free) < _RESOURCES_KEPT_MAX:
                self._free[resource] = known
        return known

    def allowed(self, claim: NodeClaim | None) -> BoolArray:
        """Which nodes a replica with that claim may run on. Not to be written to."""
        compiled = self._claims.compiled(claim)
        known = self._allowed.get(compiled)
        if known is None:
            known = compiled.allowed(self._snapshot, self._snapshot.order)
            if len(self._allowed) < _CLAIMS_KEPT_MAX:
                self._allowed[compiled] = known
        return known

    def _left(self, of: IntArray, taken: IntArray) -> IntArray:
        rows = self._snapshot.order
        left: IntArray = of.take(rows) - taken.take(rows)
        return np.maximum(left, NOTHING, out=left)


class StandInRoom:
    """Nodes of which only the sizes are known: any replica may run on them.

    Args:
        sizes: what each node has free, all resources listed.
    """

    def __init__(self, sizes: Sequence[Mapping[str, int]], pods_each: int) -> None:
        self._sizes = sizes
        self._pods_each = pods_each

    def free_pods(self) -> IntArray:
        """How many pods each node takes."""
        return np.full(len(self._sizes), self._pods_each, np.int64)

    def free(self, resource: str) -> IntArray:
        """What each node has of the resource."""
        return np.maximum(np.array([size.get(resource, 0) for size in self._sizes], np.int64), NOTHING)

    def allowed(self, claim: NodeClaim | None) -> BoolArray:
        """All of them."""
        del claim
        return np.ones(len(self._sizes), np.bool_)


class ReducedRoom:
    """FreeCapacity of which something has been taken."""

    def __init__(self, room: FreeCapacity, resources: Iterable[str]) -> None:
        self._room = room
        self.pods = room.free_pods().tolist()
        self.amounts = {resource: room.free(resource).tolist() for resource in resources}

    def free_pods(self) -> IntArray:
        """How many more pods each node takes."""
        return np.array(self.pods, np.int64)

    def free(self, resource: str) -> IntArray:
        """What each node has left of the resource."""
        known = self.amounts.get(resource)
        return self._room.free(resource) if known is None else np.array(known, np.int64)

    def allowed(self, claim: NodeClaim | None) -> BoolArray:
        """As ever."""
        return self._room.allowed(claim)


def fitting(room: FreeCapacity, demands: Iterable[Demand], claim: NodeClaim | None) -> IntArray:
    """How many replicas fit on each node; a replica that demands nothing takes a pod's place."""
    counts = room.free_pods().copy()
    for resource, amount in demands:
        np.minimum(counts, room.free(resource) // amount, out=counts)
    counts *= room.allowed(claim)
    return counts
