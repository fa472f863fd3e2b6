"""Listed objects grouped by a text made of each: from the lister's index if it has one, otherwise by a scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from podium.framework import contract as fwk
from podium.objects.index import Index
from podium.objects.resource_types import ObjectT

IndexT = TypeVar("IndexT", bound=Index[Any])

Grouped: TypeAlias = Callable[[str], Iterable[ObjectT]]
"""Text → the objects with that text, a live view: not to be held across an await."""


@runtime_checkable
class Indexing(Protocol):
    """A lister that keeps indexes, as informers do."""

    def keep(self, index: Index[Any]) -> None:
        """Fill the index with the objects, and update it with every change."""


def index_of(lister: fwk.Lister[ObjectT], make: Callable[[], IndexT]) -> Callable[[], IndexT]:
    """Return a function that returns the index of the current objects: the lister's, or one rebuilt after changes.

    Args:
        make: an empty index.
    """
    if isinstance(lister, Indexing):
        kept_index = make()
        lister.keep(kept_index)
        return lambda: kept_index

    index, indexed_items = make(), list[ObjectT]()

    def read() -> IndexT:
        nonlocal index, indexed_items
        items = [*lister.list()]
        if items != indexed_items:
            index, indexed_items = make(), items
            for item in items:
                index.put(item)
        return index

    return read


def group_by(lister: fwk.Lister[ObjectT], text_of: Callable[[ObjectT], str]) -> Grouped[ObjectT]:
    """Return the objects by a text made of each."""
    if isinstance(lister, Indexing):
        return index_of(lister, lambda: Index(text_of))().of
    return lambda text: [item for item in lister.list() if text_of(item) == text]
