"""Which affinity terms the pods on each row carry, kept up to date as pods come and go.

Owns the other direction of pod affinity: what running pods want of a newcomer. A newcomer is held against each distinct
term once, not against each pod, and only against terms that its namespace and labels can satisfy at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from podium.cluster.affinity_term import AffinityTerm
from podium.cluster.affinity_terms import CarriedTerm, TermKind, pod_terms
from podium.cluster.labels import LabelColumn
from podium.cluster.pod_changes import PodChange, PodChanges, undone
from podium.cluster.pod_counts import IntArray, PodsByRow, grown
from podium.cluster.value_sums import ValueSums, summed
from podium.objects.core import Pod
from podium.objects.selectors import Operator

COLUMNS_MAX: Final = 512
"""For how many terms the counts are kept as a column too; the one not asked for the longest goes first."""

CHANGES_KEPT: Final = 256
"""For how many changes a fork can reckon back. Forks do not live long, and each change keeps alive what was worked out
about the pod's spec, some 4 KB, though it may be the last of its kind."""

ColumnOf: TypeAlias = Callable[[str], LabelColumn]
"""The column of a label."""

_Pair: TypeAlias = tuple[str, str] | None
_BucketKey: TypeAlias = tuple[TermKind, str | None, _Pair]


class IncomingPod(NamedTuple):
    """What terms look at in a pod that is to be placed."""

    namespace: str
    labels: Mapping[str, str]
    namespace_labels: Mapping[str, str]

    def is_meant_by(self, term: AffinityTerm) -> bool:
        """Whether the term means this pod."""
        return term.matches(self.namespace, self.labels, self.namespace_labels)


class TermCounter(Protocol):
    """Counts carried terms by row; that of a fork sees the fork's own changes too."""

    @property
    def changes(self) -> PodChanges:
        """The pods with terms that came and went."""
        ...

    @property
    def may_have_any(self) -> bool:
        """False where it is plain to see that no pod has any term."""
        ...

    def meaning(self, newcomer: IncomingPod, kinds: Iterable[TermKind]) -> dict[CarriedTerm, IntArray]:
        """The terms of these kinds that mean the newcomer, with the number of pods on each row that carry them.

        The arrays are to be read only, and are good until the next change.
        """
        ...

    def meaning_by_value(
        self, newcomer: IncomingPod, kinds: Iterable[TermKind], column_of: ColumnOf
    ) -> Sequence[tuple[CarriedTerm, IntArray]]:
        """As `meaning`, with the number of pods for each value of the label that is the term's topology key."""
        ...

    def add(self, row: int, pod: Pod) -> None:
        """A pod has come to the row."""
        ...

    def remove(self, row: int, pod: Pod) -> None:
        """A pod has gone from the row."""
        ...

    def fork(self, pods: PodsByRow) -> TermCounter:
        """The counts of a private world that has these pods, which so far are the same."""
        ...


@dataclass(slots=True, eq=False)
class _Carriers:
    """The rows on which pods carry a term; `column` has the same once it has been asked for."""

    carried: CarriedTerm
    rows: dict[int, int] = field(default_factory=dict)
    column: IntArray | None = None
    sums: ValueSums = field(default_factory=ValueSums)

    def count(self, row: int, sign: int) -> None:
        self.sums.count(row, sign)
        left = self.rows.get(row, 0) + sign
        if left:
            self.rows[row] = left
        else:
            del self.rows[row]
        if self.column is not None:
            if row < len(self.column):
                self.column[row] = left
            else:
                self.column = None

    def by_row(self, size: int) -> IntArray:
        if self.column is None or len(self.column) < size:
            self.column = np.zeros(size, np.int64)
            self.column[list(self.rows)] = list(self.rows.values())
        return self.column


