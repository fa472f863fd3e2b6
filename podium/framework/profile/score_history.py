"""Raw scores by row as they were at any of the last attempts, without a copy for each."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Rows

SmallScores: TypeAlias = NDArray[np.int8]
"""Scores from 0 to 100, a row for each node."""


class ScoreHistory:
    """A table of scores, with the former scores of rows that have changed.

    Attributes:
        table: the scores as they are now; its owner changes them, and notes a row before it does.
        version: the number of rows noted so far.
        nbytes: the size of the table with a full history.

    Invariant: there are at most as many notes as the table has rows. At that point the owner starts another table.
    Cost: one row is copied for a row that changes; reading a version costs a copy of the table.
    """

    __slots__ = ("_before", "_rows", "nbytes", "table", "version")

    def __init__(self, table: SmallScores) -> None:
        self.table = table
        self.version = 0
        self._rows = np.empty(len(table), np.uint32)
        self._before = np.empty_like(table)
        self.nbytes = 2 * table.nbytes + self._rows.nbytes

    def note(self, row: int) -> bool:
        """Note that the row is about to change; return False if that cannot be noted."""
        version = self.version
        if version == self._rows.size:
            return False
        self._rows[version], self._before[version] = row, self.table[row]
        self.version = version + 1
        return True

    def note_all(self, rows: Rows) -> bool:
        """Note that the rows are about to change; return False if that cannot be noted."""
        positions = slice(self.version, self.version + len(rows))
        if positions.stop > self._rows.size:
            return False
        self._rows[positions], self._before[positions] = rows, self.table[rows]
        self.version = positions.stop
        return True

    def at(self, version: int) -> SmallScores:
        """Return the table as it was at that version. Shape: as `table`."""
        table = self.table.copy()
        # Of a row that has changed more than once the oldest note is written last.
        newest_first = slice(self.version - 1, None if version == 0 else version - 1, -1)
        if version < self.version:
            table[self._rows[newest_first]] = self._before[newest_first]
        return table
