"""Raw scores by row as they were at any of the last attempts, without a copy for each."""

from __future__ import annotations

from array import array
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
    Cost: the bytes of a row are copied for a row that changes; reading a version costs a copy of the table.
    """

    __slots__ = ("_before", "_bytes", "_notes_max", "_row_bytes", "_rows", "nbytes", "table", "version")

    def __init__(self, table: SmallScores) -> None:
        self.table = table
        self.version = 0
        self._notes_max, self._row_bytes = table.shape
        # A view of the table's own memory: NumPy takes far longer to copy so few bytes.
        assert table.flags.c_contiguous
        self._bytes = table.reshape(-1).data
        self._rows = array("I")
        self._before = bytearray()
        self.nbytes = 2 * table.nbytes + self._rows.itemsize * self._notes_max

    def note(self, row: int) -> bool:
        """Note that the row is about to change; return False if that cannot be noted."""
        if self.version == self._notes_max:
            return False
        at = row * self._row_bytes
        self._before += self._bytes[at : at + self._row_bytes]
        self._rows.append(row)
        self.version += 1
        return True

    def note_all(self, rows: Rows) -> bool:
        """Note that the rows are about to change; return False if that cannot be noted."""
        if self.version + len(rows) > self._notes_max:
            return False
        self._before += self.table[rows].tobytes()
        self._rows.extend(rows.tolist())
        self.version += len(rows)
        return True

    def at(self, version: int) -> SmallScores:
        """Return the table as it was at that version. Shape: as `table`."""
        table = self.table.copy()
        if version < self.version:
            # Of a row that has changed more than once the oldest note is written last.
            newest_first = slice(self.version - 1, None if version == 0 else version - 1, -1)
            former_scores = np.frombuffer(self._before, np.int8).reshape(self.version, self._row_bytes)
            table[np.frombuffer(self._rows, np.uint32)[newest_first]] = former_scores[newest_first]
        return table
