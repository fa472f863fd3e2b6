"""Timestamps and durations: parsing, formatting and accessors.

Differs: named time zones come from this machine's database. A name that it lacks is an error.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
import zoneinfo
from collections.abc import Callable, Iterator
from typing import Any

from podium.cel.errors import EvaluationError
from podium.cel.functions import Overload
from podium.cel.libraries.floats import format_plain
from podium.cel.values import NANOSECONDS, Duration, Timestamp, duration, timestamp

_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_DURATION_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_UNITS_NS = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": NANOSECONDS, "m": 60 * NANOSECONDS,
    "h": 3600 * NANOSECONDS,
}  # fmt: skip
_DIGITS_MAX = 19
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_CYCLE_YEARS, _CYCLE = 400, dt.timedelta(days=146_097)
_OFFSET = re.compile(r"([+-]?[0-9]+):([+-]?[0-9]+)")


def parse_timestamp(text: str) -> Timestamp:
    """Parse a timestamp in RFC 3339 format. Raises: EvaluationError."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    *numbers, fraction, sign, hours, minutes = match.groups()
    offset_s = (int(hours or 0) * 3600 + int(minutes or 0) * 60) * (-1 if sign == "-" else 1)
    try:
        # Go's bounds of an offset, which include 24 and 60.
        if int(hours or 0) > 24 or int(minutes or 0) > 60:
            raise ValueError("offset out of range")
        year, month, day, hour, minute, second = map(int, numbers)
        # Go parses year 0 and then refuses it as a timestamp. datetime begins with year 1.
        moment = dt.datetime(year, month, day, hour, minute, second, tzinfo=dt.UTC)
    except ValueError:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'") from None
    seconds = (moment - _EPOCH) // dt.timedelta(seconds=1) - offset_s
    # Go keeps nanoseconds and drops further digits.
    return timestamp(seconds * NANOSECONDS + int((fraction or "")[:9].ljust(9, "0")), offset_s)


def format_timestamp(moment: Timestamp) -> str:
    """Format a timestamp in RFC 3339, with its original offset and as many fractional digits as needed."""
    seconds, ns = divmod(moment.ns, NANOSECONDS)
    try:
        moment_of_second = _EPOCH + dt.timedelta(seconds=seconds + moment.offset_s)
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None
    fraction = f".{ns:09d}".rstrip("0") if ns else ""
    minutes = abs(moment.offset_s) // 60
    sign = "-" if moment.offset_s < 0 else "+"
    offset = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}" if moment.offset_s else "Z"
    return f"{moment_of_second.year:04d}-{moment_of_second:%m-%dT%H:%M:%S}{fraction}{offset}"


def parse_duration(text: str) -> Duration:
    """Parse a duration such as `1h30m` or `-1.5s`. Raises: EvaluationError."""
    unsigned = text[1:] if text[:1] in ("-", "+") else text
    if unsigned == "0":
        return Duration(0)
    total, position = 0, 0
    while position < len(unsigned):
        match = _DURATION_PART.match(unsigned, position)
        # A number of more digits overflows anyway, and int() of a long text takes long.
        if match is None or not (match[1] or match[2]) or len(match[1].lstrip("0")) > _DIGITS_MAX:
            break
        unit = _UNITS_NS[match[3]]
        fraction = (match[2] or "")[:18]
        total += int(match[1] or 0) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        position = match.end()
    if position == 0 or position < len(unsigned):
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Duration'")
    return duration(-total if text[0] == "-" else total)


def format_duration(length: Duration) -> str:
    """Format a duration in seconds."""
    seconds, ns = divmod(abs(length.ns), NANOSECONDS)
    number = seconds + ns / NANOSECONDS
    return format_plain(-number if length.ns < 0 else number) + "s"


