"""Holds a versioned table: a reader asks for the changes since the version that it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import orjson

Row: TypeAlias = tuple[Any, ...]
"""JSON values in the order of the columns."""

GONE_KEPT: Final = 5000
"""The maximum number of deletions that are remembered; a reader that has missed more is sent the whole table."""


class Table:
    """Rows by key. Each row is encoded as JSON once, for all readers.

    Attributes:
        version: grows with every change; 0 until the first row is added.

    Cost: `changes` takes one step for each changed row.
    """

    def __init__(self, *columns: str, gone_kept: int = GONE_KEPT) -> None:
        self.version = 0
        self._columns = columns
        self._deletions_max = gone_kept
        # Both are in the order of versions: the key of a row that changes moves to the end.
        self._entries: dict[str, tuple[int, Row, bytes]] = {}
        self._deletions: dict[str, int] = {}
        self._forgotten_version = 0

    def __len__(self) -> int:
        return len(self._entries)

    def replace(self, rows: Mapping[str, Row]) -> None:
        """Replace all rows with these."""
        version, entries = self.version + 1, self._entries
        removed_keys = [key for key in entries if key not in rows]
        for key in removed_keys:
            del entries[key]
            self._deletions[key] = version
        changed_keys = [key for key, row in rows.items() if key not in entries or entries[key][1] != row]
        for key in changed_keys:
            row = rows[key]
            entries.pop(key, None)
            self._deletions.pop(key, None)
            fields = {"key": key, **dict(zip(self._columns, row, strict=True))}
            entries[key] = version, row, orjson.dumps(fields, default=str)
        if removed_keys or changed_keys:
            self.version = version
        for key in list(self._deletions)[: max(0, len(self._deletions) - self._deletions_max)]:
            self._forgotten_version = self._deletions.pop(key)

    def changes(self, seen_version: int) -> bytes:
        """Return the changes after a version as JSON; all rows if it is 0, or if deletions after it were forgotten.

        `put` lists the rows that are new or changed, `gone` the keys of deleted rows. With `reset`, `put` lists the
        whole table, and the reader drops its own rows.
        """
        is_reset = seen_version == 0 or seen_version < self._forgotten_version
        seen_version = 0 if is_reset else seen_version
        encoded_rows, deleted_keys = [], []
        for version, _, encoded_row in reversed(self._entries.values()):
            if version <= seen_version:
                break
            encoded_rows.append(encoded_row)
        if not is_reset:
            for key, version in reversed(self._deletions.items()):
                if version <= seen_version:
                    break
                deleted_keys.append(key)
        encoded_rows.reverse()
        prefix = b'{"reset":true,' if is_reset else b"{"
        return prefix + b'"put":[' + b",".join(encoded_rows) + b'],"gone":' + orjson.dumps(deleted_keys) + b"}"
