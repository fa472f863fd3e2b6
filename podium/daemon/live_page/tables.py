"""A table whose rows change, and what has changed since any earlier version of it: every reader asks with its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import orjson

Row: TypeAlias = tuple[Any, ...]
"""Values of JSON, by column."""

GONE_KEPT: Final = 5000
"""So many deletions are remembered; a reader that has missed more is sent the whole table."""


class Table:
    """The rows by key, each as JSON that is made once however many read it.

    Attributes: ``version``, which grows with every change; 0 as long as the table is empty.

    Cost: `changes` takes one step for each changed row.
    """

    def __init__(self, *columns: str, gone_kept: int = GONE_KEPT) -> None:
        self.version = 0
        self._columns = columns
        self._gone_kept = gone_kept
        # Both are ordered by version: what changes goes to the end.
        self._rows: dict[str, tuple[int, Row, bytes]] = {}
        self._gone: dict[str, int] = {}
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._rows)

    def replace(self, rows: Mapping[str, Row]) -> None:
        """Have these rows and no others."""
        version, rows_of = self.version + 1, self._rows
        removed_keys = [key for key in rows_of if key not in rows]
        for key in removed_keys:
            del rows_of[key]
            self._gone[key] = version
        changed_keys = [key for key, row in rows.items() if key not in rows_of or rows_of[key][1] != row]
        for key in changed_keys:
            row = rows[key]
            rows_of.pop(key, None)
            self._gone.pop(key, None)
            fields = {"key": key, **dict(zip(self._columns, row, strict=True))}
            rows_of[key] = version, row, orjson.dumps(fields, default=str)
        if removed_keys or changed_keys:
            self.version = version
        for key in list(self._gone)[: max(0, len(self._gone) - self._gone_kept)]:
            self._forgotten = self._gone.pop(key)

    def changes(self, seen_version: int) -> bytes:
        """Return the changes since that version as JSON; all rows since version 0, or if deletions were forgotten.

        `put` has the rows that are new or changed, `gone` the keys of those that are not there any more. With `reset`,
        rows that are not in `put` are not there.
        """
        is_reset = seen_version == 0 or seen_version < self._forgotten
        seen_version = 0 if is_reset else seen_version
        rows, keys = [], []
        for version, _, row in reversed(self._rows.values()):
            if version <= seen_version:
                break
            rows.append(row)
        if not is_reset:
            for key, version in reversed(self._gone.items()):
                if version <= seen_version:
                    break
                keys.append(key)
        rows.reverse()
        begin = b'{"reset":true,' if is_reset else b"{"
        return begin + b'"put":[' + b",".join(rows) + b'],"gone":' + orjson.dumps(keys) + b"}"
