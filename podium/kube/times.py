"""Timestamps of the API: RFC 3339 text on the wire, seconds since the epoch here."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)


def parse_time(text: str) -> float:
    """An RFC 3339 timestamp, with or without fraction, as seconds since the epoch. Nanoseconds are cut to micro.

    Raises:
        ValueError: it is no such timestamp.
    """
    if _RFC3339.fullmatch(text) is None:
        raise ValueError(f'"{text}" is not a timestamp such as 2006-01-02T15:04:05Z')
    return (datetime.fromisoformat(text) - _EPOCH).total_seconds()


def format_time(epoch_s: float) -> str:
    """Seconds since the epoch as the API's Time: whole seconds, the fraction cut off."""
    return _moment(epoch_s).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(epoch_s: float) -> str:
    """Seconds since the epoch as the API's MicroTime: always six digits of fraction."""
    return _moment(epoch_s).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(epoch_s: float) -> datetime:
    return _EPOCH + timedelta(seconds=epoch_s)
