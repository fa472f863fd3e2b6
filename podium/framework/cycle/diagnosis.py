"""Why a pod fits on no node: which plugin rejected which nodes, and the message for users.

Source: kubernetes pkg/scheduler/framework/types.go (Diagnosis, FitError), v1.36.2.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray, Rows
from podium.framework.contract.status import Code, PluginError, Status, failure_text
from podium.framework.profile.forms import Explain, one_verdict_each

_FEW: Final = 256
"""Verdicts below this are counted without sorting them."""
NO_REASON = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
"""The status of nodes that were not examined."""


class Rejection:
    """Rows that filters rejected.

    Shape: `verdicts` and `rows` are of one length; `meanings` holds at least these verdicts.
    """

    __slots__ = ("_counts", "meanings", "rows", "verdicts")

    def __init__(self, rows: Rows, verdicts: IntArray, meanings: Mapping[int, Status]) -> None:
        self.rows, self.verdicts, self.meanings = rows, verdicts, meanings
        self._counts: tuple[tuple[int, int], ...] | None = None

    @classmethod
    def of(cls, rows: Rows, verdicts: IntArray, explain: Explain) -> Rejection:
        """A rejection from verdicts. `explain` is called once for each distinct verdict."""
        counts = _counted(verdicts)
        rejection = cls(rows, verdicts, {verdict: explain(verdict) for verdict, _ in counts})
        rejection._counts = counts
        return rejection

    @property
    def counts(self) -> tuple[tuple[int, int], ...]:
        """Each verdict once, in ascending order, with the number of its rows."""
        if self._counts is None:
            self._counts = _counted(self.verdicts)
        return self._counts

    def counted(self) -> list[tuple[Status, int]]:
        """Each status with the number of its rows."""
        return [(self.meanings[verdict], count) for verdict, count in self.counts]

    def by_row(self) -> Iterator[tuple[int, Status]]:
        """Each row and its status."""
        for row, verdict in zip(self.rows.tolist(), self.verdicts.tolist(), strict=True):
            yield row, self.meanings[verdict]

    def only(self, kept: NDArray[np.bool_] | slice) -> Rejection:
        """Only the entries at these positions."""
        return Rejection(self.rows[kept], self.verdicts[kept], self.meanings)

    def without(self, row: int) -> Rejection:
        """All entries but those of that row."""
        kept = self.rows != row
        return self if kept.all() else self.only(kept)

    def codes(self) -> IntArray | int:
        """The status code of each row; a single one if all have the same."""
        codes = [int(status.code) for status, _ in self.counted()]
        if len(set(codes)) == 1:
            return codes[0]
        distinct = np.array([verdict for verdict, _ in self.counts], np.int64)
        if distinct[0] >= 0 and distinct[-1] < _FEW:
            by_verdict = np.zeros(_FEW, np.int64)
            by_verdict[distinct] = codes
            return by_verdict.take(self.verdicts)
        return np.array(codes, np.int64)[np.searchsorted(distinct, self.verdicts)]


def _counted(verdicts: IntArray) -> tuple[tuple[int, int], ...]:
    if not len(verdicts):
        return ()
    first = verdicts.item(0)
    count = np.count_nonzero(verdicts == first)
    if count == len(verdicts):
        return ((first, len(verdicts)),)
    if np.minimum.reduce(verdicts) >= 0 and np.maximum.reduce(verdicts) < _FEW:
        by_verdict = np.bincount(verdicts.astype(np.intp, copy=False))
        return tuple((verdict, by_verdict.item(verdict)) for verdict in by_verdict.nonzero()[0].tolist())
    distinct, counts = np.unique(verdicts, return_counts=True)
    return tuple(zip(distinct.tolist(), counts.tolist(), strict=True))


FilterOutcome: TypeAlias = tuple[NDArray[np.bool_], Rejection] | Status | None
"""The nodes that a filter rejected, or the status of the one node that it was asked about; None if all pass."""


def by_status(outcome: FilterOutcome, nodes: int) -> Iterator[tuple[Status | None, int]]:
    """A status of each code in the outcome, with the number of its nodes; None stands for success."""
    if not isinstance(outcome, tuple):
        yield outcome, nodes
        return
    counts: Counter[Code] = Counter()
    statuses: dict[Code, Status] = {}
    for status, count in outcome[1].counted():
        counts[status.code] += count
        statuses[status.code] = status
    if passing := nodes - counts.total():
        yield None, passing
    for code, count in counts.items():
        yield statuses[code], count


def rejection_of(rows: Rows, filtered: tuple[IntArray, Explain] | None) -> tuple[NDArray[np.bool_], Rejection] | None:
    """Which of the rows a filter's answer rejects, and with which statuses; None if all pass.

    Raises:
        PluginError: the filter returned something other than pass or rejection for a row.

    Shape: one entry per row of `rows`.
    """
    if filtered is None:
        return None
    verdicts, explain = filtered
    verdicts = one_verdict_each(verdicts, len(rows))
    fails = verdicts != 0
    if not np.count_nonzero(fails):
        return None
    places = fails.nonzero()[0]
    rejection = Rejection.of(rows[places], verdicts[places], explain)
    for status, _ in rejection.counted():
        if not status.is_rejected:
            raise PluginError(failure_text(status))
    return fails, rejection


@dataclass(slots=True)
class Diagnosis:
    """The filter results of all nodes in one attempt.

    `table_size` is the number of rows of the snapshot; `absent` is the status of nodes that have no entry.
    """

    table_size: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    single: dict[int, Status] = field(default_factory=dict)
    pre_filter_message: str = ""
    absent: Status = NO_REASON
    _unschedulable: set[str] = field(default_factory=set)
    _pending: set[str] = field(default_factory=set)
    _blamed: int = 0
    """How many of the rejections have been attributed to their plugins.

    This is done on demand, because most attempts succeed and never need it.
    """

    def reject(self, rejection: Rejection) -> None:
        """Add what a filter rejected. It replaces the status of rows that were examined alone before."""
        if self.single:
            for row in [row for row in self.single if row in rejection.rows]:
                del self.single[row]
        self.rejections.append(rejection)

    def reject_one(self, row: int, status: Status) -> None:
        """Add the status of one node that was examined alone."""
        self.single[row] = status
        self.blame(status)

    def overrule(self, row: int, status: Status) -> None:
        """Set a node's status, overriding the filters."""
        self._blame_all()
        self.rejections = [left for each in self.rejections if len((left := each.without(row)).rows)]
        self._blamed = len(self.rejections)
        self.reject_one(row, status)

    def blame(self, status: Status) -> None:
        """Record the plugin of a rejecting status, so that the events it registered for requeue the pod."""
        if status.plugin:
            (self._pending if status.code is Code.PENDING else self._unschedulable).add(status.plugin)

    @property
    def unschedulable_plugins(self) -> set[str]:
        """The plugins that rejected the pod; others may be added."""
        self._blame_all()
        return self._unschedulable

    @property
    def pending_plugins(self) -> set[str]:
        """The plugins that make the pod wait for something."""
        self._blame_all()
        return self._pending

    def _blame_all(self) -> None:
        for rejection in self.rejections[self._blamed :]:
            for status, _ in rejection.counted():
                self.blame(status)
        self._blamed = len(self.rejections)

    @property
    def rejected_count(self) -> int:
        """The number of nodes that have an entry."""
        return sum(len(rejection.rows) for rejection in self.rejections) + len(self.single)

    def statuses(self) -> Mapping[int, Status]:
        """The status by row of every node that has an entry. Cost: one entry per such node."""
        result: dict[int, Status] = {}
        for rejection in self.rejections:
            result.update(rejection.by_row())
        result.update(self.single)
        return result

    def codes(self) -> IntArray:
        """The status code by row; rows without an entry have the code of `absent`.

        Shape: one entry per row of the snapshot.
        """
        codes = np.full(self.table_size, int(self.absent.code), np.int64)
        for rejection in self.rejections:
            codes[rejection.rows] = rejection.codes()
        for row, status in self.single.items():
            codes[row] = int(status.code)
        return codes

    def count(self, code: Code, node_count: int) -> int:
        """How many of the nodes have this status code."""
        count = node_count - self.rejected_count if self.absent.code is code else 0
        for rejection in self.rejections:
            count += sum(number for status, number in rejection.counted() if status.code is code)
        return count + sum(status.code is code for status in self.single.values())

    def status(self, row: int) -> Status:
        """The status of one row."""
        if row in self.single:
            return self.single[row]
        for rejection in self.rejections:
            found = np.flatnonzero(rejection.rows == row)
            if len(found):
                return rejection.meanings[int(rejection.verdicts[found[0]])]
        return self.absent

    def reasons(self, node_count: int) -> dict[str, int]:
        """On how many nodes each reason holds."""
        reasons: dict[str, int] = defaultdict(int)
        for rejection in self.rejections:
            for status, count in rejection.counted():
                for reason in status.all_reasons:
                    reasons[reason] += count
        # Hundreds of nodes mostly share one object, which is counted without a call for each of them.
        times = Counter(map(id, self.single.values())) if self.single else {}
        for status in {id(status): status for status in self.single.values()}.values():
            for reason in status.all_reasons:
                reasons[reason] += times[id(status)]
        absent_count = node_count - self.rejected_count
        if absent_count > 0:
            for reason in self.absent.all_reasons:
                reasons[reason] += absent_count
        return reasons


@dataclass(frozen=True, slots=True)
class FitError:
    """The pod fits on no node. `details` is for operators and is not part of the message."""

    node_count: int
    diagnosis: Diagnosis
    post_filter_message: str = ""
    details: str = ""

    @property
    def message(self) -> str:
        """The text that ends in the pod's condition and Event."""
        diagnosis = self.diagnosis
        if diagnosis.pre_filter_message:
            text = f"0/{self.node_count} nodes are available: {diagnosis.pre_filter_message}."
        else:
            text = none_available(self.node_count, diagnosis.reasons(self.node_count))
        return f"{text} {self.post_filter_message}" if self.post_filter_message else text


def none_available(node_count: int, reasons: Mapping[str, int]) -> str:
    """The text that says on how many of the nodes each reason holds."""
    lines = sorted(f"{count} {reason}" for reason, count in reasons.items() if count)
    return f"0/{node_count} nodes are available:" + (f" {', '.join(lines)}." if lines else "")


def rejected_on(row: int, status: Status) -> FitError:
    """A rejection after the node was chosen, in the form of a FitError for that node only."""
    diagnosis = Diagnosis(table_size=row + 1)
    diagnosis.reject_one(row, status)
    return FitError(1, diagnosis)