class ExistingTerms:
    """The terms in the live cluster."""

    def __init__(self, pods: PodsByRow) -> None:
        self.changes = PodChanges(CHANGES_KEPT)
        self._pods = pods
        self._carriers: dict[CarriedTerm, _Carriers] = {}
        self._buckets: dict[_BucketKey, dict[CarriedTerm, _Carriers]] = {}
        self._columns: dict[CarriedTerm, _Carriers] = {}

    @property
    def may_have_any(self) -> bool:
        """Whether some pod has a term."""
        return bool(self._carriers)

    def meaning(self, newcomer: IncomingPod, kinds: Iterable[TermKind]) -> dict[CarriedTerm, IntArray]:
        """The terms that mean the newcomer, with the number of pods on each row that carry them."""
        if not self._carriers:
            return {}
        return {carriers.carried: self._column(carriers) for carriers in self._meaning(newcomer, kinds)}

    def meaning_by_value(
        self, newcomer: IncomingPod, kinds: Iterable[TermKind], column_of: ColumnOf
    ) -> Sequence[tuple[CarriedTerm, IntArray]]:
        """The terms that mean the newcomer, with the number of pods that carry them by topology value."""
        if not self._carriers:
            return ()
        return [
            (carriers.carried, carriers.sums.of(column_of(carriers.carried.term.topology_key), self._column(carriers)))
            for carriers in self._meaning(newcomer, kinds)
        ]

    def add(self, row: int, pod: Pod) -> None:
        """A pod has come to the row."""
        existing_terms = pod_terms(pod).carried
        if not existing_terms:
            return
        self.changes.append(PodChange(row, pod, 1))
        for carried in existing_terms:
            carriers = self._carriers.get(carried)
            if carriers is None:
                carriers = self._carriers[carried] = _Carriers(carried)
                for key in _buckets_of(carried):
                    self._buckets.setdefault(key, {})[carried] = carriers
            carriers.count(row, 1)

    def remove(self, row: int, pod: Pod) -> None:
        """A pod has gone from the row."""
        existing_terms = pod_terms(pod).carried
        if not existing_terms:
            return
        self.changes.append(PodChange(row, pod, -1))
        for carried in existing_terms:
            carriers = self._carriers[carried]
            carriers.count(row, -1)
            if not carriers.rows:
                self._forget(carried)

    def fork(self, pods: PodsByRow) -> TermCounter:
        """The counts of a private world. Cost: nothing until it is asked."""
        return ForkedCarriedTerms(self, pods)

    @classmethod
    def of(cls, pods: PodsByRow) -> ExistingTerms:
        """The terms of these pods, counted anew."""
        counted = cls(pods)
        for row, on_row in enumerate(pods):
            for pod in on_row.values():
                counted.add(row, pod)
        return counted

    # ------------------------------------------------------------ inside

    def _meaning(self, newcomer: IncomingPod, kinds: Iterable[TermKind]) -> Iterator[_Carriers]:
        for kind in kinds:
            for carriers in self._candidates(kind, newcomer):
                if newcomer.is_meant_by(carriers.carried.term):
                    yield carriers

    def _candidates(self, kind: TermKind, newcomer: IncomingPod) -> Iterator[_Carriers]:
        for namespace in (newcomer.namespace, None):
            for pair in (None, *newcomer.labels.items()):
                bucket = self._buckets.get((kind, namespace, pair))
                if bucket is not None:
                    yield from bucket.values()

    def _column(self, carriers: _Carriers) -> IntArray:
        carried = carriers.carried
        if self._columns.pop(carried, None) is None and len(self._columns) >= COLUMNS_MAX:
            oldest = next(iter(self._columns))
            self._columns.pop(oldest).column = None
        self._columns[carried] = carriers
        return carriers.by_row(len(self._pods))

    def _forget(self, carried: CarriedTerm) -> None:
        del self._carriers[carried]
        self._columns.pop(carried, None)
        for key in _buckets_of(carried):
            bucket = self._buckets[key]
            del bucket[carried]
            if not bucket:
                del self._buckets[key]


_BUCKETS_MAX: Final = 16
"""How many namespaces, and how many values of a label, a term is found by."""


