"""The affinity terms of existing pods by row, updated as pods are added and removed.

Owns the other direction of pod affinity: the terms of existing pods that apply to an incoming pod. Each distinct term
is matched once, not once per pod, and only if the incoming pod's namespace and labels can satisfy it at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from podium.cluster.affinity_term import AffinityTerm
from podium.cluster.affinity_terms import PodTerm, TermKind, pod_terms
from podium.cluster.labels import LabelColumn
from podium.cluster.pod_changes import LINE_MAX, PodChange, PodChanges, undone
from podium.cluster.pod_counts import IntArray, PodsByRow, grown
from podium.cluster.value_sums import ValueSums, sum_by_value
from podium.objects.core import Pod
from podium.objects.selectors import Operator

COLUMNS_MAX: Final = 512
"""For how many terms the counts are also kept as a column. The least recently used one is dropped first."""

CHANGES_KEPT: Final = 256
"""How many changes a fork can undo to get back to its own state. Forks are short-lived, and each kept change keeps
about 4 KB of derived values of the pod's spec alive, even if it is the last pod of that spec."""

ColumnOf: TypeAlias = Callable[[str], LabelColumn]
"""Label key → the column of that label."""

_Pair: TypeAlias = tuple[str, str] | None
_BucketKey: TypeAlias = tuple[str | None, _Pair]


class IncomingPod(NamedTuple):
    """The properties of an incoming pod that terms match."""

    namespace: str
    labels: Mapping[str, str]
    namespace_labels: Mapping[str, str]

    def is_selected_by(self, term: AffinityTerm) -> bool:
        """Return True if the term selects this pod."""
        return term.matches(self.namespace, self.labels, self.namespace_labels)


class TermCounter(Protocol):
    """Counts the terms of existing pods by row. The counter of a fork also sees the fork's own changes."""

    @property
    def changes(self) -> PodChanges:
        """The log of pods with terms that were added or removed."""
        ...

    @property
    def may_have_any(self) -> bool:
        """False if it is certain, without counting, that no pod has any term."""
        ...

    def matching(self, incoming_pod: IncomingPod, kinds: Iterable[TermKind]) -> dict[PodTerm, IntArray]:
        """Return the terms of these kinds that select the incoming pod, with the number of their pods by row.

        The arrays must not be written to, and are valid until the next change.

        Shape: each array has one entry per row of the snapshot.
        """
        ...

    def matching_by_value(
        self, incoming_pod: IncomingPod, kinds: Iterable[TermKind], column_of: ColumnOf
    ) -> Sequence[tuple[PodTerm, IntArray]]:
        """Return terms as `matching` does, with the number of pods for each value of the term's topology key.

        Shape: each array has one entry per value id of the label's column.
        """
        ...

    def add(self, row: int, pod: Pod) -> None:
        """Count a pod that was added to the row."""
        ...

    def remove(self, row: int, pod: Pod) -> None:
        """Count a pod that was removed from the row."""
        ...

    def fork(self, pods: PodsByRow) -> TermCounter:
        """Return the counter of a fork with these pods, which are the same until the fork changes."""
        ...


@dataclass(slots=True, eq=False)
class _PodsWithTerm:
    """The counts by row of pods with one term. `column` holds the same as an array once it has been needed."""

    pod_term: PodTerm
    rows: dict[int, int] = field(default_factory=dict)
    column: IntArray | None = None
    sums: ValueSums = field(default_factory=ValueSums)

    def count(self, row: int, sign: int) -> None:
        self.sums.count(row, sign)
        remainder = self.rows.get(row, 0) + sign
        if remainder:
            self.rows[row] = remainder
        else:
            del self.rows[row]
        # A column that is not asked for any more is dropped, not kept up to date.
        if self.column is not None:
            if row < len(self.column):
                self.column[row] = remainder
            else:
                self.column = None

    def by_row(self, size: int) -> IntArray:
        if self.column is None or len(self.column) < size:
            self.column = np.zeros(size, np.int64)
            self.column[list(self.rows)] = list(self.rows.values())
        return self.column


_Buckets: TypeAlias = dict[_BucketKey, dict[PodTerm, _PodsWithTerm]]
"""The terms of one kind by what a pod must have for them to select it."""


