"""What a shard's scheduler reads of its group: the nodes that it owns now, as a column, and its role for a pod.

Owns nothing of the protocol: `daemon.shards` sets the ownership and hands pods over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.cluster.snapshot import BoolArray
from podium.devices.class_table import IMPLICIT_PREFIX
from podium.framework import contract as fwk
from podium.lib.change_log import ChangeLog
from podium.objects.core import Node, Pod
from podium.objects.resource_types import DEVICE_CLASSES, NODES
from podium.shards import Ownership, Role, Visits, needs_all_pods, needs_overseer, owner, role_of, unit_of


async def _place_nowhere(pod: Pod, node_name: str) -> fwk.Status | None:
    """Refuse to hand over a pod before the member has joined its group."""
    return fwk.unschedulable(f"{pod.key} cannot be handed to the owner of {node_name} yet")


class ShardState:
    """The ownership of one member, shared by all profiles.

    Attributes:
        place: hands an assumed pod to the owner of its node, and returns once that has bound it (None) or has not.
        sees_all_pods: returns whether all pods are known, and sees to it that they soon are.
    """

    def __init__(self, handle: fwk.Handle) -> None:
        self._nodes, self._device_classes = handle.lister(NODES), handle.lister(DEVICE_CLASSES)
        self.place: Callable[[Pod, str], Awaitable[fwk.Status | None]] = _place_nowhere
        self.sees_all_pods: Callable[[], bool] = lambda: True
        self.use(Ownership("", ""))
        self._column: BoolArray = np.zeros(0, np.bool_)
        self._nodes_seen = 0
        self._own: tuple[Rows, Rows] | None = None
        """The order of the snapshot, and the rows in it that this member owns."""

    @property
    def ownership(self) -> Ownership:
        """The nodes that this member may decide on now, and the members that pods are divided among."""
        return self._ownership

    def use(self, ownership: Ownership) -> None:
        """Decide by this ownership from now on."""
        self._ownership, self._oversees = ownership, ownership.oversees
        self._node_log: ChangeLog[int] | None = None
        self._is_owned: dict[str, bool] = {}

    def role(self, pod: Pod) -> Role:
        """Return what this member does with a pending pod."""
        ownership = self._ownership
        if not ownership.members:
            return Role.NONE
        return role_of(
            pod,
            ownership.member,
            ownership.members,
            ownership.shard_key,
            self.owner_of,
            is_device=self._is_device,
            oversees=self._oversees,
        )

    @property
    def oversees(self) -> bool:
        """Whether this member may decide on the pods that need all nodes now."""
        return self._oversees

    def was_overseen(self, pod: Pod) -> bool:
        """Return whether only the overseer has decided on the pod."""
        return bool(Visits.of(pod).tried) or needs_overseer(pod, self._ownership.shard_key, self._is_device)

    def _is_device(self, resource: str) -> bool:
        is_named = (item.spec.extended_resource_name == resource for item in self._device_classes.list())
        return resource.startswith(IMPLICIT_PREFIX) or any(is_named)

    def holds(self, pod: Pod) -> bool:
        """Return whether this member decides on a pending pod, and knows all the pods that it has to count for it."""
        role = self.role(pod)
        # Once they are known, the pods are divided again.
        return role is not Role.NONE and not self.lacks_pods_for(pod, role)

    def lacks_pods_for(self, pod: Pod, role: Role) -> bool:
        """Return whether pods are not known yet that a decision in this role has to count; then they soon are."""
        return _counts_all(pod, role) and not self.sees_all_pods()

    def needs_all(self, pod: Pod) -> bool:
        """Return whether this member decides on a pending pod, and has to count pods on all nodes for it."""
        role = self.role(pod)
        return role is not Role.NONE and _counts_all(pod, role)

    def owner_of(self, node_name: str) -> str:
        """Return the member that owns the node once every hand-over has ended; "" for an unknown node."""
        node = self._nodes.get(node_name)
        return "" if node is None else owner(unit_of(node, self._ownership.shard_key), self._ownership.members)

    def owns(self, node_name: str) -> bool:
        """Return whether this member may decide on the node now."""
        node = self._nodes.get(node_name)
        return node is not None and self._owns(node)

    @property
    def owned_count(self) -> int:
        """The number of nodes that this member owned at its last attempt."""
        return int(np.count_nonzero(self._column))

    def owned_rows(self, snapshot: Snapshot) -> BoolArray:
        """Return by row whether this member owns the node. The caller must not write to it.

        Shape: one entry per row of the snapshot.
        Cost: a hash for each unit after a change of ownership; after that a look-up for each node that has changed.
        """
        nodes, log = snapshot.nodes, snapshot.node_changes
        if log is self._node_log and log.end == self._nodes_seen:
            return self._column
        self._own = None
        # Forks share the log of the original until they change a node.
        changed_rows = log.since(self._nodes_seen) if log is self._node_log else None
        if changed_rows is None or len(self._column) != len(nodes):
            ownerships = (node is not None and self._owns(node) for node in nodes)
            self._column = np.fromiter(ownerships, np.bool_, len(nodes))
        else:
            for row in changed_rows:
                node = nodes[row]
                self._column[row] = node is not None and self._owns(node)
        self._node_log, self._nodes_seen = log, log.end
        return self._column

    def own_rows(self, snapshot: Snapshot) -> Rows:
        """Return the rows that this member owns, in node order: the same array until a node or the ownership changes.

        Shape: some of the snapshot's rows.
        Cost: as `owned_rows`.
        """
        is_owned, order = self.owned_rows(snapshot), snapshot.order
        if self._own is None or self._own[0] is not order:
            self._own = order, order[is_owned.take(order)]
        return self._own[1]

    def _owns(self, node: Node) -> bool:
        ownership = self._ownership
        if any(peer.shard_key != ownership.shard_key for peer in ownership.rivals):
            return ownership.owns(node)
        # All members divide the nodes by one label, so that nodes of a unit have one answer.
        unit = unit_of(node, ownership.shard_key)
        is_owned = self._is_owned.get(unit)
        if is_owned is None:
            is_owned = self._is_owned[unit] = ownership.owns(node)
        return is_owned


def _counts_all(pod: Pod, role: Role) -> bool:
    return role is Role.ALL or needs_all_pods(pod.spec)
