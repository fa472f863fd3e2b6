"""Stored objects, and the bounded history of their changes, which serves watches and consistent list pages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import orjson

from podium.sandbox.errors import expired

Json = dict[str, Any]
Key = tuple[str, str]  # namespace ("" for cluster-wide types), name

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Record:
    """One object at one revision. It is immutable, and encoded at most once per view."""

    __slots__ = ("_encoded", "key", "obj", "revision")

    def __init__(self, key: Key, obj: Json, revision: int) -> None:
        self.key = key
        self.obj = obj
        self.revision = revision
        self._encoded: dict[str, bytes] = {}

    def encoded(self, view: str, shape: Callable[[Json], Json] | None = None) -> bytes:
        """Return the object as JSON in the shape of the view named `view`."""
        encoding = self._encoded.get(view)
        if encoding is None:
            encoding = orjson.dumps(shape(self.obj) if shape else self.obj)
            self._encoded[view] = encoding
        return encoding


class Change:
    """One entry of the history: the new record and the one before it."""

    __slots__ = ("previous", "record", "revision", "type")

    def __init__(self, kind: str, record: Record, previous: Record | None) -> None:
        self.type = kind
        self.record = record
        self.previous = previous
        self.revision = record.revision


class Collection:
    """All objects of one stored type, the last `limit` changes to them, and the listeners for changes.

    Invariant: replaying the history backwards from `records` gives the collection at any revision
    not older than `oldest`.
    """

    def __init__(self, limit: int, oldest: int = 0) -> None:
        self.records: dict[Key, Record] = {}
        self.listeners: dict[Callable[[], None], None] = {}
        """An ordered set, called in the order of registration, so that a simulation is repeatable."""
        self.oldest = oldest  # the last revision that was dropped from the history
        self._limit = limit
        self._changes: list[Change] = []
        self._dropped = 0  # the number of dropped changes before _changes[0]
        self._sorted: list[Key] | None = None

    def commit(self, change: Change) -> None:
        """Apply a change, add it to the history and call the listeners."""
        key = change.record.key
        if change.type == DELETED:
            del self.records[key]
            self._sorted = None
        else:
            if key not in self.records:
                self._sorted = None
            self.records[key] = change.record
        self._changes.append(change)
        if len(self._changes) >= 2 * self._limit:
            self._forget(len(self._changes) - self._limit)
        for listen in self.listeners:
            listen()

    def compact(self, keep: int = 0) -> None:
        """Drop all but the last `keep` changes, as etcd's compaction does."""
        self._forget(max(0, len(self._changes) - keep))

    def _forget(self, count: int) -> None:
        if count:
            self.oldest = self._changes[count - 1].revision
            self._dropped += count
            del self._changes[:count]

    def rewind(self, records: dict[Key, Record], revision: int) -> None:
        """Restore the records of an earlier revision. Cursors from before become invalid."""
        self.records = dict(records)
        self._sorted = None
        self._dropped = self.end + 1
        self._changes.clear()
        self.oldest = revision
        for listen in self.listeners:
            listen()

    @property
    def start(self) -> int:
        """The oldest readable cursor."""
        return self._dropped

    @property
    def end(self) -> int:
        """The cursor that reads only future changes."""
        return self._dropped + len(self._changes)

    def cursor_after(self, revision: int) -> int:
        """Return the cursor that reads every change after a revision.

        Raises:
            ApiError: 410, the history lacks some of them.
        """
        if revision < self.oldest:
            raise expired(f"too old resource version: {revision} ({self.oldest + 1})")
        return self._dropped + bisect_right(self._changes, revision, key=attrgetter("revision"))

    def changes_from(self, cursor: int) -> list[Change]:
        """Return the changes from a cursor on.

        Raises:
            ApiError: 410, the reader was too slow.
        """
        if cursor < self._dropped:
            raise expired(f"too old resource version: the history starts after {self.oldest}")
        return self._changes[cursor - self._dropped :]

    def sorted_keys(self) -> list[Key]:
        """Return the present keys, in list order."""
        if self._sorted is None:
            self._sorted = sorted(self.records)
        return self._sorted

    def at(self, revision: int) -> dict[Key, Record]:
        """Return the records as they were at a revision.

        Raises:
            ApiError: 410, the revision is too old.
        """
        later = self.changes_from(self.cursor_after(revision))
        if not later:
            return self.records
        records = dict(self.records)
        for change in reversed(later):
            if change.previous is None:
                records.pop(change.record.key, None)
            else:
                records[change.record.key] = change.previous
        return records
