"""Nominated pods, as they count for one attempt.

Owns the forks of the snapshot in which nominated pods are on their nodes already. Never decides whether the pod fits.

Source: kubernetes pkg/scheduler/framework/runtime/framework.go (addGENominatedPods), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter, is_
from typing import Final, NamedTuple, Protocol, Self

import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.cluster.pod_usage import PodUsage, readable_pod_usage
from podium.cluster.snapshot import BoolArray
from podium.lib.change_log import ChangeLog
from podium.objects.core import Pod

_CHANGES_KEPT: Final = 1024


class Nomination(NamedTuple):
    """A pod nominated to a node, and the usage that it will add there."""

    node_name: str
    pod: Pod
    priority: int
    pod_usage: PodUsage

    @classmethod
    def of(cls, pod: Pod, node_name: str) -> Self:
        """Return the nomination of a pod. Its requests count as far as they can be parsed."""
        return cls(node_name, pod, pod.priority, readable_pod_usage(pod))


_node_name, _pod_usage = attrgetter("node_name"), attrgetter("pod_usage")


class NominatedPods(Protocol):
    """The pods that are nominated to nodes."""

    def ahead_by_row(self, pod: Pod, snapshot: Snapshot) -> RowsOfNominations:
        """Return all other nominated pods of at least this pod's priority, by node in the order of their nomination."""

    def ahead_on(self, pod: Pod, node_name: str) -> Sequence[Pod]:
        """Return the pods of `ahead_by_row` that are nominated to one node."""


class Nominations(Protocol):
    """All nominations, and the nodes on which they have changed.

    Attributes:
        changes: the names of nodes to which a pod was nominated, or no longer is.
    """

    changes: ChangeLog[str]

    def all(self) -> Sequence[Nomination]:
        """Return all nominations, by node in the order of their nomination."""

    def on_node(self, node_name: str) -> Sequence[Nomination]:
        """Return the nominations to one node, in their order."""


class UsageOnRows(NamedTuple):
    """What nominated pods will add to the usage of their nodes, on rows that have any.

    Shape: `amounts` has a row for each usage column of the snapshot, and a column for each of `rows`.
    """

    rows: Rows
    amounts: IntArray

    @classmethod
    def of(cls, nominations: Mapping[int, Sequence[Nomination]], snapshot: Snapshot) -> Self:
        """Return the sums of the usages, by row."""
        counts = np.fromiter(map(len, nominations.values()), np.intp, len(nominations))
        amounts = snapshot.usage_of([*map(_pod_usage, chain.from_iterable(nominations.values()))])
        if len(counts) < amounts.shape[1]:
            amounts = np.add.reduceat(amounts, np.cumsum(counts) - counts, axis=1)
        return cls(np.fromiter(nominations, np.intp, len(nominations)), amounts)

    def with_rows(
        self, rows: Iterable[int], nominations: Mapping[int, Sequence[Nomination]], snapshot: Snapshot
    ) -> Self:
        """Return the sums after a change on some rows, given the nominations to all."""
        is_changed = np.zeros(len(snapshot.nodes), np.bool_)
        is_changed[[*rows]] = True
        stays = ~is_changed[self.rows]
        new = type(self).of({row: nominations[row] for row in rows if row in nominations}, snapshot)
        kept_rows, kept_amounts = self.rows[stays], self.amounts.compress(stays, axis=1)
        return type(self)(np.concatenate((kept_rows, new.rows)), np.concatenate((kept_amounts, new.amounts), axis=1))


