"""Timestamps of the API: RFC 3339 text on the wire, seconds since the epoch here."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)


def parse_time(text: str) -> float:
    """Return an RFC 3339 timestamp as seconds since the epoch. Digits beyond microseconds are cut off.

    Raises:
        ValueError: the text is not such a timestamp.
    """
    if _RFC3339.fullmatch(text) is None:
        raise ValueError(f'"{text}" is not a timestamp such as 2006-01-02T15:04:05Z')
    return datetime.fromisoformat(text).timestamp()


def time_or_none(text: object) -> float | None:
    """Return a timestamp as `parse_time` does; None if it is none."""
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None


def format_time(epoch_s: float) -> str:
    """Format seconds since the epoch as the API's Time: whole seconds, the fraction cut off."""
    return f"{_second(math.floor(epoch_s))}Z"


def format_micro_time(epoch_s: float) -> str:
    """Format seconds since the epoch as the API's MicroTime: always six digits of fraction."""
    second, micros = divmod(round(epoch_s * 1e6), 1_000_000)
    return f"{_second(second)}.{micros:06d}Z"


@lru_cache(maxsize=16)
def _second(epoch_s: int) -> str:
    """Format a whole second; cached, because thousands of Events are written in the same second."""
    return (_EPOCH + timedelta(seconds=epoch_s)).isoformat()[:19]
