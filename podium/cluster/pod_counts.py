"""Counters of the pods on each row that match a selector, updated as pods are added and removed.

Owns the counters behind pod affinity and topology spreading. A new query makes one pass over the distinct sets of
labels; after that it is a look-up. Never recounts pods for an attempt.

Cost: 1 us for a pod that is added or removed, plus the update of those counters that its set of labels matches. Sets of
labels are maintained from the first pod on: building them for the first query would block the loop, 100 ms with 50,000
pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from podium.cluster.labels import LabelColumn
from podium.cluster.pod_changes import LINE_MAX, PodChange, PodChanges, undone
from podium.cluster.value_sums import ValueSums, sum_by_value
from podium.objects.core import Pod
from podium.objects.selectors import Selector

COUNTERS_MAX: Final = 512
"""How many queries are kept up to date. The least recently used one is dropped first."""

CHANGES_KEPT: Final = 4096
"""How many changes a fork can undo to get back to its own state. Beyond that it counts anew."""

IntArray: TypeAlias = NDArray[np.int64]
PodsByRow: TypeAlias = Sequence[Mapping[str, Pod]]


class PodQuery(NamedTuple):
    """The pods to count: those in these namespaces (None: all) that match the selector."""

    namespaces: frozenset[str] | None
    selector: Selector
    include_terminating: bool = True

    def takes(self, namespace: str, labels: Mapping[str, str], is_terminating: bool) -> bool:
        """Return True if a pod with these properties counts."""
        if is_terminating and not self.include_terminating:
            return False
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


class PodCounter(Protocol):
    """Counts pods by row. The counter of a fork also sees the fork's own changes."""

    @property
    def changes(self) -> PodChanges:
        """The log of added and removed pods."""
        ...

    def matching(self, query: PodQuery) -> IntArray:
        """Return the number of matching pods on each row. Must not be written to; valid until the next change.

        Shape: one entry per row of the snapshot.
        """
        ...

    def matching_by_value(self, query: PodQuery, column: LabelColumn) -> IntArray:
        """Return the number of matching pods on the nodes with each value of the label.

        Must not be written to; valid until the next change.

        Shape: one entry per value id of the column.
        """
        ...

    def add(self, row: int, pod: Pod) -> None:
        """Count a pod that was added to the row."""
        ...

    def remove(self, row: int, pod: Pod) -> None:
        """Count a pod that was removed from the row."""
        ...

    def fork(self, pods: PodsByRow) -> PodCounter:
        """Return the counter of a fork with these pods, which are the same until the fork changes."""
        ...


@dataclass(slots=True, eq=False)
class _Counter:
    counts: IntArray
    groups: set[_Group] = field(default_factory=set)
    sums: ValueSums = field(default_factory=ValueSums)

    def count(self, row: int, number: int) -> None:
        self.counts[row] += number
        self.sums.count(row, number)


_GroupKey: TypeAlias = frozenset[tuple[str, str] | None]
"""The labels, with None if the pods are being deleted."""

_group_keys: Final[WeakValueDictionary[int, _GroupKey]] = WeakValueDictionary()
"""The keys by their hash."""


@dataclass(slots=True, eq=False)
class _Group:
    """Pods that no query can distinguish: same namespace, labels and termination state."""

    namespace: str
    labels: Mapping[str, str]
    is_terminating: bool
    key: _GroupKey
    rows: dict[int, int] = field(default_factory=dict)
    counters: tuple[_Counter, ...] = ()


class PodCounts:
    """The counters of the live cluster.

    Args:
        pods: the current pods by row, a live view.
        changes_kept: how many changes a fork can undo to get back to its own state. Beyond that it counts anew.
    """

    def __init__(self, pods: PodsByRow, changes_kept: int = CHANGES_KEPT) -> None:
        self.changes = PodChanges(changes_kept)
        self._pods = pods
        self._groups: dict[str, dict[_GroupKey, _Group]] = {}
        self._counters: dict[PodQuery, _Counter] = {}
        for row, pods_on_row in enumerate(pods):
            for pod in pods_on_row.values():
                self._add(row, pod)

    def matching(self, query: PodQuery) -> IntArray:
        """Return the number of matching pods on each row."""
        return self._counter(query).counts

    def matching_by_value(self, query: PodQuery, column: LabelColumn) -> IntArray:
        """Return the number of matching pods on the nodes with each value of the label."""
        counter = self._counter(query)
        return counter.sums.of(column, counter.counts)

    def add(self, row: int, pod: Pod) -> None:
        """Count a pod that was added to the row."""
        self.changes.append(PodChange(row, pod, 1))
        self._add(row, pod)

    def remove(self, row: int, pod: Pod) -> None:
        """Count a pod that was removed from the row."""
        self.changes.append(PodChange(row, pod, -1))
        in_namespace = self._groups[pod.metadata.namespace]
        group = in_namespace[_group_key(pod)]
        # Groups know their counters, so that a pod costs its own counters, not all of them.
        for counter in group.counters:
            counter.count(row, -1)
        group.rows[row] -= 1
        if not group.rows[row]:
            del group.rows[row]
        if not group.rows:
            # By its own key, not one that is equal: comparing two of a pod with very many labels takes long.
            del in_namespace[group.key]
            for counter in group.counters:
                counter.groups.discard(group)
            if not in_namespace:
                del self._groups[pod.metadata.namespace]

    def fork(self, pods: PodsByRow) -> PodCounter:
        """Return the counter of a fork. Cost: nothing until it is used."""
        return ForkedPodCounts(self, pods)

    def statistics(self) -> dict[str, int]:
        """Return the number of counters, and of distinct sets of labels."""
        return {"counters": len(self._counters), "groups": sum(map(len, self._groups.values()))}

    # ------------------------------------------------------------ inside

    def _counter(self, query: PodQuery) -> _Counter:
        # Removed and put back, so that the first entry is the least recently used.
        counter = self._counters.pop(query, None)
        if counter is None:
            counter = self._count(query)
        self._counters[query] = counter  # the most recently used is last
        if len(counter.counts) < len(self._pods):
            counter.counts = grown(counter.counts, len(self._pods))
        return counter

    def _add(self, row: int, pod: Pod) -> None:
        in_namespace = self._groups.setdefault(pod.metadata.namespace, {})
        key = _group_key(pod)
        group = in_namespace.get(key)
        if group is None:
            key = _shared_key(key)
            group = in_namespace[key] = self._new_group(pod, key)
        group.rows[row] = group.rows.get(row, 0) + 1
        for counter in group.counters:
            # Rows are added in blocks, and a counter grows only when it is needed.
            if row >= len(counter.counts):
                counter.counts = grown(counter.counts, len(self._pods))
            counter.count(row, 1)

    def _new_group(self, pod: Pod, key: _GroupKey) -> _Group:
        meta = pod.metadata
        group = _Group(meta.namespace, meta.labels, pod.is_terminating, key)
        # Matching a selector is the costly part, and happens once for each set of labels, not for each pod.
        for query, counter in self._counters.items():
            if query.takes(meta.namespace, meta.labels, group.is_terminating):
                group.counters += (counter,)
                counter.groups.add(group)
        return group

    def _count(self, query: PodQuery) -> _Counter:
        if len(self._counters) >= COUNTERS_MAX:
            oldest = next(iter(self._counters))
            forgotten = self._counters.pop(oldest)
            for group in forgotten.groups:
                group.counters = tuple(counter for counter in group.counters if counter is not forgotten)
        counter = _Counter(np.zeros(len(self._pods), np.int64))
        groups = self._groups
        for namespace in groups if query.namespaces is None else query.namespaces:
            for group in groups.get(namespace, {}).values():
                if query.takes(group.namespace, group.labels, group.is_terminating):
                    group.counters += (counter,)
                    counter.groups.add(group)
                    for row, count in group.rows.items():
                        counter.counts[row] += count
        return counter