class RowsOfNominations:
    """Nominations by row. Never changed.

    Args:
        nominations: by row, only rows that have any.
        changes: the rows whose nominations have changed from one of these values to the next; they share the log.
    """

    __slots__ = ("_changes", "_column", "_end", "_usage", "by_row")

    def __init__(
        self, nominations: Mapping[int, tuple[Nomination, ...]], changes: ChangeLog[int] | None = None
    ) -> None:
        self.by_row = nominations
        self._changes: ChangeLog[int] = ChangeLog(_CHANGES_KEPT) if changes is None else changes
        self._end = self._changes.end
        self._column: BoolArray | None = None
        self._usage: UsageOnRows | None = None

    @classmethod
    def of(cls, nominations: Sequence[Nomination], snapshot: Snapshot) -> Self:
        """Return these nominations to nodes of the snapshot."""
        by_row: dict[int, list[Nomination]] = {}
        for row, nomination in zip(map(snapshot.row_of.get, map(_node_name, nominations)), nominations, strict=True):
            if row is not None:
                by_row.setdefault(row, []).append(nomination)
        return cls({row: tuple(row_nominations) for row, row_nominations in by_row.items()})

    def column(self, size: int) -> BoolArray:
        """Return by row, whether any pod is nominated to the node. Shape: `size` entries, one per row."""
        column = self._column
        if column is None or len(column) != size:
            column = self._column = np.zeros(size, np.bool_)
            column[np.fromiter(self.by_row, np.intp, len(self.by_row))] = True
        return column

    def usage(self, snapshot: Snapshot) -> UsageOnRows:
        """Return the sums of the usages by row, in the columns of this snapshot, always the same one."""
        if self._usage is None:
            self._usage = UsageOnRows.of(self.by_row, snapshot)
        return self._usage

    def usage_on(self, rows: Rows, snapshot: Snapshot) -> UsageOnRows:
        """Return the sums on those of these rows that have nominations."""
        by_row = self.by_row
        return UsageOnRows.of({row: by_row[row] for row in rows.tolist() if row in by_row}, snapshot)

    def with_rows(self, rows: Mapping[int, Sequence[Nomination]], snapshot: Snapshot) -> RowsOfNominations:
        """Return the nominations after those to some rows have changed; they may have none any more."""
        by_row = dict(self.by_row)
        for row, row_nominations in rows.items():
            self._changes.append(row)
            if row_nominations:
                by_row[row] = tuple(row_nominations)
            else:
                by_row.pop(row, None)
        nominations = RowsOfNominations(by_row, self._changes)
        if self._column is not None:
            column = nominations._column = self._column.copy()
            column[[*rows]] = [bool(row_nominations) for row_nominations in rows.values()]
        if self._usage is not None:
            nominations._usage = self._usage.with_rows(rows, by_row, snapshot)
        return nominations

    def rows_changed_since(self, former: object) -> Collection[int]:
        """Return the rows whose nominations may differ from the former ones; `former` may be any value.

        Cost: one step for each change; where the former ones are not an earlier state of these, for each row.
        """
        if not isinstance(former, RowsOfNominations):
            return self.by_row.keys()
        if self._changes is former._changes and self._end >= former._end:
            changes = self._changes.since(former._end)
            if changes is not None:
                return {*changes}
        former_by_row, by_row = former.by_row, self.by_row
        differing = [row for row in by_row if not _are_same(former_by_row.get(row, ()), by_row[row])]
        return {*differing, *(former_by_row.keys() - by_row.keys())}


def _are_same(former: Sequence[Nomination], current: Sequence[Nomination]) -> bool:
    """Return True if these are identical objects. Equality is not enough: equal mappings may differ in their order."""
    return len(former) == len(current) and all(map(is_, former, current))


NO_NOMINATIONS: Final = RowsOfNominations({})


class NominationsByRow:
    """All nominations by row of one snapshot, kept up to date: while a thousand pods preempt, hundreds are nominated.

    Cost: a copy of a mapping where nominations have changed, and one step for each nomination where nodes have.
    """

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._nodes_seen = self._seen = 0
        self._rows = NO_NOMINATIONS

    def of(self, nominations: Nominations, snapshot: Snapshot) -> RowsOfNominations:
        """Return all nominations, always the same ones but for their changes, to nodes of the snapshot."""
        changes = nominations.changes
        is_current = snapshot is self._snapshot and snapshot.node_changes.end == self._nodes_seen
        node_names = changes.since(self._seen) if is_current else None
        if node_names is None:
            self._rows = RowsOfNominations.of(nominations.all(), snapshot)
        elif node_names:
            rows = {name: row for name in node_names if (row := snapshot.row_of.get(name)) is not None}
            changes_by_row = {row: nominations.on_node(name) for name, row in rows.items()}
            if changes_by_row:
                self._rows = self._rows.with_rows(changes_by_row, snapshot)
        self._snapshot, self._nodes_seen, self._seen = snapshot, snapshot.node_changes.end, changes.end
        return self._rows


class NominatedAhead:
    """The nominated pods of at least this pod's priority, on the nodes of one snapshot.

    Cost: nothing until it is asked for; then, if all nominated pods count, as `NominationsByRow`, otherwise one step
    for each of them.
    """

    def __init__(self, pod: Pod, snapshot: Snapshot, nominations: NominatedPods) -> None:
        self._pod = pod
        self._snapshot = snapshot
        self._nominated = nominations
        self._rows: RowsOfNominations | None = None

    def on(self, row: int) -> Sequence[Pod]:
        """Return the pods nominated to one node."""
        return self._nominated.ahead_on(self._pod, self._snapshot.name(row))

    @property
    def rows(self) -> RowsOfNominations:
        """The nominations, by row."""
        # Each attempt asks once at least, and `cached_property` takes a lock.
        rows = self._rows
        if rows is None:
            rows = self._rows = self._nominated.ahead_by_row(self._pod, self._snapshot)
        return rows

    def __bool__(self) -> bool:
        return bool(self.rows.by_row)

    @property
    def column(self) -> BoolArray:
        """By row, whether any pod is nominated to the node. Shape: one entry per row of the snapshot."""
        return self.rows.column(len(self._snapshot.nodes))

    def counting_fork(self, snapshot: Snapshot) -> Snapshot:
        """Return a fork of that snapshot where the nominated pods count in the usage of their nodes, and no others."""
        return snapshot.fork_usage(*self.rows.usage(self._snapshot))

    def counting_fork_of(self, rows: Rows, snapshot: Snapshot) -> Snapshot:
        """Return the same for some rows, whether pods are nominated to them or not."""
        world = snapshot.fork_usage(rows)
        world.add_usage(*self.rows.usage_on(rows, self._snapshot))
        return world
