"""Watch a collection from inside the sandbox: changes since the last read, and a callback for new changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from podium.sandbox.errors import ApiError
from podium.sandbox.journal import ADDED, DELETED, Change, Collection, Key, Record


class Feed:
    """The changes of a collection since the last read. The first read returns every object as added."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._cursor = -1
        self._known: dict[Key, Record] = {}

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Call `wake` at every change, within the context."""
        self._collection.listeners[wake] = None
        try:
            yield
        finally:
            self._collection.listeners.pop(wake, None)

    def read(self) -> list[Change]:
        """Return the changes since the last read, oldest first.

        If the history lacks some, objects that are gone count as deleted, and all others as added.
        """
        try:
            changes = self._collection.changes_from(self._cursor) if self._cursor >= 0 else self._all()
        except ApiError:
            changes = self._all()
        self._cursor = self._collection.end
        for change in changes:
            if change.type == DELETED:
                del self._known[change.record.key]
            else:
                self._known[change.record.key] = change.record
        return changes

    def _all(self) -> list[Change]:
        records = self._collection.records
        deletions = [
            Change(DELETED, previous, previous)
            for key, previous in self._known.items()
            if _uid(records.get(key)) != _uid(previous)
        ]
        return deletions + [Change(ADDED, record, None) for record in records.values()]


def _uid(record: Record | None) -> str | None:
    return None if record is None else record.obj["metadata"]["uid"]
