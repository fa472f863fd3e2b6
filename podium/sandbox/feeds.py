"""Watch a collection from inside the sandbox: changes since the last read, and a callback for new changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from podium.sandbox.errors import ApiError
from podium.sandbox.journal import ADDED, Change, Collection


class Feed:
    """The changes of a collection since the last read. The first read returns every object as added."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._cursor = -1

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Call `wake` at every change, within the context."""
        self._collection.listeners[wake] = None
        try:
            yield
        finally:
            self._collection.listeners.pop(wake, None)

    def read(self) -> list[Change]:
        """The changes since the last read, oldest first. If the history lacks some, every object counts as added."""
        try:
            changes = self._collection.changes_from(self._cursor) if self._cursor >= 0 else None
        except ApiError:
            changes = None
        self._cursor = self._collection.end
        if changes is None:
            return [Change(ADDED, record, None) for record in self._collection.records.values()]
        return changes
