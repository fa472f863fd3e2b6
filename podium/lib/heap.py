"""A heap whose items can be found, replaced and removed by key."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeAlias, TypeVar

Item = TypeVar("Item")
_Entry: TypeAlias = tuple[Any, int, str]
"""Sort key, number of the push, and key of an item."""


class KeyedHeap(Generic[Item]):
    """Smallest item first; equal items in the order in which they were pushed.

    Cost: push, pop and remove are O(log n) amortised, and O(1) for items that are pushed in order, as most pods are. A
    removed or replaced item leaves an outdated entry behind, which is dropped when it reaches the top, or when outdated
    entries outnumber the live ones.
    Invariant: an item's sort key must not change while it is in the heap; `push` it again instead.
    """

    def __init__(self, key: Callable[[Item], str], sort_key: Callable[[Item], Any]) -> None:
        self._key = key
        self._sort_key = sort_key
        # Entries that came in order, ascending, and a heap of those that did not.
        self._run: deque[_Entry] = deque()
        self._entries: list[_Entry] = []
        self._entry_count = 0
        """Of both together."""
        self._live: dict[str, tuple[int, Item]] = {}
        self._pushed = 0

    def push(self, item: Item) -> None:
        """Add the item, or replace the one with the same key; the new item follows its equals."""
        key, run = self._key(item), self._run
        self._pushed += 1
        self._live[key] = (self._pushed, item)
        entry = self._sort_key(item), self._pushed, key
        if not run or run[-1] < entry:
            run.append(entry)
        else:
            heapq.heappush(self._entries, entry)
        self._entry_count += 1
        if self._entry_count > 64 and self._entry_count > 2 * len(self._live):
            self._compact()

    def peek(self) -> Item | None:
        """Return the first item, without removing it; None if the heap is empty."""
        run, entries = self._run, self._entries
        while run or entries:
            is_of_run = bool(run) and (not entries or run[0] < entries[0])
            _, pushed, key = run[0] if is_of_run else entries[0]
            live = self._live.get(key)
            if live is not None and live[0] == pushed:
                return live[1]
            self._entry_count -= 1
            if is_of_run:
                run.popleft()
            else:
                heapq.heappop(entries)
        return None

    def pop(self) -> Item | None:
        """Remove and return the first item; None if the heap is empty."""
        item = self.peek()
        if item is not None:
            # Its entry is outdated now.
            del self._live[self._key(item)]
        return item

    def get(self, key: str) -> Item | None:
        """Return the item with that key."""
        live = self._live.get(key)
        return live[1] if live is not None else None

    def remove(self, key: str) -> Item | None:
        """Remove and return the item with that key; None if the heap has no such item."""
        live = self._live.pop(key, None)
        return live[1] if live is not None else None

    def reorder(self) -> None:
        """Sort all items anew, by the sort keys that they have now; equal items stay in the order of their pushes."""
        self._run = deque(sorted((self._sort_key(item), pushed, key) for key, (pushed, item) in self._live.items()))
        self._entries, self._entry_count = [], len(self._run)

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, key: str) -> bool:
        return key in self._live

    def __iter__(self) -> Iterator[Item]:
        """Return the items in no particular order."""
        return (item for _, item in self._live.values())

    def _compact(self) -> None:
        self._run = deque(filter(self._is_live, self._run))
        self._entries = list(filter(self._is_live, self._entries))
        heapq.heapify(self._entries)
        self._entry_count = len(self._run) + len(self._entries)

    def _is_live(self, entry: _Entry) -> bool:
        return self._live.get(entry[2], (0,))[0] == entry[1]
