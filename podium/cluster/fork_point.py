"""The point at which a fork left its original, so that answers about one of them can be carried over to the other."""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol, TypeVar

from podium.lib.change_log import ChangeLog


class Logged(Protocol):
    """The part of a snapshot that tells of changes."""

    node_changes: ChangeLog[int]


S = TypeVar("S", bound=Logged)


class ForkPoint(NamedTuple, Generic[S]):
    """What a fork continues.

    Attributes:
        original: the snapshot that was forked.
        nodes_end: the number of the next change of a node then; the fork is valid until there is one.
        usage_end: the number of the next change of a row's usage then, from which on both logs differ.
    """

    original: S
    nodes_end: int
    usage_end: int

    def is_valid_for(self, fork: S) -> bool:
        """Return whether no node has changed since, neither in the fork nor in the original."""
        node_changes = self.original.node_changes
        return fork.node_changes is node_changes and node_changes.end == self.nodes_end
