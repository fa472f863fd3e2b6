"""An index of objects by a text made of each, updated with every change."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Generic

from podium.objects.resource_types import ObjectT


class Index(Generic[ObjectT]):
    """Objects grouped by a text made of each.

    Args:
        text_of: the text an object is found by; pure.

    Cost: one call of `text_of` and one look-up for each change.
    """

    def __init__(self, text_of: Callable[[ObjectT], str]) -> None:
        self._text_of = text_of
        self._groups: dict[str, dict[str, ObjectT]] = {}

    def of(self, text: str) -> Collection[ObjectT]:
        """Return the objects with that text, a live view: not to be held across an await."""
        return self._groups.get(text, {}).values()

    def put(self, item: ObjectT) -> None:
        """Add an object, or a newer state of one whose text has not changed."""
        self._groups.setdefault(self._text_of(item), {})[item.key] = item

    def replace(self, old: ObjectT, new: ObjectT) -> None:
        """Replace an object by a newer state, whose text may differ."""
        if self._text_of(old) != self._text_of(new):
            self.drop(old)
        self.put(new)

    def drop(self, item: ObjectT) -> None:
        """Remove an object."""
        text = self._text_of(item)
        group = self._groups[text]
        del group[item.key]
        if not group:
            del self._groups[text]
