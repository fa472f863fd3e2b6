"""The constants of requests to an API server: methods, media types, and the maximum size of a list."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

LIST_BYTES_MAX: Final = 256 * 1024 * 1024
"""The maximum size of a list, or a page of one, that is read in one piece."""
