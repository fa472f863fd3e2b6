"""Arrays of columns: views that cannot be written to, more rows, and arrays that forks use one after the other."""

from __future__ import annotations

from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

_ColumnT = TypeVar("_ColumnT", bound=NDArray[Any])
_IntArray: TypeAlias = NDArray[np.int64]

_SPARE_MAX: Final = 4


def read_only(column: _ColumnT) -> _ColumnT:
    """Return a view that cannot be written to."""
    view: _ColumnT = column.view()
    view.setflags(write=False)
    return view


def widen(columns: _IntArray, growth: int) -> _IntArray:
    """Return the columns with so many more rows, of zeros."""
    return np.concatenate((columns, np.zeros((len(columns), growth), np.int64)), axis=1)


class SpareArrays:
    """Arrays that forks have used and no longer need, for the next forks.

    Each attempt with nominated pods has a fork, and each preemption some. Their arrays have hundreds of kilobytes,
    which the allocator would take from the system and give back each time.
    """

    __slots__ = ("_arrays",)

    def __init__(self) -> None:
        self._arrays: list[_IntArray] = []

    def lend(self, like: _IntArray) -> LentArray:
        """Return an array of that shape, whose values are undefined; it is spare again once the loan is dropped."""
        arrays = self._arrays
        while arrays:
            array = arrays.pop()
            if array.shape == like.shape:
                return LentArray(array, arrays)
        return LentArray(np.empty_like(like), arrays)


class LentArray:
    """An array that its only user has until the user is gone."""

    __slots__ = ("_spare", "array")

    def __init__(self, array: _IntArray, spare: list[_IntArray]) -> None:
        self.array = array
        self._spare = spare

    def __del__(self) -> None:
        if len(self._spare) < _SPARE_MAX:
            self._spare.append(self.array)
