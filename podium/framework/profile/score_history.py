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
    """A table of scores as it was at first, and the new scores of rows that have changed since.

    Attributes:
        row_bytes: the number of scores in a row.
        version: the number of rows noted so far.
        nbytes: the size of the table with a full history.

    Invariant: there are at most as many notes as the table has rows. Once it is full, the owner begins another history.
    Cost: the scores of a row that changes are appended; reading a version costs a copy of the table.
    """

    __slots__ = ("_first", "_notes_max", "_rows", "_scores", "nbytes", "row_bytes", "version")

    def __init__(self, table: SmallScores) -> None:
        self._first = table.copy()
        self.version = 0
        self._notes_max, self.row_bytes = table.shape
        self._rows, self._scores = array("I"), array("b")
        self.nbytes = 2 * table.nbytes + self._rows.itemsize * self._notes_max

    def note(self, row: int, scores: list[int]) -> bool:
        """Note the new scores of the row; return False if the history is full."""
        if self.version == self._notes_max:
            return False
        self._rows.append(row)
        self._scores.fromlist(scores)
        self.version += 1
        return True

    def note_all(self, rows: Rows, scores: SmallScores) -> bool:
        """Note the new scores of the rows; return False if the history has not so many notes left."""
        if self.version + len(rows) > self._notes_max:
            return False
        self._rows.extend(rows.tolist())
        self._scores.frombytes(scores.tobytes())
        self.version += len(rows)
        return True

    def at(self, version: int) -> SmallScores:
        """Return the table as it was at that version. Shape: a row for each node, a column for each scorer."""
        table = self._first.copy()
        if version:
            # Of a row that has changed more than once the newest note is written last.
            scores = np.frombuffer(self._scores, np.int8).reshape(self.version, self.row_bytes)
            table[np.frombuffer(self._rows, np.uint32)[:version]] = scores[:version]
        return table
