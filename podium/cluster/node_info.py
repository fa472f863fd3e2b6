"""One node, for code that looks at one node at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from podium.objects.core import Node, Pod

if TYPE_CHECKING:
    from podium.cluster.snapshot import Snapshot


class NodeInfo:
    """A view of one row of a snapshot. It holds no data itself, so it is cheap to make and never stale."""

    __slots__ = ("row", "snapshot")

    def __init__(self, snapshot: Snapshot, row: int) -> None:
        self.snapshot = snapshot
        self.row = row

    @property
    def node(self) -> Node:
        """The node object."""
        node = self.snapshot.nodes[self.row]
        assert node is not None, f"row {self.row} has no node, as any row may that is not in `order`"
        return node

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.node.metadata.labels

    @property
    def pods(self) -> Collection[Pod]:
        """The pods on the node, including assumed ones."""
        return self.snapshot.pods[self.row].values()

    @property
    def allowed_pods(self) -> int:
        """The number of pods that the node allows."""
        return self.snapshot.allowed_pods.item(self.row)

    def allocatable(self, resource: str) -> int:
        """Return the node's allocatable amount of a resource; cpu in milli."""
        return self.snapshot.allocatable_on(self.row, resource)

    def requested(self, resource: str) -> int:
        """Return the amount of a resource that the pods on the node request; cpu in milli."""
        return self.snapshot.requested_on(self.row, resource)

    def nonzero_requested(self, resource: str) -> int:
        """Return the requests like `requested`, with a default amount for containers that request no cpu or memory."""
        return self.snapshot.nonzero_requested_on(self.row, resource)

    def __repr__(self) -> str:
        return f"NodeInfo({self.name!r})"
