"""Sums by topology: for each topology key and value, a number summed over the nodes with that label value."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.cluster.labels import ABSENT
from podium.cluster.snapshot import BoolArray


class TopologyCounts:
    """Arrays of int64 by value id of each key's label column.

    Invariant: nodes without the label count nowhere.
    """

    __slots__ = ("_by_key", "_column")

    def __init__(self, snapshot: Snapshot) -> None:
        self._column = snapshot.label_column
        self._by_key: dict[str, IntArray] = {}

    def add_values(self, key: str, by_value: IntArray) -> None:
        """Add numbers by the value ids of a key. The number under id 0, of nodes without the label, is ignored."""
        counts = self._by_key.get(key)
        if counts is None:
            self._by_key[key] = counts = by_value.copy()
        else:
            counts += by_value
        counts[ABSENT] = 0

    def add_node(self, key: str, row: int, number: int) -> None:
        """Add to the topology value of one node, if it has the key."""
        column = self._column(key)
        value_id = int(column.ids[row])
        if value_id == ABSENT:
            return
        if key not in self._by_key:
            self._by_key[key] = np.zeros(len(column.values), np.int64)
        self._by_key[key][value_id] += number

    @property
    def keys(self) -> Collection[str]:
        """Return the keys to which anything was added."""
        return self._by_key.keys()

    @property
    def is_empty(self) -> bool:
        """Return whether all numbers are 0."""
        return not any(counts.any() for counts in self._by_key.values())

    def at(self, key: str, rows: Rows) -> IntArray:
        """Return the number of each row's node, 0 without the label. The key must be one of `keys`.

        Shape: one entry per row of `rows`.
        """
        return self._by_key[key].take(self._column(key).ids.take(rows))

    def are_counted(self, key: str, rows: Rows) -> BoolArray | None:
        """Return which of the rows' nodes have a number above 0; None if none has. The key must be one of `keys`.

        Shape: one entry per row of `rows`.
        """
        # The values of a key are few beside the rows.
        is_counted = self._by_key[key] > 0
        return is_counted.take(self._column(key).ids.take(rows)) if np.count_nonzero(is_counted) else None

    def at_node(self, key: str, row: int) -> int:
        """Return the number of one row's node, 0 without the label. The key must be one of `keys`."""
        return int(self._by_key[key][self._column(key).ids[row]])

    def has_label(self, key: str, rows: Rows) -> BoolArray:
        """Return which of the rows' nodes have the label at all. Shape: one entry per row of `rows`."""
        has_label: BoolArray = self._column(key).ids.take(rows) != ABSENT
        return has_label

    def clone(self) -> TopologyCounts:
        """Return an independent copy."""
        twin = TopologyCounts.__new__(TopologyCounts)
        twin._column = self._column
        twin._by_key = {key: counts.copy() for key, counts in self._by_key.items()}
        return twin
