"""Node labels as columns of small integers, one column for each label key that has been needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

ABSENT = 0
"""The value id of nodes without the label."""

VALUES_KEPT: Final = 1024
"""How many values, in use or not, a column may have before it is checked for being mostly unused."""


class LabelColumn:
    """One label key over all rows.

    `ids` is int32 by row; `values[id]` is the label's value, with id 0 for nodes that do not have the key. `version`
    changes whenever a row's value does.
    Invariant: an id keeps its value for as long as the column lives; a column of mostly unused values is replaced as a
    whole.
    """

    def __init__(self, key: str, size: int) -> None:
        self.key = key
        self.ids: NDArray[np.int32] = np.zeros(size, np.int32)
        self.values: list[str | None] = [None]
        self.values_max = VALUES_KEPT
        self.version = 0
        self._seen = 0
        self._in_use = np.zeros(1, np.bool_)
        self._labelled = 0
        self._id_of: dict[str, int] = {}

    def id_of(self, value: str) -> int | None:
        """Return the id of the value, None if no node ever had it."""
        return self._id_of.get(value)

    def set(self, row: int, labels: Mapping[str, str]) -> None:
        """Set the row's value. A new value gets the next id."""
        value = labels.get(self.key)
        value_id = ABSENT if value is None else self._id(value)
        # Kubelets report their labels again and again; only a change invalidates what was computed.
        if self.ids[row] != value_id:
            self.ids[row] = value_id
            self.version += 1

    def copy(self) -> LabelColumn:
        """Return a copy that changes by itself."""
        twin = copy(self)
        twin.ids, twin.values, twin._id_of = self.ids.copy(), list(self.values), dict(self._id_of)
        return twin

    def values_in_use(self) -> NDArray[np.bool_]:
        """Return by id whether some node has the value; always False for id 0. The caller must not write to it.

        Shape: one entry per value id.
        """
        self._look_again()
        return self._in_use

    def labelled_count(self) -> int:
        """Return the number of nodes that have the label."""
        self._look_again()
        return self._labelled

    def without_dead_values(self) -> LabelColumn:
        """Return a new column without the unused values; this one if at least half of its values are in use."""
        in_use = self.values_in_use()
        # Labels such as a host name have a value for each node, dead ones included; copying is worth it only for many.
        if 2 * np.count_nonzero(in_use) >= len(self.values):
            self.values_max = 2 * len(self.values)
            return self
        fresh = LabelColumn(self.key, 0)
        new_ids = np.zeros(len(self.values), np.int32)
        for value_id in np.flatnonzero(in_use).tolist():
            value = self.values[value_id]
            assert value is not None
            new_ids[value_id] = fresh._id(value)
        fresh.ids = new_ids.take(self.ids)
        fresh.values_max = max(VALUES_KEPT, 2 * len(fresh.values))
        # Values cached by the ids of this column become invalid.
        self.version += 1
        fresh.version = self.version
        return fresh

    def _id(self, value: str) -> int:
        value_id = self._id_of.get(value)
        if value_id is None:
            value_id = self._id_of[value] = len(self.values)
            self.values.append(value)
        return value_id

    def _look_again(self) -> None:
        # Counted on demand: a change of one row would otherwise cost a pass over all.
        if self._seen != self.version:
            sizes = np.bincount(self.ids, minlength=len(self.values))
            sizes[ABSENT] = 0
            self._in_use, self._labelled, self._seen = sizes > 0, int(sizes.sum()), self.version

    def resize(self, size: int) -> None:
        """Grow to this many rows."""
        grown = np.zeros(size, np.int32)
        grown[: len(self.ids)] = self.ids
        self.ids = grown


class LabelColumns:
    """Label columns, built when they are first needed and updated from then on."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._columns: dict[str, LabelColumn] = {}

    def get(self, key: str) -> LabelColumn | None:
        """Return the column of a key, or None if it has not been built."""
        return self._columns.get(key)

    def copy(self) -> LabelColumns:
        """Return a copy that changes by itself."""
        twin = LabelColumns(self._size)
        twin._columns = {key: column.copy() for key, column in self._columns.items()}
        return twin

    def build(self, key: str, rows: Sequence[Mapping[str, str] | None]) -> LabelColumn:
        """Build the column of a new key from each row's labels."""
        column = self._columns[key] = LabelColumn(key, self._size)
        for row, labels in enumerate(rows):
            if labels and key in labels:
                column.set(row, labels)
        return column

    def set(self, row: int, labels: Mapping[str, str]) -> None:
        """Update one row of every column."""
        for column in self._columns.values():
            column.set(row, labels)

    def settle(self) -> None:
        """Drop unused values of columns that have too many of them. Must not be called during an attempt."""
        for key, column in self._columns.items():
            if len(column.values) > column.values_max:
                self._columns[key] = column.without_dead_values()

    def resize(self, size: int) -> None:
        """Grow to this many rows."""
        self._size = size
        for column in self._columns.values():
            column.resize(size)
