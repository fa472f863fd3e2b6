"""Numbers by row, summed by the values of node labels, and updated as the numbers change."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.cluster.labels import LabelColumn

IntArray: TypeAlias = NDArray[np.int64]


def sum_by_value(column: LabelColumn, by_row: IntArray) -> IntArray:
    """Return the sum for each value of the label, by its id; id 0 holds the sum of nodes without the label.

    Shape: one entry per value id of the column.
    """
    size = min(len(by_row), len(column.ids))
    return np.bincount(column.ids[:size], by_row[:size], len(column.values)).astype(np.int64)


class ValueSums:
    """The sums of one changing array, for every label that has been needed.

    Cost: one pass over the rows when a label is new here or its values have changed on nodes; otherwise a look-up.
    """

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums: dict[str, tuple[LabelColumn, int, IntArray]] = {}

    def of(self, column: LabelColumn, by_row: IntArray) -> IntArray:
        """Return the sums by the column's value ids. Must not be written to; valid until the next change.

        Shape: one entry per value id of the column.
        """
        entry = self._sums.get(column.key)
        if entry is not None and entry[0] is column and entry[1] == column.version:
            return entry[2]
        sums = sum_by_value(column, by_row)
        self._sums[column.key] = column, column.version, sums
        return sums

    def count(self, row: int, number: int) -> None:
        """Add `number` to a row."""
        for key, (column, version, sums) in tuple(self._sums.items()):
            if version == column.version:
                sums[column.ids[row]] += number
            else:
                del self._sums[key]
