"""Why a pod fits nowhere: which plugin rejected which nodes, and the text that says so.

Source: kubernetes pkg/scheduler/framework/types.go (Diagnosis, FitError), v1.36.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from podium.cluster import IntArray, Rows
from podium.framework.forms import Explain
from podium.framework.status import Code, Status

NO_REASON = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
"""What stands for nodes that were not looked at."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Rows that one filter rejected. Shape: `verdicts` and `rows` are of one length."""

    rows: Rows
    verdicts: IntArray
    explain: Explain

    def counted(self) -> list[tuple[Status, int]]:
        """Each status and on how many rows."""
        verdicts, counts = np.unique(self.verdicts, return_counts=True)
        return [(self.explain(int(verdict)), int(count)) for verdict, count in zip(verdicts, counts, strict=True)]

    def until(self, kept: Rows) -> Rejection:
        """Only the entries at these positions."""
        return Rejection(self.rows[kept], self.verdicts[kept], self.explain)


@dataclass(slots=True)
class Diagnosis:
    """How the nodes fared. Implements `FilteredNodes` once `table_size` is known.

    `table_size` is the number of rows of the snapshot; `absent` is the status of nodes without one of their own.
    """

    table_size: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    single: dict[int, Status] = field(default_factory=dict)
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    pre_filter_message: str = ""
    absent: Status = NO_REASON

    def reject(self, rejection: Rejection) -> None:
        """Add what a filter rejected."""
        self.rejections.append(rejection)
        for status, _ in rejection.counted():
            self.blame(status)

    def reject_one(self, row: int, status: Status) -> None:
        """Add the status of one node that was looked at alone."""
        self.single[row] = status
        self.blame(status)

    def blame(self, status: Status) -> None:
        """Remember the plugin of a rejecting status, so that its events bring the pod back."""
        if status.plugin:
            (self.pending_plugins if status.code is Code.PENDING else self.unschedulable_plugins).add(status.plugin)

    @property
    def rejected_count(self) -> int:
        """On how many nodes there is a status of their own."""
        return sum(len(rejection.rows) for rejection in self.rejections) + len(self.single)

    def statuses(self) -> Mapping[int, Status]:
        """The status by row of every node that has one of its own. Cost: one status object per distinct verdict."""
        result: dict[int, Status] = {}
        for rejection in self.rejections:
            known: dict[int, Status] = {}
            for row, verdict in zip(rejection.rows.tolist(), rejection.verdicts.tolist(), strict=True):
                if verdict not in known:
                    known[verdict] = rejection.explain(verdict)
                result[row] = known[verdict]
        result.update(self.single)
        return result

    def codes(self) -> IntArray:
        """The status code by row, the absent status's where a row has none of its own."""
        codes = np.full(self.table_size, int(self.absent.code), np.int64)
        for row, status in self.statuses().items():
            codes[row] = int(status.code)
        return codes

    def status(self, row: int) -> Status | None:
        """The status of one row."""
        return self.statuses().get(row, self.absent)

    def reasons(self, node_count: int) -> Counter[str]:
        """On how many nodes each reason holds."""
        reasons: Counter[str] = Counter()
        for rejection in self.rejections:
            for status, count in rejection.counted():
                for reason in status.all_reasons:
                    reasons[reason] += count
        for status in self.single.values():
            reasons.update(status.all_reasons)
        absent_count = node_count - self.rejected_count
        if absent_count > 0:
            for reason in self.absent.all_reasons:
                reasons[reason] += absent_count
        return reasons


@dataclass(frozen=True, slots=True)
class FitError:
    """The pod fits on none of the nodes."""

    node_count: int
    diagnosis: Diagnosis
    post_filter_message: str = ""

    @property
    def message(self) -> str:
        """The text that ends in the pod's condition and Event."""
        diagnosis = self.diagnosis
        text = f"0/{self.node_count} nodes are available:"
        if diagnosis.pre_filter_message:
            text += f" {diagnosis.pre_filter_message}."
        else:
            lines = sorted(f"{count} {reason}" for reason, count in diagnosis.reasons(self.node_count).items())
            text += f" {', '.join(lines)}." if lines else ""
        return f"{text} {self.post_filter_message}" if self.post_filter_message else text