class ExistingTerms:
    """The terms in the live cluster."""

    def __init__(self, pods: PodsByRow) -> None:
        self.changes = PodChanges(CHANGES_KEPT)
        self._pods = pods
        self._pods_with_term: dict[PodTerm, _PodsWithTerm] = {}
        self._buckets: dict[TermKind, _Buckets] = {}
        """Those of the kinds that some pod has, usually few."""
        self._columns: dict[PodTerm, _PodsWithTerm] = {}

    @property
    def may_have_any(self) -> bool:
        """At least one pod has a term."""
        return bool(self._pods_with_term)

    def matching(self, incoming_pod: IncomingPod, kinds: Iterable[TermKind]) -> dict[PodTerm, IntArray]:
        """Return the terms that select the incoming pod, with the number of pods on each row that have them."""
        if not self._pods_with_term:
            return {}
        return {entry.pod_term: self._column(entry) for entry in self._matching(incoming_pod, kinds)}

    def matching_by_value(
        self, incoming_pod: IncomingPod, kinds: Iterable[TermKind], column_of: ColumnOf
    ) -> Sequence[tuple[PodTerm, IntArray]]:
        """Return the terms that select the incoming pod, with the number of pods that have them by topology value."""
        if not self._pods_with_term:
            return ()
        return [
            (
                entry.pod_term,
                entry.sums.of(column_of(entry.pod_term.term.topology_key), self._column(entry)),
            )
            for entry in self._matching(incoming_pod, kinds)
        ]

    def add(self, row: int, pod: Pod) -> None:
        """Count a pod that was added to the row."""
        existing_terms = pod_terms(pod).for_other_pods
        if not existing_terms:
            return
        # Only pods with terms: the log is short, and the many others would push these out of it.
        self.changes.append(PodChange(row, pod, 1))
        for pod_term in existing_terms:
            entry = self._pods_with_term.get(pod_term)
            if entry is None:
                entry = self._pods_with_term[pod_term] = _PodsWithTerm(pod_term)
                buckets = self._buckets.setdefault(pod_term.kind, {})
                for key in _buckets_of(pod_term):
                    buckets.setdefault(key, {})[pod_term] = entry
            entry.count(row, 1)

    def remove(self, row: int, pod: Pod) -> None:
        """Count a pod that was removed from the row."""
        existing_terms = pod_terms(pod).for_other_pods
        if not existing_terms:
            return
        self.changes.append(PodChange(row, pod, -1))
        for pod_term in existing_terms:
            entry = self._pods_with_term[pod_term]
            entry.count(row, -1)
            if not entry.rows:
                self._forget(pod_term)

    def fork(self, pods: PodsByRow) -> TermCounter:
        """Return the counter of a fork. Cost: nothing until it is used."""
        return ForkedExistingTerms(self, pods)

    @classmethod
    def of(cls, pods: PodsByRow) -> ExistingTerms:
        """Return the terms of these pods, counted anew."""
        existing_terms = cls(pods)
        for row, on_row in enumerate(pods):
            for pod in on_row.values():
                existing_terms.add(row, pod)
        return existing_terms

    # ------------------------------------------------------------ inside

    def _matching(self, incoming_pod: IncomingPod, kinds: Iterable[TermKind]) -> Iterator[_PodsWithTerm]:
        for kind in kinds:
            if buckets := self._buckets.get(kind):
                for entry in _candidates(buckets, incoming_pod):
                    if incoming_pod.is_selected_by(entry.pod_term.term):
                        yield entry

    def _column(self, entry: _PodsWithTerm) -> IntArray:
        pod_term = entry.pod_term
        # Dictionaries keep the order of insertion, so that the first entry is the least recently used.
        if self._columns.pop(pod_term, None) is None and len(self._columns) >= COLUMNS_MAX:
            oldest = next(iter(self._columns))
            self._columns.pop(oldest).column = None
        self._columns[pod_term] = entry
        return entry.by_row(len(self._pods))

    def _forget(self, pod_term: PodTerm) -> None:
        del self._pods_with_term[pod_term]
        self._columns.pop(pod_term, None)
        buckets = self._buckets[pod_term.kind]
        for key in _buckets_of(pod_term):
            bucket = buckets[key]
            del bucket[pod_term]
            if not bucket:
                del buckets[key]


_BUCKETS_MAX: Final = 16
"""Up to how many namespaces, and values of a label, a term is indexed by them."""


def _buckets_of(pod_term: PodTerm) -> Iterable[_BucketKey]:
    """Return the namespaces and labels under which the term is indexed; None for any, or too many."""
    term = pod_term.term
    # A selector of nothing needs no index entry; its pod only has the term.
    if term.selector.nothing:
        return ()
    is_named = term.namespace_selector.nothing and len(term.namespaces) <= _BUCKETS_MAX
    namespaces: Iterable[str | None] = term.namespaces if is_named else (None,)
    pairs: list[_Pair] = [None]
    for requirement in term.selector.requirements:
        if requirement.operator is Operator.IN and len(requirement.values) <= _BUCKETS_MAX:
            pairs = [(requirement.key, value) for value in requirement.values]
            # One requirement is index enough; the term itself is checked for each candidate.
            break
    return [(namespace, pair) for namespace in namespaces for pair in pairs]


