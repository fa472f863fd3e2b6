"""Cached answers about the entries of a growing table. Each entry is evaluated once.

Columns hold small integers that stand for entries of a table: taint sets, values of a label. The answer for an entry
is computed when the entry is first seen and gathered by row from then on. Never looks at rows itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Entry = TypeVar("Entry")
Answer = TypeVar("Answer", bound=np.generic)


class Lookup(Generic[Entry, Answer]):
    """The answers of one pure function to the entries of one table.

    Invariant: tables only ever grow at the end. A lookup that is given another table starts again.
    """

    __slots__ = ("_answers", "_compute", "_dtype", "_entries")

    def __init__(self, compute: Callable[[Entry], int | bool], dtype: type[Answer]) -> None:
        self._compute = compute
        self._dtype = dtype
        self._entries: Sequence[Entry] | None = None
        self._answers: NDArray[Answer] = np.empty(0, dtype)

    def over(self, entries: Sequence[Entry]) -> NDArray[Answer]:
        """Return the answer to each entry, by its number. Cost: one call of the function for each new entry.

        Shape: one entry per entry of `entries`.
        """
        if entries is not self._entries:
            self._entries, self._answers = entries, np.empty(0, self._dtype)
        answer_count = len(self._answers)
        if answer_count < len(entries):
            new = np.array([self._compute(entry) for entry in entries[answer_count:]], self._dtype)
            self._answers = np.concatenate((self._answers, new))
        return self._answers