@functools.lru_cache(maxsize=64)
def _zone(name: str) -> dt.tzinfo:
    if name in ("", "UTC"):
        return dt.UTC
    if ":" in name:
        match = _OFFSET.fullmatch(name)
        if match is None or len(name) > 16:
            raise EvaluationError(f"invalid time zone offset: {name!r}")
        hours, minutes = int(match[1]), int(match[2])
        offset = hours * 60 - minutes if name[0] == "-" else hours * 60 + minutes
        return _fixed_offset(offset)
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _fixed_offset(offset_minutes: int) -> dt.tzinfo:
    try:
        return dt.timezone(dt.timedelta(minutes=offset_minutes))
    except (ValueError, OverflowError):
        raise EvaluationError("the time zone offset is a day or more") from None


def _at(moment: Timestamp, zone: str) -> tuple[dt.datetime, int]:
    """Return the moment in the zone, and the years to add: the calendar's last hours are read in another year.

    `datetime` ends where timestamps end, wherever the zone is. After 400 years the calendar is the same again.
    """
    try:
        second = _EPOCH + dt.timedelta(seconds=moment.ns // NANOSECONDS)
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None
    # The calendar repeats after 400 years, so a zone can be applied in a year that datetime has.
    cycles = {dt.MINYEAR: -1, dt.MAXYEAR: 1}.get(second.year, 0)
    return (second - cycles * _CYCLE).astimezone(_zone(zone)), cycles * _CYCLE_YEARS


_PARTS: tuple[tuple[str, str, str, Callable[[dt.datetime], int]], ...] = (
    ("getMonth", "timestamp_to_month", "_with_tz", lambda time: time.month - 1),
    ("getDayOfYear", "timestamp_to_day_of_year", "_with_tz", lambda time: time.timetuple().tm_yday - 1),
    ("getDayOfMonth", "timestamp_to_day_of_month", "_with_tz", lambda time: time.day - 1),
    ("getDate", "timestamp_to_day_of_month_1_based", "_with_tz", lambda time: time.day),
    ("getDayOfWeek", "timestamp_to_day_of_week", "_with_tz", lambda time: time.isoweekday() % 7),
    ("getHours", "timestamp_to_hours", "_with_tz", lambda time: time.hour),
    ("getMinutes", "timestamp_to_minutes", "_with_tz", lambda time: time.minute),
    ("getSeconds", "timestamp_to_seconds", "_tz", lambda time: time.second),
)
_DURATION_PARTS = (
    ("getHours", "duration_to_hours", 3600 * NANOSECONDS),
    ("getMinutes", "duration_to_minutes", 60 * NANOSECONDS),
    ("getSeconds", "duration_to_seconds", NANOSECONDS),
    ("getMilliseconds", "duration_to_milliseconds", 10**6),
)


def _milliseconds(moment: Timestamp) -> int:
    return moment.ns % NANOSECONDS // 10**6


def _milliseconds_in(moment: Timestamp, zone: str) -> int:
    _zone(zone)
    return _milliseconds(moment)


def _year(moment: Timestamp, zone: str = "") -> int:
    time, years = _at(moment, zone)
    return time.year + years


def _overloads() -> Iterator[Overload]:
    yield Overload("timestamp_to_year", "timestamp.getFullYear() -> int", _year)
    yield Overload("timestamp_to_year_with_tz", "timestamp.getFullYear(string) -> int", _year)
    for name, overload, suffix, part in _PARTS:
        yield Overload(overload, f"timestamp.{name}() -> int", _part(part))
        yield Overload(overload + suffix, f"timestamp.{name}(string) -> int", _part(part))
    yield Overload("timestamp_to_milliseconds", "timestamp.getMilliseconds() -> int", _milliseconds)
    yield Overload("timestamp_to_milliseconds_with_tz", "timestamp.getMilliseconds(string) -> int", _milliseconds_in)
    for name, overload, unit in _DURATION_PARTS:
        yield Overload(overload, f"duration.{name}() -> int", _whole_units(unit))


def _part(part: Callable[[dt.datetime], int]) -> Callable[..., int]:
    def run(moment: Timestamp, zone: str = "") -> int:
        return part(_at(moment, zone)[0])

    return run


def _whole_units(unit: int) -> Callable[[Any], int]:
    def run(length: Duration) -> int:
        # Towards zero as in Go; Python's division rounds down.
        count = abs(length.ns) // unit
        return count if length.ns >= 0 else -count

    return run


OVERLOADS = tuple(_overloads())