def _candidates(buckets: _Buckets, incoming_pod: IncomingPod) -> Iterator[_PodsWithTerm]:
    # A pod can be selected only through its namespace or one of its labels, or by a term that has neither as its
    # index.
    for namespace in (incoming_pod.namespace, None):
        for pair in (None, *incoming_pod.labels.items()):
            bucket = buckets.get((namespace, pair))
            if bucket is not None:
                yield from bucket.values()


class ForkedExistingTerms:
    """The terms in a fork: those of the original with its later changes undone and the fork's own changes applied.

    Args: as `ForkedPodCounts`.
    """

    def __init__(self, original: TermCounter | None, pods: PodsByRow, place: int = 1) -> None:
        self.changes = PodChanges()
        self._original = original
        self._since = 0 if original is None else original.changes.end
        self._pods = pods
        self._place = place
        self._own: dict[PodTerm, dict[int, int]] = {}
        self._anew: ExistingTerms | None = None

    @property
    def may_have_any(self) -> bool:
        """Always True: finding out would cost as much as counting."""
        return True

    def matching(self, incoming_pod: IncomingPod, kinds: Iterable[TermKind]) -> dict[PodTerm, IntArray]:
        """Return the terms that select the incoming pod, with the number of pods on each row that have them."""
        kinds = frozenset(kinds)
        if self._anew is not None:
            return self._anew.matching(incoming_pod, kinds)
        changes = None if self._original is None else self._original.changes.since(self._since)
        # The original has changed too much since: its log no longer reaches back to the fork.
        if self._original is None or changes is None:
            self._anew = ExistingTerms.of(self._pods)
            return self._anew.matching(incoming_pod, kinds)
        counts_by_term = self._original.matching(incoming_pod, kinds)
        size, differences = len(self._pods), self._own
        if changes:
            # A copy, because the changes to undo are not the fork's own.
            differences = {pod_term: dict(rows) for pod_term, rows in self._own.items()}
            for row, pod, sign in undone(changes):
                _note(differences, row, pod, sign)
        for pod_term, rows in differences.items():
            if pod_term.kind in kinds and incoming_pod.is_selected_by(pod_term.term):
                former_counts = counts_by_term.get(pod_term)
                counts = np.zeros(size, np.int64) if former_counts is None else grown(former_counts, size)
                counts[list(rows)] += list(rows.values())
                counts_by_term[pod_term] = counts
        return {
            pod_term: counts if len(counts) == size else grown(counts, size)
            for pod_term, counts in counts_by_term.items()
            if counts.any()
        }

    def matching_by_value(
        self, incoming_pod: IncomingPod, kinds: Iterable[TermKind], column_of: ColumnOf
    ) -> Sequence[tuple[PodTerm, IntArray]]:
        """Return the terms that select the incoming pod, with the number of pods that have them by topology value."""
        counts_by_term = self.matching(incoming_pod, kinds)
        return [
            (pod_term, sum_by_value(column_of(pod_term.term.topology_key), by_row))
            for pod_term, by_row in counts_by_term.items()
        ]

    def add(self, row: int, pod: Pod) -> None:
        """Count a pod that was added to the row."""
        self._change(PodChange(row, pod, 1))

    def remove(self, row: int, pod: Pod) -> None:
        """Count a pod that was removed from the row."""
        self._change(PodChange(row, pod, -1))

    def fork(self, pods: PodsByRow) -> TermCounter:
        """Return the counter of a fork of this fork."""
        # Each fork asks its original; in a long line every question would pass through all of them.
        is_last = self._place == LINE_MAX
        return ForkedExistingTerms(None, pods) if is_last else ForkedExistingTerms(self, pods, self._place + 1)

    def _change(self, change: PodChange) -> None:
        row, pod, sign = change
        if not pod_terms(pod).for_other_pods:
            return
        self.changes.append(change)
        _note(self._own, row, pod, sign)
        if self._anew is not None:
            (self._anew.add if sign > 0 else self._anew.remove)(row, pod)


def _note(counts: dict[PodTerm, dict[int, int]], row: int, pod: Pod, sign: int) -> None:
    for pod_term in pod_terms(pod).for_other_pods:
        rows = counts.setdefault(pod_term, {})
        rows[row] = rows.get(row, 0) + sign
