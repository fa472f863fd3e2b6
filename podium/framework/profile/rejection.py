"""The rejections of a filter: which rows, and with which statuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray, Rows
from podium.framework.contract.status import Code, PluginError, Status, failure_text
from podium.framework.profile.forms import Explain, one_verdict_each

_FEW: Final = 256
"""Verdicts below this are counted without sorting them."""


class Rejection:
    """Rows that filters rejected.

    Shape: `verdicts` and `rows` are of one length; `meanings` holds at least these verdicts.
    """

    __slots__ = ("_counts", "_reasons", "_text", "meanings", "rows", "verdicts")

    def __init__(self, rows: Rows, verdicts: IntArray, meanings: Mapping[int, Status]) -> None:
        self.rows, self.verdicts, self.meanings = rows, verdicts, meanings
        self._counts: tuple[tuple[int, int], ...] | None = None
        self._reasons: Mapping[str, int] | None = None
        self._text: str | None = None

    @classmethod
    def of(cls, rows: Rows, verdicts: IntArray, explain: Explain) -> Rejection:
        """Return a rejection from verdicts. `explain` is called once for each distinct verdict."""
        counts = _count_verdicts(verdicts)
        rejection = cls(rows, verdicts, {verdict: explain(verdict) for verdict, _ in counts})
        rejection._counts = counts
        return rejection

    @property
    def counts(self) -> tuple[tuple[int, int], ...]:
        """Each verdict once, in ascending order, with the number of its rows."""
        if self._counts is None:
            self._counts = _count_verdicts(self.verdicts)
        return self._counts

    def status_counts(self) -> list[tuple[Status, int]]:
        """Return each status with the number of its rows."""
        return [(self.meanings[verdict], count) for verdict, count in self.counts]

    @property
    def reasons(self) -> Mapping[str, int]:
        """On how many of the rows each reason holds. Computed once: pods of one kind share a rejection of all nodes."""
        if self._reasons is None:
            reasons: Counter[str] = Counter()
            for status, count in self.status_counts():
                for reason in status.all_reasons:
                    reasons[reason] += count
            self._reasons = reasons
        return self._reasons

    @property
    def text(self) -> str:
        """The text that says that none of the rows is available, for a rejection of all nodes. Computed once."""
        if self._text is None:
            self._text = none_available(len(self.rows), self.reasons)
        return self._text

    def by_row(self) -> Iterator[tuple[int, Status]]:
        """Yield each row and its status."""
        for row, verdict in zip(self.rows.tolist(), self.verdicts.tolist(), strict=True):
            yield row, self.meanings[verdict]

    def only(self, selection: NDArray[np.bool_] | slice) -> Rejection:
        """Return only the entries at these positions."""
        return Rejection(self.rows[selection], self.verdicts[selection], self.meanings)

    def without(self, row: int) -> Rejection:
        """Return all entries but those of that row."""
        selection = self.rows != row
        return self if selection.all() else self.only(selection)

    def codes(self) -> IntArray | int:
        """Return the status code of each row; a single one if all have the same."""
        codes = [int(status.code) for status, _ in self.status_counts()]
        if len(set(codes)) == 1:
            return codes[0]
        distinct = np.array([verdict for verdict, _ in self.counts], np.int64)
        if distinct[0] >= 0 and distinct[-1] < _FEW:
            by_verdict = np.zeros(_FEW, np.int64)
            by_verdict[distinct] = codes
            return by_verdict.take(self.verdicts)
        return np.array(codes, np.int64)[np.searchsorted(distinct, self.verdicts)]


def same_for_all(rows: Rows, status: Status) -> Rejection:
    """Return the rejection of all these rows with one status."""
    return Rejection.of(rows, np.ones(len(rows), np.int64), lambda _: status)


def none_available(node_count: int, reasons: Mapping[str, int]) -> str:
    """Return the text that says on how many of the nodes each reason holds."""
    lines = sorted(f"{count} {reason}" for reason, count in reasons.items() if count)
    return f"0/{node_count} nodes are available:" + (f" {', '.join(lines)}." if lines else "")


def _count_verdicts(verdicts: IntArray) -> tuple[tuple[int, int], ...]:
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
    """Yield a status of each code in the outcome, with the number of its nodes; None stands for success."""
    if not isinstance(outcome, tuple):
        yield outcome, nodes
        return
    counts: Counter[Code] = Counter()
    statuses: dict[Code, Status] = {}
    for status, count in outcome[1].status_counts():
        counts[status.code] += count
        statuses[status.code] = status
    if passing := nodes - counts.total():
        yield None, passing
    for code, count in counts.items():
        yield statuses[code], count


def rejection_of(rows: Rows, answer: tuple[IntArray, Explain] | None) -> tuple[NDArray[np.bool_], Rejection] | None:
    """Return which of the rows a filter's answer rejects, and with which statuses; None if all pass.

    Raises:
        PluginError: the filter returned something other than pass or rejection for a row.

    Shape: one entry per row of `rows`.
    """
    if answer is None:
        return None
    verdicts, explain = answer
    verdicts = one_verdict_each(verdicts, len(rows))
    fails = verdicts != 0
    if not np.count_nonzero(fails):
        return None
    places = fails.nonzero()[0]
    rejection = Rejection.of(rows[places], verdicts[places], explain)
    for status, _ in rejection.status_counts():
        if not status.is_rejected:
            raise PluginError(failure_text(status))
    return fails, rejection
