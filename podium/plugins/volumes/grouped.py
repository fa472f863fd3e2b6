"""Listed objects grouped by a text made of each: from the lister's index if it has one, otherwise by a scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias, runtime_checkable

from podium.framework.contract.interface import Lister
from podium.objects.index import Index
from podium.objects.resource_types import ObjectT

Grouped: TypeAlias = Callable[[str], Iterable[ObjectT]]
"""Text → the objects with that text, a live view: not to be held across an await."""


@runtime_checkable
class Indexing(Protocol):
    """A lister that keeps indexes, as informers do."""

    def index(self, text_of: Callable[[Any], str]) -> Index[Any]:
        """The objects by a text made of each."""


def grouped(lister: Lister[ObjectT], text_of: Callable[[ObjectT], str]) -> Grouped[ObjectT]:
    """The objects by a text made of each."""
    if isinstance(lister, Indexing):
        return lister.index(text_of).of
    return lambda text: [item for item in lister.list() if text_of(item) == text]
