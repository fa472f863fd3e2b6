"""Cron schedules in UTC: at which minutes one hits.

Owns the reading of a schedule and the search for its next hit. Reads no clock.

Source: github.com/robfig/cron v3.0.1 parser.go and spec.go, as Karpenter 1.15 calls them (`ParseStandard`, `TZ=UTC`).
Differs: `@every` is refused, as the API server refuses it in a NodePool.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple

from msgspec import Struct

YEARS_SEARCHED: Final = 5
"""A schedule that does not hit by the end of this many following years counts as one that never does."""

_DESCRIPTORS: Final[Mapping[str, str]] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_NUMBER: Final = re.compile(r"\+?[0-9]{1,18}", re.ASCII)
_DAY: Final = timedelta(days=1)


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


_MINUTE: Final = _Field("minute", 0, 59)
_HOUR: Final = _Field("hour", 0, 23)
_DAY_OF_MONTH: Final = _Field("day of month", 1, 31)
_MONTH: Final = _Field(
    "month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
)
_DAY_OF_WEEK: Final = _Field("day of week", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat"))


class CronSchedule(Struct, frozen=True):
    """The minutes at which a schedule hits.

    Attributes:
        times: Minutes since midnight, ascending.
        days: Days of the month.
        months: Months; January is 1.
        weekdays: Days of the week; Sunday is 0.
        needs_both_days: Whether a day must match both `days` and `weekdays`; otherwise one of them is enough.
    """

    times: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    needs_both_days: bool

    @classmethod
    def parse(cls, text: str) -> CronSchedule:
        """Read five fields (minute, hour, day of month, month, day of week) or a descriptor such as `@hourly`.

        Raises:
            ValueError: the text is no schedule, or it names a time zone.
        """
        text = text.strip()
        fields = _DESCRIPTORS.get(text, text).split()
        if text.startswith("@") and text not in _DESCRIPTORS:
            raise ValueError(f'"{text}" is not one of {", ".join(_DESCRIPTORS)}')
        if text.startswith(("TZ=", "CRON_TZ=")):
            raise ValueError("a schedule is in UTC and cannot name a time zone")
        if len(fields) != 5:
            raise ValueError(f"expected 5 fields, found {len(fields)}")
        minutes, _ = _parse_field(fields[0], _MINUTE)
        hours, _ = _parse_field(fields[1], _HOUR)
        days, any_day = _parse_field(fields[2], _DAY_OF_MONTH)
        months, _ = _parse_field(fields[3], _MONTH)
        weekdays, any_weekday = _parse_field(fields[4], _DAY_OF_WEEK)
        times = tuple(hour * 60 + minute for hour in sorted(hours) for minute in sorted(minutes))
        return cls(times, days, months, weekdays, any_day or any_weekday)

    def next_hit(self, moment: datetime) -> datetime | None:
        """Return the first hit after a moment; None if the schedule has no hit by the end of the fifth following year.

        Args:
            moment: a moment in UTC; a hit at this very moment is not meant.
        """
        # As upstream, which rounds up to a whole second before it looks for a minute.
        second = moment.replace(microsecond=0) + timedelta(seconds=1)
        start = (second + timedelta(seconds=59)).replace(second=0)
        earliest = start.hour * 60 + start.minute
        day = start.date()
        while day.year <= second.year + YEARS_SEARCHED:
            if self._includes(day) and (index := bisect_left(self.times, earliest)) < len(self.times):
                return datetime.combine(day, time(tzinfo=UTC)) + timedelta(minutes=self.times[index])
            earliest = 0
            day += _DAY
        return None

    def _includes(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        in_days, in_weekdays = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        # Vixie cron's rule: with both days restricted either is enough, otherwise both must hold.
        return (in_days and in_weekdays) if self.needs_both_days else (in_days or in_weekdays)


def _parse_field(text: str, field: _Field) -> tuple[frozenset[int], bool]:
    """Return the values of a field, and whether it is unrestricted: it has a `*` or `?` whose step is 1."""
    values: set[int] = set()
    unrestricted = False
    # As upstream, an item that is empty does not count.
    for item in filter(None, text.split(",")):
        span, star = _parse_item(item, field)
        values.update(span)
        unrestricted = unrestricted or star
    return frozenset(values), unrestricted


def _parse_item(text: str, field: _Field) -> tuple[range, bool]:
    bounds, slash, step_text = text.partition("/")
    low_text, hyphen, high_text = bounds.partition("-")
    star = low_text in ("*", "?")
    if star:
        # Upstream ignores what follows the hyphen of "*-".
        low, high = field.low, field.high
    else:
        low = _parse_value(low_text, field, text)
        high = _parse_value(high_text, field, text) if hyphen else low
    step = 1
    if slash:
        step = _parse_number(step_text, field, text)
        if not hyphen:
            # "5/15" means from 5 to the end, while "5-20/15" ends at 20.
            high = field.high
    if low < field.low or high > field.high:
        raise ValueError(f'{field.name} "{text}" is not within {field.low}-{field.high}')
    if low > high:
        raise ValueError(f'{field.name} "{text}" ends before it begins')
    if step == 0:
        raise ValueError(f'{field.name} "{text}" has a step of 0')
    return range(low, high + 1, step), star and step == 1


def _parse_value(text: str, field: _Field, item: str) -> int:
    name = text.lower()
    return field.names.index(name) + field.low if name in field.names else _parse_number(text, field, item)


def _parse_number(text: str, field: _Field, item: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f'{field.name} "{item}": "{text}" is not a number')
    return int(text)
