"""Nominated pods, as they count for one attempt.

Owns the forks of the snapshot in which nominated pods are on their nodes already. Never decides whether the pod fits.

Source: kubernetes pkg/scheduler/framework/runtime/framework.go (addGENominatedPods), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple, Protocol, Self

import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.cluster.pod_usage import PodUsage, readable_pod_usage
from podium.cluster.snapshot import BoolArray
from podium.lib.change_log import ChangeLog
from podium.objects.core import Pod


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


_node_name = attrgetter("node_name")


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
    """What nominated pods will add to the usage of their nodes, on each row that has any.

    Shape: `amounts` has a row for each usage column of the snapshot, and a column for each of `rows`.
    """

    rows: Rows
    amounts: IntArray

    @classmethod
    def of(cls, usages: Mapping[int, Sequence[PodUsage]], snapshot: Snapshot) -> Self:
        """Return the sums of these usages, by row."""
        counts = np.fromiter(map(len, usages.values()), np.intp, len(usages))
        amounts = snapshot.usage_of([*chain.from_iterable(usages.values())])
        if len(counts) < amounts.shape[1]:
            amounts = np.add.reduceat(amounts, np.cumsum(counts) - counts, axis=1)
        return cls(np.fromiter(usages, np.intp, len(usages)), amounts)

    def with_rows(self, rows: Iterable[int], usages: Mapping[int, Sequence[PodUsage]], snapshot: Snapshot) -> Self:
        """Return the sums after a change on some rows, given the usages on all."""
        is_changed = np.zeros(len(snapshot.nodes), np.bool_)
        is_changed[[*rows]] = True
        stays = ~is_changed[self.rows]
        new = type(self).of({row: usages[row] for row in rows if row in usages}, snapshot)
        kept_rows, kept_amounts = self.rows[stays], self.amounts.compress(stays, axis=1)
        return type(self)(np.concatenate((kept_rows, new.rows)), np.concatenate((kept_amounts, new.amounts), axis=1))


class RowsOfNominations:
    """Nominated pods, and their usages, by row. Never changed."""

    __slots__ = ("_usage", "pods", "usages")

    def __init__(self, pods: Mapping[int, tuple[Pod, ...]], usages: Mapping[int, tuple[PodUsage, ...]]) -> None:
        self.pods = pods
        self.usages = usages
        self._usage: UsageOnRows | None = None

    @classmethod
    def of(cls, nominations: Sequence[Nomination], snapshot: Snapshot) -> Self:
        """Return these nominations to nodes of the snapshot."""
        by_row: dict[int, list[Nomination]] = {}
        for row, nomination in zip(map(snapshot.row_of.get, map(_node_name, nominations)), nominations, strict=True):
            if row is not None:
                by_row.setdefault(row, []).append(nomination)
        return cls(
            {row: tuple(nomination.pod for nomination in row_nominations) for row, row_nominations in by_row.items()},
            {row: tuple(item.pod_usage for item in row_nominations) for row, row_nominations in by_row.items()},
        )

    def usage(self, snapshot: Snapshot) -> UsageOnRows:
        """Return the sums of the usages by row, in the columns of this snapshot, always the same one."""
        if self._usage is None:
            self._usage = UsageOnRows.of(self.usages, snapshot)
        return self._usage

    def with_rows(self, rows: Mapping[int, Sequence[Nomination]], snapshot: Snapshot) -> RowsOfNominations:
        """Return the nominations after those to some rows have changed; they may have none any more."""
        pods, usages = dict(self.pods), dict(self.usages)
        for row, row_nominations in rows.items():
            if row_nominations:
                pods[row] = tuple(nomination.pod for nomination in row_nominations)
                usages[row] = tuple(nomination.pod_usage for nomination in row_nominations)
            else:
                pods.pop(row, None)
                usages.pop(row, None)
        nominations = RowsOfNominations(pods, usages)
        if self._usage is not None:
            nominations._usage = self._usage.with_rows(rows, usages, snapshot)
        return nominations


NO_NOMINATIONS: Final = RowsOfNominations({}, {})


class NominationsByRow:
    """All nominations by row of one snapshot, kept up to date: while a thousand pods preempt, hundreds are nominated.

    The pods of a row are the same tuple until the nominations to its node change.

    Cost: a copy of two mappings where nominations have changed, and one step for each nomination where nodes have.
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
        self._rows_of_pods: RowsOfNominations | None = None

    def on(self, row: int) -> Sequence[Pod]:
        """Return the pods nominated to one node."""
        return self._nominated.ahead_on(self._pod, self._snapshot.name(row))

    @property
    def _by_row(self) -> RowsOfNominations:
        # Each attempt asks once at least, and `cached_property` takes a lock.
        rows = self._rows_of_pods
        if rows is None:
            rows = self._rows_of_pods = self._nominated.ahead_by_row(self._pod, self._snapshot)
        return rows

    @property
    def by_row(self) -> Mapping[int, tuple[Pod, ...]]:
        """The nominated pods of each node that has any."""
        return self._by_row.pods

    def __bool__(self) -> bool:
        return bool(self._by_row.pods)

    @cached_property
    def column(self) -> BoolArray:
        """By row, whether any pod is nominated to the node. Shape: one entry per row of the snapshot."""
        column = np.zeros(len(self._snapshot.nodes), np.bool_)
        column[[*self._by_row.pods]] = True
        return column

    def counting_fork(self, snapshot: Snapshot) -> Snapshot:
        """Return a fork of that snapshot where the nominated pods count in the usage of their nodes, and no others."""
        return snapshot.fork_usage(*self._by_row.usage(self._snapshot))

    def counting_fork_of(self, rows: Rows, snapshot: Snapshot) -> Snapshot:
        """Return the same for some rows, whether pods are nominated to them or not."""
        rows_of_nominated, amounts = self._by_row.usage(self._snapshot)
        is_asked = np.zeros(len(snapshot.nodes), np.bool_)
        is_asked[rows] = True
        is_counted = is_asked[rows_of_nominated]
        world = snapshot.fork_usage(rows)
        world.add_usage(rows_of_nominated[is_counted], amounts.compress(is_counted, axis=1))
        return world