def _buckets_of(carried: CarriedTerm) -> Iterable[_BucketKey]:
    """Under which namespaces and labels to look for the term; None where any will do, or where they are many."""
    term = carried.term
    if term.selector.nothing:
        return ()
    is_named = term.namespace_selector.nothing and len(term.namespaces) <= _BUCKETS_MAX
    namespaces: Iterable[str | None] = term.namespaces if is_named else (None,)
    pairs: list[_Pair] = [None]
    for requirement in term.selector.requirements:
        if requirement.operator is Operator.IN and len(requirement.values) <= _BUCKETS_MAX:
            pairs = [(requirement.key, value) for value in requirement.values]
            break
    return [(carried.kind, namespace, pair) for namespace in namespaces for pair in pairs]


class ForkedCarriedTerms:
    """The terms in a fork: those of the original, without what changed there since, with the fork's own changes."""

    def __init__(self, original: TermCounter, pods: PodsByRow) -> None:
        self.changes = PodChanges()
        self._original = original
        self._since = original.changes.end
        self._pods = pods
        self._own: dict[CarriedTerm, dict[int, int]] = {}
        self._anew: ExistingTerms | None = None

    @property
    def may_have_any(self) -> bool:
        """True: finding out is for those who want to know more."""
        return True

    def meaning(self, newcomer: IncomingPod, kinds: Iterable[TermKind]) -> dict[CarriedTerm, IntArray]:
        """The terms that mean the newcomer, with the number of pods on each row that carry them."""
        kinds = frozenset(kinds)
        if self._anew is not None:
            return self._anew.meaning(newcomer, kinds)
        changed = self._original.changes.since(self._since)
        if changed is None:
            self._anew = ExistingTerms.of(self._pods)
            return self._anew.meaning(newcomer, kinds)
        found = self._original.meaning(newcomer, kinds)
        size, differences = len(self._pods), self._own
        if changed:
            differences = {carried: dict(rows) for carried, rows in self._own.items()}
            for row, pod, sign in undone(changed):
                _note(differences, row, pod, sign)
        for carried, rows in differences.items():
            if carried.kind in kinds and newcomer.is_meant_by(carried.term):
                known = found.get(carried)
                counts = np.zeros(size, np.int64) if known is None else grown(known, size)
                counts[list(rows)] += list(rows.values())
                found[carried] = counts
        return {
            carried: counts if len(counts) == size else grown(counts, size)
            for carried, counts in found.items()
            if counts.any()
        }

    def meaning_by_value(
        self, newcomer: IncomingPod, kinds: Iterable[TermKind], column_of: ColumnOf
    ) -> Sequence[tuple[CarriedTerm, IntArray]]:
        """The terms that mean the newcomer, with the number of pods that carry them by topology value."""
        found = self.meaning(newcomer, kinds)
        return [(each, summed(column_of(each.term.topology_key), by_row)) for each, by_row in found.items()]

    def add(self, row: int, pod: Pod) -> None:
        """A pod has come to the row."""
        self._change(PodChange(row, pod, 1))

    def remove(self, row: int, pod: Pod) -> None:
        """A pod has gone from the row."""
        self._change(PodChange(row, pod, -1))

    def fork(self, pods: PodsByRow) -> TermCounter:
        """The counts of a private world within this one."""
        return ForkedCarriedTerms(self, pods)

    def _change(self, change: PodChange) -> None:
        row, pod, sign = change
        if not pod_terms(pod).carried:
            return
        self.changes.append(change)
        _note(self._own, row, pod, sign)
        if self._anew is not None:
            (self._anew.add if sign > 0 else self._anew.remove)(row, pod)


def _note(counts: dict[CarriedTerm, dict[int, int]], row: int, pod: Pod, sign: int) -> None:
    for carried in pod_terms(pod).carried:
        rows = counts.setdefault(carried, {})
        rows[row] = rows.get(row, 0) + sign
