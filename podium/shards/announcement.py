"""What a member of a group announces in its Lease: the views by which it acts, and the label that nodes are divided by.

Owns the form of labels and annotations. A Lease that cannot be understood, as of a later version, claims every node:
to leave a node alone is always safe.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import podium
from podium.objects.core import Node
from podium.objects.times import time_or_none
from podium.shards.rendezvous import owner

GROUP_LABEL: Final = "podium/shard-group"
MEMBER: Final = "podium/shard-member"
KEY: Final = "podium/shard-key"
VIEWS: Final = "podium/shard-views"
PROTOCOL: Final = "podium/shard-protocol"
VERSION: Final = "podium/version"
OVERSEER: Final = "overseer"
"""The unit whose owner decides on the pods that need all nodes. It is handed over as nodes are."""
PROTOCOL_SPOKEN: Final = "1"
"""Changes with the meaning of the annotations; members of another protocol keep off each other's nodes."""

NAME: Final = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""Names of groups and members: together they make the name of a Lease, and a group's is the value of a label."""

View: TypeAlias = frozenset[str]
"""Members that are alive, as far as one of them knows."""


@dataclass(frozen=True, slots=True)
class ShardIdentity:
    """The group of shards that a process belongs to, its name in it, and the label that nodes are divided by."""

    group: str
    member: str
    shard_key: str

    @property
    def lease_name(self) -> str:
        """The name of the member's Lease."""
        return f"{self.group}-{self.member}"


def unit_of(node: Node, shard_key: str) -> str:
    """Return the unit that the node is divided with: the value of its label, or the node alone without the label."""
    value = node.metadata.labels.get(shard_key)
    # A label's value has no slash, so no node can pass for a unit of several.
    return f"node/{node.metadata.name}" if value is None else value


@dataclass(frozen=True, slots=True)
class Announcement:
    """The claims of a member.

    Attributes:
        views: the current view first, then those whose bindings have not all ended.
        claims_all: whether the member claims every node, since its Lease could not be understood.
    """

    member: str
    shard_key: str = ""
    views: tuple[View, ...] = ()
    claims_all: bool = False

    def claims(self, node: Node) -> bool:
        """Return whether the member may act on the node by any of its views."""
        return self.claims_all or (bool(self.views) and self.claims_unit(unit_of(node, self.shard_key)))

    def claims_unit(self, unit: str) -> bool:
        """Return whether the member may act on the unit by any of its views."""
        return self.claims_all or any(self.claims_by(view, unit) for view in self.views)

    def claims_by(self, view: View, unit: str) -> bool:
        """Return whether the view gives the unit to the member."""
        return owner(unit, view) == self.member

    def annotations(self) -> dict[str, str]:
        """Return the annotations of the member's Lease."""
        return {
            MEMBER: self.member,
            KEY: self.shard_key,
            VIEWS: json.dumps([sorted(view) for view in self.views]),
            PROTOCOL: PROTOCOL_SPOKEN,
            VERSION: podium.__version__,
        }


@dataclass(frozen=True, slots=True)
class MemberLease:
    """A Lease of the group, as it was read.

    Attributes:
        name: of the Lease.
        holder: the process that holds it; "" if the member has left.
        stamp: differs after every write of the holder.
        duration_s: how long the Lease is valid after it was seen to change, in seconds.
        version: podium's, as the member says.
        protocol: the meaning of its annotations.
        renewed_at_s: when the holder wrote it, by the holder's clock, in seconds since the epoch; 0 if unknown.
    """

    name: str
    holder: str
    stamp: str
    duration_s: float
    announcement: Announcement
    version: str = ""
    protocol: str = ""
    renewed_at_s: float = 0.0

    @property
    def member(self) -> str:
        """The name of the member."""
        return self.announcement.member

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> MemberLease:
        """Read a Lease given as JSON. Nothing in it is trusted: what cannot be understood claims every node."""
        metadata, spec = _table(lease.get("metadata")), _table(lease.get("spec"))
        annotations, name = _table(metadata.get("annotations")), str(metadata.get("name") or "")
        duration = spec.get("leaseDurationSeconds")
        return cls(
            name=name,
            holder=str(spec.get("holderIdentity") or ""),
            stamp=f"{spec.get('holderIdentity')} {spec.get('renewTime')}",
            duration_s=float(duration) if isinstance(duration, int | float) else 0.0,
            announcement=_announcement(name, annotations),
            version=str(annotations.get(VERSION) or ""),
            protocol=str(annotations.get(PROTOCOL) or ""),
            renewed_at_s=time_or_none(spec.get("renewTime")) or 0.0,
        )


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _announcement(name: str, annotations: Mapping[str, Any]) -> Announcement:
    member, shard_key = annotations.get(MEMBER), annotations.get(KEY)
    unclear = Announcement(member if isinstance(member, str) and member else name, claims_all=True)
    if annotations.get(PROTOCOL) != PROTOCOL_SPOKEN or not isinstance(member, str) or not isinstance(shard_key, str):
        return unclear
    try:
        views = json.loads(annotations.get(VIEWS) or "")
    except (ValueError, TypeError, RecursionError):
        return unclear
    if not NAME.fullmatch(member) or not isinstance(views, list):
        return unclear
    if not all(isinstance(view, list) and all(isinstance(peer, str) for peer in view) for view in views):
        return unclear
    return Announcement(member, shard_key, tuple(frozenset(view) for view in views))
