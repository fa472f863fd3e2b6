"""Times that are written by a layout of Go: an example, in which `2006-01-02` stands for year, month and day.

Owns parsing a text by a layout, exactly as Go does. Never formats a time.

Source: Go's time/format.go, 1.24.
Differs: names of time zones other than UTC and GMT with hours mean UTC, as on a machine whose own zone is UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from functools import lru_cache
from typing import Final

_MONTHS: Final = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS: Final = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_DAYS_IN_400_YEARS: Final = 146_097
_HOURS_AHEAD: Final = r"[+-]0*(?:1?\d|2[0-3])(?!\d)"
_ZONE_NAME: Final = (
    rf"UTC|ChST|MeST|GMT(?:{_HOURS_AHEAD})?|{_HOURS_AHEAD}|"
    r"[A-Z]{4}T(?![A-Z])|(?:[A-Z]{3}T|WITA)(?![A-Z])|[A-Z]{3}(?![A-Z])"
)
_FRACTION: Final = r"(?:[.,](\d++))?+"


def _names(names: list[str], length: int | None = None) -> str:
    return "(?i:(" + "|".join(name[:length] for name in names) + "))"


def _offset(minutes: str, seconds: str = "") -> str:
    return rf"([+-]\d\d{minutes}{seconds})"


def _offset_or_z(minutes: str, seconds: str = "") -> str:
    return rf"(Z|[+-]\d\d{minutes}{seconds})"


_ELEMENTS: Final[tuple[tuple[str, str, str], ...]] = (
    ("January", "month name", _names(_MONTHS)),
    ("Jan(?![a-z])", "month name", _names(_MONTHS, 3)),
    ("Monday", "weekday", _names(_DAYS)),
    ("Mon(?![a-z])", "weekday", _names(_DAYS, 3)),
    ("MST", "zone", f"({_ZONE_NAME})"),
    ("002", "day of year", r"(\d{3})"),
    ("01", "month", r"(\d\d)"),
    ("02", "day", r"(\d\d)"),
    ("03", "hour of 12", r"(\d\d)"),
    ("04", "minute", r"(\d\d)"),
    ("05", "second", r"(\d\d)"),
    ("06", "short year", r"(\d\d)"),
    ("15", "hour", r"(\d\d?+)"),
    ("1", "month", r"(\d\d?+)"),
    ("2006", "year", r"(\d{4})"),
    ("2", "day", r"(\d\d?+)"),
    ("_2(?!006)", "day", r" ?+(\d\d?+)"),
    ("__2", "day of year", r" {0,2}+(\d{1,3}+)"),
    ("3", "hour of 12", r"(\d\d?+)"),
    ("4", "minute", r"(\d\d?+)"),
    ("5", "second", r"(\d\d?+)"),
    ("PM", "half", "(AM|PM)"),
    ("pm", "half", "(am|pm)"),
    ("-070000", "offset", _offset(r"\d\d", r"\d\d")),
    ("-07:00:00", "offset", _offset(r":\d\d", r":\d\d")),
    ("-0700", "offset", _offset(r"\d\d")),
    ("-07:00", "offset", _offset(r":\d\d")),
    ("-07", "offset", _offset("")),
    ("Z070000", "offset", _offset_or_z(r"\d\d", r"\d\d")),
    ("Z07:00:00", "offset", _offset_or_z(r":\d\d", r":\d\d")),
    ("Z0700", "offset", _offset_or_z(r"\d\d")),
    ("Z07:00", "offset", _offset_or_z(r":\d\d")),
    ("Z07", "offset", _offset_or_z("")),
    (r"[.,]0+(?!\d)", "fraction", ""),
    (r"[.,]9+(?!\d)", "fraction", _FRACTION),
)
"""What stands for an element in a layout, the first that matches; the element; and what it matches in a text."""

_TOKEN: Final = re.compile("|".join(f"({example})" for example, _, _ in _ELEMENTS))
_RANGES: Final = {
    "month": (1, 12),
    "hour": (0, 23),
    "hour of 12": (0, 12),
    "minute": (0, 59),
    "second": (0, 59),
}


@lru_cache(maxsize=65536)
def parse_go_time(layout: str, text: str) -> float:
    """Return the time in seconds since the epoch.

    Raises:
        ValueError: the text does not follow the layout, or is no time.
    """
    pattern, names = _compile(layout)
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is not a time such as "{layout}"')
    values = {name: value for name, value in zip(names, match.groups(), strict=True) if value is not None}
    numbers = {name: int(value) for name, value in values.items() if value.isdigit()}
    for name, (low, high) in _RANGES.items():
        if not low <= numbers.get(name, low) <= high:
            raise ValueError(f'"{text}": {name} out of range')
    hour = numbers.get("hour", numbers.get("hour of 12", 0))
    half = values.get("half", "").upper()
    if half == "PM" and hour < 12:
        hour += 12
    elif half == "AM" and hour == 12:
        hour = 0
    seconds = (hour * 60 + numbers.get("minute", 0)) * 60 + numbers.get("second", 0)
    fraction = float(f"0.{values.get('fraction', '0')[:9]}")
    return float(_day(values, numbers) * 86_400 + seconds - _offset_s(values)) + fraction


@lru_cache(maxsize=64)
def _compile(layout: str) -> tuple[re.Pattern[str], list[str]]:
    """Return the pattern of texts of the layout, and the element of each of its groups."""
    parts, names, end = [], [], 0
    for token in _TOKEN.finditer(layout):
        parts.append(_literal(layout[end : token.start()]))
        end = token.end()
        _, name, pattern = _ELEMENTS[(token.lastindex or 1) - 1]
        # As many digits as the layout has zeros.
        parts.append(pattern or rf"[.,](\d{{{end - token.start() - 1}}})")
        names.append(name)
        following = _TOKEN.search(layout, end)
        if name == "second" and not (following and _ELEMENTS[(following.lastindex or 1) - 1][1] == "fraction"):
            # A fraction that the layout does not have is accepted.
            parts.append(_FRACTION)
            names.append("fraction")
    return re.compile("".join(parts) + _literal(layout[end:]), re.ASCII), names


def _literal(text: str) -> str:
    """Return the pattern of a literal: a run of spaces stands for any number of them, but for none only at the end."""
    return "".join(r"(?: ++|\Z)" if part.startswith(" ") else re.escape(part) for part in re.split("( +)", text))


def _day(values: Mapping[str, str], numbers: Mapping[str, int]) -> int:
    """Return the day, counted from the first of 1970.

    Raises:
        ValueError: there is no such day, or the day of the year is another one.
    """
    year = numbers.get("year", 0)
    if "short year" in numbers:
        year = numbers["short year"] + (1900 if numbers["short year"] >= 69 else 2000)
    month = numbers.get("month")
    if "month name" in values:
        month = [name[:3].lower() for name in _MONTHS].index(values["month name"][:3].lower()) + 1
    # Python knows no year 0. The calendar repeats itself after 400 years.
    cycles, year_of_cycle = divmod(year, 400)
    day = date(2000 + year_of_cycle, month or 1, 1 if month is None else numbers.get("day", 1))
    if "day of year" in numbers:
        day = date(day.year, 1, 1) + timedelta(days=numbers["day of year"] - 1)
        is_same = month in (None, day.month) and numbers.get("day", day.day) == day.day
        if day.year != 2000 + year_of_cycle or not is_same:
            raise ValueError(f"day {numbers['day of year']} of the year is out of range, or not that day of the month")
    elif month is None:
        day = day.replace(day=numbers.get("day", 1))
    return day.toordinal() + (cycles - 5) * _DAYS_IN_400_YEARS - _EPOCH_DAY


def _offset_s(values: Mapping[str, str]) -> int:
    """Return how far the time's zone is ahead of UTC.

    Raises:
        ValueError: it is out of range.
    """
    text, zone = values.get("offset", "Z"), values.get("zone", "")
    if text == "Z":
        return 3600 * int(zone[3:]) if zone.startswith("GMT") and len(zone) > 3 else 0
    offset_s = 0
    for number, unit_s, number_max in zip(re.findall(r"\d\d", text), (3600, 60, 1), (24, 60, 60), strict=False):
        if int(number) > number_max:
            raise ValueError(f"{text} is not the offset of a time zone")
        offset_s += int(number) * unit_s
    return -offset_s if text.startswith("-") else offset_s
