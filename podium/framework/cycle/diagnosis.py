"""The diagnosis of a pod that fits on no node: the plugin that rejected each node, and the message for users.

Source: kubernetes pkg/scheduler/framework/types.go (Diagnosis, FitError), v1.36.2.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from podium.cluster import IntArray
from podium.framework.contract.status import Code, Status
from podium.framework.profile.rejection import Rejection, none_available

NO_REASON = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
"""The status of nodes that were not examined."""


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
        self.rejections = [
            remainder for rejection in self.rejections if len((remainder := rejection.without(row)).rows)
        ]
        self._blamed = len(self.rejections)
        self.reject_one(row, status)

    def blame(self, status: Status) -> None:
        """Record the plugin of a rejecting status, so that the events it registered for requeue the pod."""
        if status.plugin:
            (self._pending if status.code is Code.PENDING else self._unschedulable).add(status.plugin)

    @property
    def unschedulable_plugins(self) -> set[str]:
        """The plugins that rejected the pod; others may be added."""
        if self._blamed < len(self.rejections):
            self._blame_all()
        return self._unschedulable

    @property
    def pending_plugins(self) -> set[str]:
        """The plugins that make the pod wait for something."""
        if self._blamed < len(self.rejections):
            self._blame_all()
        return self._pending

    def _blame_all(self) -> None:
        for rejection in self.rejections[self._blamed :]:
            for status, _ in rejection.status_counts():
                self.blame(status)
        self._blamed = len(self.rejections)

    @property
    def rejected_count(self) -> int:
        """The number of nodes that have an entry."""
        count = len(self.single)
        for rejection in self.rejections:
            count += len(rejection.rows)
        return count

    def statuses(self) -> Mapping[int, Status]:
        """Return the status by row of every node that has an entry. Cost: one entry per such node."""
        result: dict[int, Status] = {}
        for rejection in self.rejections:
            result.update(rejection.by_row())
        result.update(self.single)
        return result

    def codes(self) -> IntArray:
        """Return the status code by row; rows without an entry have the code of `absent`.

        Shape: one entry per row of the snapshot.
        """
        codes = np.full(self.table_size, int(self.absent.code), np.int64)
        for rejection in self.rejections:
            codes[rejection.rows] = rejection.codes()
        for row, status in self.single.items():
            codes[row] = int(status.code)
        return codes

    def count(self, code: Code, node_count: int) -> int:
        """Return the number of nodes with this status code."""
        count = node_count - self.rejected_count if self.absent.code is code else 0
        for rejection in self.rejections:
            count += sum(number for status, number in rejection.status_counts() if status.code is code)
        return count + sum(status.code is code for status in self.single.values())

    def status(self, row: int) -> Status:
        """Return the status of one row."""
        if row in self.single:
            return self.single[row]
        for rejection in self.rejections:
            positions = np.flatnonzero(rejection.rows == row)
            if len(positions):
                return rejection.meanings[int(rejection.verdicts[positions[0]])]
        return self.absent

    def of_all(self, node_count: int) -> Rejection | None:
        """Return the rejection of all nodes, if a single one says all there is to say."""
        if len(self.rejections) != 1 or self.single or len(self.rejections[0].rows) != node_count:
            return None
        return self.rejections[0]

    def reasons(self, node_count: int) -> dict[str, int]:
        """Return on how many nodes each reason holds."""
        reasons: dict[str, int] = defaultdict(int)
        for rejection in self.rejections:
            for reason, count in rejection.reasons.items():
                reasons[reason] += count
        # Hundreds of nodes mostly share one object, which is counted without a call for each of them.
        if self.single:
            times = Counter(map(id, self.single.values()))
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
        rejection = diagnosis.of_all(self.node_count)
        if diagnosis.pre_filter_message:
            text = f"0/{self.node_count} nodes are available: {diagnosis.pre_filter_message}."
        elif rejection is not None:
            text = rejection.text
        else:
            text = none_available(self.node_count, diagnosis.reasons(self.node_count))
        return f"{text} {self.post_filter_message}" if self.post_filter_message else text


def rejected_on(row: int, status: Status) -> FitError:
    """Return a rejection after the node was chosen, as a FitError for that node only."""
    diagnosis = Diagnosis(table_size=row + 1)
    diagnosis.reject_one(row, status)
    return FitError(1, diagnosis)