class ForkedPodCounts:
    """The counters of a fork: the original's, with its later changes undone and the fork's own changes applied.

    Args:
        original: None if the pods are to be counted anew.
        place: in a line of forks, each of the one before it.
    """

    def __init__(self, original: PodCounter | None, pods: PodsByRow, place: int = 1) -> None:
        self.changes = PodChanges()
        self._original = original
        self._since = 0 if original is None else original.changes.end
        self._pods = pods
        self._place = place
        self._counts: dict[PodQuery, tuple[IntArray, int]] = {}
        self._anew: PodCounts | None = None

    def matching(self, query: PodQuery) -> IntArray:
        """Return the number of matching pods on each row."""
        entry = self._counts.get(query)
        if entry is None:
            entry = self._inherit(query)
            if entry is None:
                # Counting anew in the fork costs one pass over the groups, for this and every later query.
                self._anew = self._anew or PodCounts(self._pods)
                return self._anew.matching(query)
        counts, position = entry
        if len(counts) < len(self._pods):
            counts = grown(counts, len(self._pods))
        # Only what has happened since the last question.
        _apply(counts, self.changes.since(position) or (), query)
        self._counts[query] = counts, self.changes.end
        return counts

    def matching_by_value(self, query: PodQuery, column: LabelColumn) -> IntArray:
        """Return the number of matching pods on the nodes with each value of the label."""
        return sum_by_value(column, self.matching(query))

    def add(self, row: int, pod: Pod) -> None:
        """Count a pod that was added to the row."""
        self.changes.append(PodChange(row, pod, 1))
        if self._anew is not None:
            self._anew.add(row, pod)

    def remove(self, row: int, pod: Pod) -> None:
        """Count a pod that was removed from the row."""
        self.changes.append(PodChange(row, pod, -1))
        if self._anew is not None:
            self._anew.remove(row, pod)

    def fork(self, pods: PodsByRow) -> PodCounter:
        """Return the counter of a fork of this fork."""
        is_last = self._place == LINE_MAX
        return ForkedPodCounts(None, pods) if is_last else ForkedPodCounts(self, pods, self._place + 1)

    def _inherit(self, query: PodQuery) -> tuple[IntArray, int] | None:
        """Return the counts when the fork was made, or None if too many changes since would have to be undone."""
        changes = None if self._original is None else self._original.changes.since(self._since)
        if self._original is None or changes is None:
            return None
        # Copied, since the original's array is that of the live cluster.
        counts = self._original.matching(query).copy()
        _apply(counts, undone(changes), query)
        return counts, 0


def _group_key(pod: Pod) -> _GroupKey:
    labels = pod.metadata.labels.items()
    return frozenset((*labels, None)) if pod.is_terminating else frozenset(labels)


def _shared_key(key: _GroupKey) -> _GroupKey:
    """Return an equal key that another cluster of this process may have: many run the same applications."""
    shared_key = _group_keys.setdefault(hash(key), key)
    return shared_key if shared_key == key else key


def grown(counts: IntArray, size: int) -> IntArray:
    """Extend counts with zeros to this many rows. Shape: `size` entries."""
    larger = np.zeros(size, np.int64)
    larger[: len(counts)] = counts
    return larger


def _apply(counts: IntArray, changes: Iterable[PodChange], query: PodQuery) -> None:
    for row, pod, sign in changes:
        if query.takes(pod.metadata.namespace, pod.metadata.labels, pod.is_terminating):
            counts[row] += sign
