"""Shards: the members of the group, the nodes that this one owns, and the pods that members pass to each other."""

from __future__ import annotations

from typing import Final, Literal

from podium.telemetry.families import ReadValue, counter, read_gauge

OF_SHARDS: Final = frozenset(
    {
        "podium_shard_members",
        "podium_shard_held_pods",
        "podium_shard_owned_nodes",
        "podium_shard_pods_passed_on_total",
        "podium_shard_placements_total",
    }
)
"""The metrics that are shown only by a member of a group of shards."""


class ShardMetrics:
    """One member of a group of shards."""

    def __init__(self) -> None:
        self._shard_members = read_gauge("podium_shard_members", "Members of the group that are alive.")
        self._shard_nodes = read_gauge("podium_shard_owned_nodes", "Nodes that this member decides on.")
        self._shard_held = read_gauge(
            "podium_shard_held_pods",
            "Pods of other members that this member has not decoded, as they do not concern it.",
        )
        self._shard_passes = counter(
            "podium_shard_pods_passed_on_total", "Pods that fitted nowhere in this shard and went to the next one."
        )
        self._shard_placements = counter(
            "podium_shard_placements_total", "Pods handed to the member that owns the chosen node.", "result"
        )
        super().__init__()

    def read_shards(self, members: ReadValue, owned_nodes: ReadValue, held_pods: ReadValue) -> None:
        """Set the sources of the numbers of members, of this member's nodes, and of the pods that are not decoded."""
        self._shard_members.read_from(members)
        self._shard_nodes.read_from(owned_nodes)
        self._shard_held.read_from(held_pods)

    def count_shard_pass(self) -> None:
        """Count a pod that went to the next shard."""
        self._shard_passes[()].add()

    def count_shard_placement(self, result: Literal["bound", "refused"]) -> None:
        """Count a pod that was handed to the owner of its node."""
        self._shard_placements[(result,)].add()
