"""Reports which member of a group of shards owns which nodes, as Leases and nodes show it from outside.

Whether a member is alive is judged by the time that it wrote into its Lease, which its own clock gave: members judge
each other by changes that they see.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from podium.objects.core import Node
from podium.shards.announcement import Announcement, MemberLease, unit_of

API_VERSION: Final = "podium/v1alpha1"


@dataclass(frozen=True, slots=True)
class MemberReport:
    """One member of the group.

    Attributes:
        state: "alive", "settling" (some bindings of an earlier view have not ended), "expired" or "left".
        nodes: those that it claims by its current view, by name.
        units: the values of the label, or single nodes, that these belong to.
        contested: the nodes among them that another member claims, too: nobody decides on these.
    """

    member: str
    lease: str
    holder: str
    state: str
    shard_key: str
    version: str
    nodes: tuple[str, ...]
    units: tuple[str, ...]
    contested: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "member": self.member,
            "lease": self.lease,
            "holder": self.holder,
            "state": self.state,
            "shardKey": self.shard_key,
            "version": self.version,
            "nodes": list(self.nodes),
            "units": list(self.units),
            "contested": list(self.contested),
        }


@dataclass(frozen=True, slots=True)
class GroupReport:
    """A group of shards: its members, and the nodes that none of them claims."""

    group: str
    members: tuple[MemberReport, ...]
    unowned: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "apiVersion": API_VERSION,
            "kind": "ShardReport",
            "group": self.group,
            "members": [member.as_dict() for member in self.members],
            "unowned": list(self.unowned),
        }


def report_on(group: str, leases: Iterable[MemberLease], nodes: Iterable[Node], now_s: float) -> GroupReport:
    """Return who owns what.

    Args:
        now_s: in seconds since the epoch.
    """
    present_nodes = sorted(nodes, key=lambda node: node.name)
    members = sorted(leases, key=lambda lease: lease.member)
    live = [lease for lease in members if _state(lease, now_s) in ("alive", "settling")]
    claims = {lease.name: [node for node in present_nodes if _decides_on(lease, node)] for lease in live}
    claimants: dict[str, int] = {}
    for node in present_nodes:
        claimants[node.name] = sum(lease.announcement.claims(node) for lease in live)
    reports = tuple(_member(lease, claims.get(lease.name, []), claimants, now_s) for lease in members)
    claimed_names = {node.name for owned_nodes in claims.values() for node in owned_nodes}
    return GroupReport(group, reports, tuple(node.name for node in present_nodes if node.name not in claimed_names))


def _member(lease: MemberLease, nodes: list[Node], claimants: dict[str, int], now_s: float) -> MemberReport:
    shard_key = lease.announcement.shard_key
    return MemberReport(
        member=lease.member,
        lease=lease.name,
        holder=lease.holder,
        state=_state(lease, now_s),
        shard_key=shard_key,
        version=lease.version,
        nodes=tuple(node.name for node in nodes),
        units=tuple(dict.fromkeys(unit_of(node, shard_key) for node in nodes)),
        contested=tuple(node.name for node in nodes if claimants[node.name] > 1),
    )


def _decides_on(lease: MemberLease, node: Node) -> bool:
    announcement = lease.announcement
    if announcement.claims_all:
        return True
    return Announcement(announcement.member, announcement.shard_key, announcement.views[:1]).claims(node)


def _state(lease: MemberLease, now_s: float) -> str:
    if not lease.holder:
        return "left"
    if now_s > lease.renewed_at_s + lease.duration_s:
        return "expired"
    return "settling" if len(lease.announcement.views) > 1 else "alive"
