"""Sorts as Go's `sort.Sort` does: deterministic, but not stable.

Up to 12 items are sorted by insertion, which keeps equal items in order. Longer sequences are partitioned
(pattern-defeating quicksort), which moves equal items in a way that depends on the length and on all keys. A decision
that takes the first items needs the same order as the Go program that it reproduces.

Source: Go 1.19 to 1.26, src/sort/zsortinterface.go; Orson Peters, "Pattern-defeating Quicksort", 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

T = TypeVar("T")

_INSERTION_MAX: Final = 12
_NINTHER_MIN: Final = 50
_SHIFTS_MAX: Final = 5
_SWAPS_OF_NINTHER: Final = 12
_UINT64: Final = 2**64 - 1


def go_sorted(items: Sequence[T], key: Callable[[T], Any]) -> list[T]:
    """Return the items in ascending order of their keys, equal ones in the order that Go leaves them in."""
    sort = _Sort([(key(item), item) for item in items])
    sort.run(0, len(items), len(items).bit_length())
    return [item for _, item in sort.pairs]


class _Sort:
    """One sort, in place. Ranges are from `start` up to, not including, `end`."""

    def __init__(self, pairs: list[tuple[Any, Any]]) -> None:
        self.pairs = pairs

    def run(self, start: int, end: int, limit: int) -> None:
        """Sort a range. After `limit` badly balanced partitions, sort by heap."""
        was_balanced = was_partitioned = True
        while (length := end - start) > _INSERTION_MAX:
            if not limit:
                self._sort_by_heap(start, end)
                return
            if not was_balanced:
                self._break_patterns(start, length)
                limit -= 1
            pivot, swaps = self._choose_pivot(start, length)
            if swaps == _SWAPS_OF_NINTHER:
                self.pairs[start:end] = self.pairs[start:end][::-1]
                pivot, swaps = end - 1 - (pivot - start), 0
            if was_balanced and was_partitioned and not swaps and self._sort_if_nearly_sorted(start, end):
                return
            if start > 0 and not self._is_less(start - 1, pivot):
                start = self._partition_equal(start, end, pivot)
                continue
            middle, was_partitioned = self._partition(start, end, pivot)
            was_balanced = min(middle - start, end - middle) >= length // 8
            # The shorter side by recursion, so that the depth stays logarithmic.
            if middle - start < end - middle:
                self.run(start, middle, limit)
                start = middle + 1
            else:
                self.run(middle + 1, end, limit)
                end = middle
        for index in range(start + 1, end):
            self._sink(index, start)

    def _is_less(self, low: int, high: int) -> bool:
        return bool(self.pairs[low][0] < self.pairs[high][0])

    def _swap(self, low: int, high: int) -> None:
        self.pairs[low], self.pairs[high] = self.pairs[high], self.pairs[low]

    def _sink(self, index: int, first: int) -> None:
        """Move an item to the left, past all greater ones."""
        while index > first and self._is_less(index, index - 1):
            self._swap(index, index - 1)
            index -= 1

    def _sort_by_heap(self, start: int, end: int) -> None:
        length = end - start
        for root in range((length - 1) // 2, -1, -1):
            self._sift_down(root, length, start)
        for last in range(length - 1, -1, -1):
            self._swap(start, start + last)
            self._sift_down(0, last, start)

    def _sift_down(self, root: int, length: int, start: int) -> None:
        while (child := 2 * root + 1) < length:
            if child + 1 < length and self._is_less(start + child, start + child + 1):
                child += 1
            if not self._is_less(start + root, start + child):
                return
            self._swap(start + root, start + child)
            root = child

    def _break_patterns(self, start: int, length: int) -> None:
        """Swap three items in the middle with ones that a generator seeded with the length draws."""
        state, mask = length, (1 << length.bit_length()) - 1
        middle = start + length // 4 * 2
        for index in range(middle - 1, middle + 2):
            state ^= state << 13 & _UINT64
            state ^= state >> 7
            state ^= state << 17 & _UINT64
            partner = state & mask
            self._swap(index, start + (partner if partner < length else partner - length))

    def _choose_pivot(self, start: int, length: int) -> tuple[int, int]:
        """Return the index of the median of three or nine items, and the number of swaps that it took."""
        indexes, swaps = [start + length // 4 * quarter for quarter in (1, 2, 3)], 0
        if length >= _NINTHER_MIN:
            for place, index in enumerate(indexes):
                indexes[place], swaps_here = self._median(index - 1, index, index + 1)
                swaps += swaps_here
        median, swaps_here = self._median(*indexes)
        return median, swaps + swaps_here

    def _median(self, low: int, middle: int, high: int) -> tuple[int, int]:
        swaps = 0
        if self._is_less(middle, low):
            low, middle, swaps = middle, low, swaps + 1
        if self._is_less(high, middle):
            middle, high, swaps = high, middle, swaps + 1
        if self._is_less(middle, low):
            low, middle, swaps = middle, low, swaps + 1
        return middle, swaps

    def _sort_if_nearly_sorted(self, start: int, end: int) -> bool:
        """Shift a few items to their places. Return True if the range is sorted then."""
        index = start + 1
        for _ in range(_SHIFTS_MAX):
            while index < end and not self._is_less(index, index - 1):
                index += 1
            if index == end:
                return True
            if end - start < _NINTHER_MIN:
                return False
            self._swap(index, index - 1)
            # Go bounds neither by the range: items before `start` are not greater, so nothing is moved there.
            if index - start >= 2:
                self._sink(index - 1, 0)
            if end - index >= 2:
                following = index + 1
                while following < end and self._is_less(following, following - 1):
                    self._swap(following, following - 1)
                    following += 1
        return False

    def _partition_equal(self, start: int, end: int, pivot: int) -> int:
        """Put the items equal to the pivot, which is the least, first. Return the index of the first greater one."""
        self._swap(start, pivot)
        low, high = start + 1, end - 1
        while True:
            while low <= high and not self._is_less(start, low):
                low += 1
            while low <= high and self._is_less(start, high):
                high -= 1
            if low > high:
                return low
            self._swap(low, high)
            low, high = low + 1, high - 1

    def _partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Put the items less than the pivot before it. Return its index, and True if they were there already."""
        self._swap(start, pivot)
        low, high, is_first = start + 1, end - 1, True
        while True:
            while low <= high and self._is_less(low, start):
                low += 1
            while low <= high and not self._is_less(high, start):
                high -= 1
            if low > high:
                self._swap(high, start)
                return high, is_first
            self._swap(low, high)
            low, high, is_first = low + 1, high - 1, False
