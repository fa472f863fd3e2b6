"""Rendezvous hashing: every member has a weight for a key, and the heaviest one owns it.

A member that joins takes its share of the keys evenly from all others, and one that leaves gives its keys to all of
them: no key moves between two members that stay.

Source: D. Thaler and C. Ravishankar, "Using name-based mappings to increase hit rates", 1998.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b


def weight(member: str, key: str) -> bytes:
    """Return the weight of a member for a key, which is the same in every process. Cost: 1 us."""
    # No hash of Python's own: those differ between processes.
    return blake2b(f"{member}\n{key}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def owner(key: str, members: Collection[str]) -> str:
    """Return the member that owns the key; "" without members."""
    # A loop, not `max` of pairs: this is asked for every pod.
    heaviest, greatest = "", b""
    for member in members:
        member_weight = weight(member, key)
        if member_weight > greatest or (member_weight == greatest and member > heaviest):
            heaviest, greatest = member, member_weight
    return heaviest


def ranking(key: str, members: Collection[str]) -> tuple[str, ...]:
    """Return all members, the owner of the key first, each followed by the one that owns it without those before."""
    return tuple(sorted(members, key=lambda member: (weight(member, key), member), reverse=True))
