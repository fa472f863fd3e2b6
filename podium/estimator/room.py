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
from podium.estimator.claims import Claims
from podium.estimator.requirements import NodeClaim

NOTHING: Final = np.int64(0)


class Room(Protocol):
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
    """The nodes of a cluster.

    Args:
        claims: remembered compiled claims.
    """

    def __init__(self, snapshot: Snapshot, claims: Claims) -> None:
        self._snapshot = snapshot
        self._claims = claims

    def free_pods(self) -> IntArray:
        """How many more pods each node takes."""
        rows = self._snapshot.order
        left: IntArray = self._snapshot.allowed_pods.take(rows) - self._snapshot.pod_count.take(rows)
        return np.maximum(left, NOTHING, out=left)

    def free(self, resource: str) -> IntArray:
        """What each node has left of the resource."""
        rows = self._snapshot.order
        left: IntArray = self._snapshot.allocatable(resource).take(rows) - self._snapshot.requested(resource).take(rows)
        return np.maximum(left, NOTHING, out=left)

    def allowed(self, claim: NodeClaim | None) -> BoolArray:
        """Which nodes a replica with that claim may run on."""
        return self._claims.compiled(claim).allowed(self._snapshot, self._snapshot.order)


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
    """Room of which something has been taken."""

    def __init__(self, room: Room, resources: Iterable[str]) -> None:
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


def fitting(room: Room, demands: Iterable[Demand], claim: NodeClaim | None) -> IntArray:
    """How many replicas fit on each node; a replica that demands nothing takes a pod's place."""
    counts = room.free_pods()
    for resource, amount in demands:
        np.minimum(counts, room.free(resource) // amount, out=counts)
    counts *= room.allowed(claim)
    return counts
