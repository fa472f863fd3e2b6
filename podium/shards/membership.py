"""One member's part in its group: who is alive, which view to announce, and which nodes that allows to act on.

The caller repeats three steps: list the Leases and `observe` them; if `next_announcement` differs from what the Lease
says, write it, call `announce` and list again; else act by `ownership`.

Invariant: two members that follow this, each while it holds its Lease, never own a node at the same time. The Lease of
a member that is silent counts for its whole duration after it was last seen to change, which ends later than the renew
deadline after which the member itself stops writing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from podium.objects.core import Node
from podium.shards.announcement import OVERSEER, Announcement, MemberLease, View, unit_of


@dataclass(slots=True)
class _Peer:
    """A Lease of another member, and when it was first seen as it is, in seconds on the monotonic clock."""

    lease: MemberLease
    changed_at_s: float


@dataclass(frozen=True, slots=True)
class Ownership:
    """The nodes that a member may decide on: those that all of its `views` give it and no other member claims.

    Attributes:
        members: who is alive, for the division of pods.
    """

    member: str
    shard_key: str
    members: View = frozenset()
    views: tuple[View, ...] = ()
    rivals: tuple[Announcement, ...] = ()

    def owns(self, node: Node) -> bool:
        """Return whether the member may decide on the node."""
        is_given = self._is_given(unit_of(node, self.shard_key))
        return is_given and not any(rival.claims(node) for rival in self.rivals)

    @property
    def oversees(self) -> bool:
        """Whether the member may decide on the pods that need all nodes."""
        return self._is_given(OVERSEER) and not any(rival.claims_unit(OVERSEER) for rival in self.rivals)

    def _is_given(self, unit: str) -> bool:
        if not self.views or any(rival.claims_all for rival in self.rivals):
            return False
        claim = Announcement(self.member)
        return all(claim.claims_by(view, unit) for view in self.views)

    def narrow_to(self, view: View, members: View) -> Ownership:
        """Return what is left while a new view is announced: nodes that it does not give up."""
        views = self.views if view in self.views else (view, *self.views)
        return Ownership(self.member, self.shard_key, members, views if self.views else (), self.rivals)


class Membership:
    """What one member knows of its group.

    Args:
        lease_name: the member's own Lease, which `observe` leaves out.
    """

    def __init__(self, member: str, shard_key: str, lease_name: str) -> None:
        self.member, self.shard_key = member, shard_key
        self._lease_name = lease_name
        self._peers: dict[str, _Peer] = {}
        self._live: dict[str, MemberLease] = {}
        self.announcement = Announcement(member, shard_key)
        """What the member's Lease is known to say."""

    def observe(self, leases: Iterable[MemberLease], requested_s: float, answered_s: float) -> None:
        """Take in the Leases of the group, as a list has them.

        Args:
            requested_s, answered_s: when the list was requested and answered. The Leases are from any time between
                these two: one that has changed is valid from the later on, and has run out only by the earlier.
        """
        other_leases = {lease.name: lease for lease in leases if lease.name != self._lease_name}
        # A Lease that is deleted and made again has to be seen anew for its whole duration.
        for name in self._peers.keys() - other_leases.keys():
            del self._peers[name]
        for name, lease in other_leases.items():
            peer = self._peers.get(name)
            if peer is None or peer.lease.stamp != lease.stamp:
                self._peers[name] = _Peer(lease, answered_s)
            else:
                peer.lease = lease
        self._live = {
            name: peer.lease
            for name, peer in self._peers.items()
            if peer.lease.holder and requested_s <= peer.changed_at_s + peer.lease.duration_s
        }

    @property
    def live(self) -> tuple[MemberLease, ...]:
        """The Leases of the other members that are alive."""
        return tuple(self._live.values())

    @property
    def view(self) -> View:
        """Return this member and those that are alive and understood."""
        # A member that is not understood cannot be relied on to take its pods.
        peers = (lease.member for lease in self._live.values() if not lease.announcement.claims_all)
        return frozenset((self.member, *peers))

    def next_announcement(self, is_settled: Callable[[View], bool]) -> Announcement:
        """Return what the Lease should say now.

        Args:
            is_settled: whether no binding is under way on a node that this view does not give to the member.
        """
        view = self.view
        # All of them, as a binding may be older than the last change of members.
        former_views = tuple(former for former in self.announcement.views if former != view)
        if former_views and is_settled(view):
            former_views = ()
        return Announcement(self.member, self.shard_key, (view, *former_views))

    def announce(self, announcement: Announcement) -> None:
        """Record that the member's Lease says this."""
        self.announcement = announcement

    @property
    def ownership(self) -> Ownership:
        """Return the ownership by the last list, which must have been requested after the last announcement."""
        rivals = tuple(lease.announcement for lease in self._live.values())
        return Ownership(self.member, self.shard_key, self.view, self.announcement.views[:1], rivals)
