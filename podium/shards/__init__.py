"""Shards: which member of a group decides on which node and which pod, as values in virtual time.

Owns the rules of membership, ownership and hand-over, and what members tell each other in Leases and in the conditions
of pods. Never does I/O, never reads a clock and never places a pod: `server.election` reads and writes the Leases, and
`daemon.shards` applies the rules to the scheduler.

The protocol in short. A member writes into its Lease which *views* (sets of members) it acts by; a view claims for it
the nodes whose unit it owns by rendezvous hash. It decides on a node only if its own Lease is known to claim the node,
and a list of Leases that was read after that shows no other live member that does. Of two members that claim a node at
the same time, each sees the other's claim or is seen by it, so that at most one acts. A view that is outdated stays in
the Lease until the bindings that it allowed have ended.
"""

from podium.shards.announcement import OVERSEER, Announcement, MemberLease, ShardIdentity, unit_of
from podium.shards.membership import Membership, Ownership
from podium.shards.pods import CONDITION, Role, Visits, needs_all_pods, needs_overseer, owner_key, role_of, sees_all
from podium.shards.rendezvous import owner, ranking

__all__ = [
    "CONDITION",
    "OVERSEER",
    "Announcement",
    "MemberLease",
    "Membership",
    "Ownership",
    "Role",
    "ShardIdentity",
    "Visits",
    "needs_all_pods",
    "needs_overseer",
    "owner",
    "owner_key",
    "ranking",
    "role_of",
    "sees_all",
    "unit_of",
]
